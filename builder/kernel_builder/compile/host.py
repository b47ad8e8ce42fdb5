"""Units of the host compiler: bindings, components, support code, identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kernel_builder.compile.cuda_view import cuda_view
from kernel_builder.compile.peer import peer_of
from kernel_builder.compile.sources import placed, project_places
from kernel_builder.compile.torch_view import torch_view
from kernel_builder.compile.units import Unit
from kernel_builder.resources import templates
from kernel_builder.spec.includes import HEADER_SUFFIXES
from kernel_builder.spec.sources import host_folders, support_sources

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kernel_builder.compile.sources import Sources
    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.spec.model import Component, Kernel
    from kernel_builder.toolchain.model import Toolchain

# gnu-unique symbols would keep a library loaded for ever and tie two kernels' statics together. The canonical name of a
# system header is not what the prefix maps know where the store is reached through a link.
CODE_FLAGS = (
    "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", "-fno-gnu-unique", "-fno-canonical-system-headers",
)  # fmt: skip
MACROS = ("-DNDEBUG", "-D_GLIBCXX_USE_CXX11_ABI=1")
BASE_FLAGS = ("-O2", *CODE_FLAGS, *MACROS)
# GiB, measured with room to spare: the headers decide, not our sources.
_FULL_ABI_MEMORY, _STABLE_MEMORY, _PLAIN_MEMORY = 1.0, 0.4, 0.25


def binding_units(variant: VariantPlan, toolchain: Toolchain, sources: Sources) -> Iterator[tuple[str, Unit]]:
    """Source → unit of every binding source; the same units for every variant of one SDK and ABI.

    Bindings that are told their backend or see CUDA's headers are shared by fewer.
    """
    torch = variant.kernel.torch
    for source in compiled(torch.sources):
        yield source, _torch_unit("binding", source, torch.include, torch.cxx_flags, variant, toolchain, sources)


def component_units(variant: VariantPlan, toolchain: Toolchain, sources: Sources) -> Iterator[tuple[str, Unit]]:
    """Source → unit of every C++ source of the variant's backend."""
    for component in variant.components:
        for source in compiled(component.sources):
            if "torch" in component.depends:
                flags = (backend_define(variant.backend), *component.cxx_flags)
                yield source, _torch_unit("component", source, component.include, flags, variant, toolchain, sources)
            else:
                yield source, _plain_unit(component, source, variant, toolchain, sources)


def support_units(variant: VariantPlan, toolchain: Toolchain, sources: Sources) -> Iterator[tuple[str, Unit]]:
    """Source → unit of the shared code of the backend; the same units for every kernel."""
    kernel, backend = variant.kernel, variant.backend
    if kernel.common is None:
        return
    for path in support_sources(kernel, backend):
        name = f"common/{path.relative_to(kernel.common).as_posix()}"
        yield name, Unit(
            kind="support",
            label=name,
            output=f"{path.stem}.o",
            argv=(
                "@cxx@", "-std=c++17", *BASE_FLAGS, "-ffile-prefix-map=@common@/=common/", backend_define(backend),
                "-I@common@/include", "-c", f"@common@/{path.relative_to(kernel.common).as_posix()}", "-o", "@out@",
            ),
            places={"cxx": toolchain.host.cxx, "common": str(kernel.common)},
            tools={"host compiler": toolchain.host.identity},
            files=sources.reached(path, [kernel.common / "include"], kernel),
            memory=_PLAIN_MEMORY,
        )  # fmt: skip


def identity_unit(variant: VariantPlan, toolchain: Toolchain, sources: Sources) -> Unit:
    """The generated file that gives a library its module name and op namespace."""
    template = "identity.cpp.j2"
    return Unit(
        kind="identity",
        label=f"{variant.kernel.name}: identity {variant.backend}",
        output="identity.o",
        argv=("@cxx@", "-std=c++17", *BASE_FLAGS, "-c", "@source@", "-o", "@out@"),
        places={"cxx": toolchain.host.cxx},
        tools={"host compiler": toolchain.host.identity},
        files={f"template {template}": sources.file(templates() / "build" / template)},
        template=template,
        context={"op_id": variant.op_id, "dispatch_key": variant.backend.upper()},
        memory=_PLAIN_MEMORY,
    )


