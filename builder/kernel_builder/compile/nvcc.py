"""Units of CUDA sources with host code: one per source and nvcc, and per torch SDK where the sources see torch."""

from __future__ import annotations

import re
import shlex
from functools import cache
from typing import TYPE_CHECKING

from kernel_builder.compile.cuda_view import cuda_view
from kernel_builder.compile.host import CODE_FLAGS, MACROS, backend_define, include_flags, object_name, prefix_maps
from kernel_builder.compile.peer import peer_of
from kernel_builder.compile.sources import project_places
from kernel_builder.compile.torch_view import torch_view
from kernel_builder.compile.units import Unit
from kernel_builder.errors import CompileError
from kernel_builder.spec.rules import LINE_TABLES
from kernel_builder.spec.schema import BUILD
from kernel_builder.spec.sources import host_folders
from kernel_builder.toolchain.nvcc.flags import unsupported_flags
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kernel_builder.compile.sources import Sources
    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.spec.model import Component
    from kernel_builder.toolchain.model import Nvcc, Toolchain
    from kernel_loader.format.archs import Arch

# torch's own headers need both. Its bans of half-precision operators are not given: kernels lift them again.
_LANGUAGE = ("--expt-relaxed-constexpr", "--expt-extended-lambda")
_PEER_MACROS = ("-DENABLE_FP8",)  # what HF's builder defines for CUDA sources alone
_LEVEL, _STANDARD = re.compile(r"-O[0-3]"), re.compile(r"(?:--?std[= ]?=?)?c\+\+(\d\d)")
_COMPRESSION = re.compile(r"(?:--?compress-mode[= ])?(default|size|speed|balance|none)|.*(compress-all|no-compress)")
_TORCH_MEMORY, _PLAIN_MEMORY = 2.5, 1.0  # GiB


def nvcc_units(variant: VariantPlan, toolchain: Toolchain, sources: Sources) -> Iterator[tuple[str, Unit]]:
    """Source → unit of every ``.cu`` source of the variant's components.

    Raises:
        CompileError: The nvcc does not know a flag of a component.
    """
    if variant.nvcc is None:
        return
    for component in variant.components:
        for source in cuda_sources(component):
            _check_flags(component, variant, toolchain.nvccs[variant.nvcc])
            yield source, _unit(component, source, variant, toolchain, sources)


def cuda_sources(component: Component) -> Iterator[str]:
    """Sources of a component that nvcc compiles."""
    return (source for source in component.sources if source.endswith(".cu"))


def architectures(archs: Iterable[Arch]) -> list[str]:
    """``-gencode`` arguments for exactly these architectures, one for each that nvcc compiles code from."""
    codes: dict[str, list[str]] = {}
    for arch in archs:
        codes.setdefault(arch.sm, []).append(f"{'compute' if arch.ptx else 'sm'}_{arch.sm}")
    return [f"-gencode=arch=compute_{sm},code=[{','.join(code)}]" for sm, code in codes.items()]


def author_flags(component: Component, *, lineinfo: bool) -> tuple[str, ...]:
    """The component's flags; line tables hold this machine's paths, so only ``lineinfo`` builds have them."""
    own = tuple(flag for flag in component.cuda_flags if flag not in LINE_TABLES)
    return (*own, "-lineinfo") if lineinfo else own


def compression(component: Component) -> str | None:
    """How the component's flags compress its device code, such as ``size``; None when they do not say.

    Nothing is compressed then: whoever reads the library finds each cubin as it was compiled.
    """
    said = [found for flag in component.cuda_flags if (found := _COMPRESSION.fullmatch(flag))]
    return (said[-1][1] or said[-1][2]) if said else None


def _unit(component: Component, source: str, variant: VariantPlan, toolchain: Toolchain, sources: Sources) -> Unit:
    kernel, nvcc = variant.kernel, toolchain.nvccs[variant.nvcc or MajorMinor(0, 0)]
    torch = torch_view(variant, toolchain) if "torch" in component.depends else None
    cuda = cuda_view(variant, toolchain)
    files = sources.reached(kernel.root / source, host_folders(kernel, component.include), kernel)
    peer = peer_of(variant, files, sources)
    standard, flags = _standard(author_flags(component, lineinfo=variant.lineinfo), torch.standard if torch else 17)
    compiler, *options = shlex.split(nvcc.host)
    host = [*options, *CODE_FLAGS, *prefix_maps(kernel), *cuda.prefix_map, *([torch.prefix_map] if torch else [])]
    return Unit(
        kind="nvcc",
        label=f"{kernel.name}: {source} [{component.key}, nvcc {nvcc.version}{f', {torch.label}' if torch else ''}]",
        output=object_name(source),
        argv=(
            f"@cuda@/{nvcc.nvcc.relative_to(nvcc.root).as_posix()}", "-ccbin", "@ccbin@", f"-std=c++{standard}",
            *([] if any(_LEVEL.fullmatch(flag) for flag in flags) else ["-O3"]), *_LANGUAGE,
            *(["--no-compress"] if compression(component) is None else []),
            *architectures(variant.archs[f"kernel.{component.key}"]),
            # What these objects call themselves must not depend on where folders lie.
            "--objdir-as-tempdir", "-Xcudafe", f"--orig_src_path_name={kernel.name}/{source}",
            *(word for flag in host for word in ("-Xcompiler", flag)), *MACROS, backend_define(variant.backend),
            *(torch.macros if torch else ()), *include_flags(kernel, component.include), *peer.flags,
            *(_PEER_MACROS if peer.flags else ()), *(torch.include if torch else ()), *cuda.include, *flags,
            "-c", f"@kernel@/{source}", "-o", "@out@",
        ),
        places={
            "ccbin": compiler,
            **project_places(kernel),
            **cuda.places,
            **(torch.places if torch else {}),
            **peer.places,
        },
        tools={**cuda.tools, "host compiler of nvcc": nvcc.host_identity, **(torch.tools if torch else {})},
        files={**files, **peer.files},
        memory=_TORCH_MEMORY if torch and not variant.stable else _PLAIN_MEMORY,
    )  # fmt: skip


def _standard(flags: Sequence[str], least: int) -> tuple[int, tuple[str, ...]]:
    """The newer of the standard that torch needs and the author's, and the author's other flags."""
    asked = [int(found[1]) for flag in flags if (found := _STANDARD.fullmatch(flag))]
    rest = tuple(flag for flag in flags if not _STANDARD.fullmatch(flag) and flag not in ("-std", "--std"))
    return max(least, *asked, 0), rest


def _check_flags(component: Component, variant: VariantPlan, nvcc: Nvcc) -> None:
    unknown = _unsupported(nvcc, component.cuda_flags)
    if unknown:
        raise CompileError(
            f"nvcc {nvcc.release} does not know {', '.join(unknown)}.",
            where=f"{variant.kernel.root / BUILD}: kernel.{component.key}.cuda-flags",
            hint=f"remove it, or give the component a newer cuda-minver; it is compiled for {variant.label}",
        )


@cache
def _unsupported(nvcc: Nvcc, flags: tuple[str, ...]) -> tuple[str, ...]:
    return unsupported_flags(nvcc, flags)