def compiled(sources: Sequence[str]) -> Iterator[str]:
    """The C++ sources, without the headers and CUDA sources that are listed among them."""
    return (source for source in sources if f".{source.rpartition('.')[2]}" not in {*HEADER_SUFFIXES, ".cu"})


def backend_define(backend: str) -> str:
    """``-DKB_CUDA=1``."""
    return f"-DKB_{backend.upper()}=1"


def prefix_maps(kernel: Kernel) -> list[str]:
    """Names that ``__FILE__`` gives instead of this machine's folders."""
    common = [] if kernel.common is None else ["-ffile-prefix-map=@common@/=common/"]
    return [f"-ffile-prefix-map=@kernel@/={kernel.name}/", *common]


def include_flags(kernel: Kernel, include: tuple[str, ...]) -> list[str]:
    """``-I`` of the project's folders, in search order."""
    folders = [placed(folder, kernel) for folder in dict.fromkeys(host_folders(kernel, include))]
    return [f"-I@{place}@/{rest}" for place, rest in folders]


def object_name(source: str) -> str:
    """``csrc/op.cpp`` → ``op.o``."""
    return f"{source.rpartition('/')[2].rpartition('.')[0]}.o"


def _torch_unit(
    kind: Literal["binding", "component"],
    source: str,
    include: tuple[str, ...],
    flags: tuple[str, ...],
    variant: VariantPlan,
    toolchain: Toolchain,
    sources: Sources,
) -> Unit:
    kernel, torch = variant.kernel, torch_view(variant, toolchain)
    files = sources.reached(kernel.root / source, host_folders(kernel, include), kernel)
    peer, cuda = peer_of(variant, files, sources), cuda_view(variant, toolchain)
    tag = f", {variant.backend}" if kind == "component" or peer.flags else ""
    return Unit(
        kind=kind,
        label=f"{kernel.name}: {source} [{torch.label}{tag}{cuda.label}]",
        output=object_name(source),
        argv=(
            "@cxx@", f"-std=c++{torch.standard}", *torch.macros, *BASE_FLAGS, *prefix_maps(kernel), torch.prefix_map,
            *cuda.prefix_map, *include_flags(kernel, include), *peer.flags, *torch.include, *cuda.include, *flags,
            "-c", f"@kernel@/{source}", "-o", "@out@",
        ),
        places={**_places(kernel, toolchain), **torch.places, **cuda.places, **peer.places},
        tools={"host compiler": toolchain.host.identity, **torch.tools, **cuda.tools},
        files={**files, **peer.files},
        memory=_STABLE_MEMORY if variant.stable else _FULL_ABI_MEMORY,
    )  # fmt: skip


def _plain_unit(
    component: Component, source: str, variant: VariantPlan, toolchain: Toolchain, sources: Sources
) -> Unit:
    kernel = variant.kernel
    files = sources.reached(kernel.root / source, host_folders(kernel, component.include), kernel)
    peer, cuda = peer_of(variant, files, sources), cuda_view(variant, toolchain)
    return Unit(
        kind="component",
        label=f"{kernel.name}: {source} [{component.key}{cuda.label}]",
        output=object_name(source),
        argv=(
            "@cxx@", "-std=c++17", *BASE_FLAGS, *prefix_maps(kernel), *cuda.prefix_map,
            backend_define(component.backend), *include_flags(kernel, component.include), *peer.flags, *cuda.include,
            *component.cxx_flags, "-c", f"@kernel@/{source}", "-o", "@out@",
        ),
        places={**_places(kernel, toolchain), **cuda.places, **peer.places},
        tools={"host compiler": toolchain.host.identity, **cuda.tools},
        files={**files, **peer.files},
        memory=_PLAIN_MEMORY,
    )  # fmt: skip


def _places(kernel: Kernel, toolchain: Toolchain) -> dict[str, str]:
    return {"cxx": toolchain.host.cxx, **project_places(kernel)}
