"""Units of the host compiler: bindings, components, support code, identity."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kernel_builder.compile.sources import placed, project_places
from kernel_builder.compile.units import Unit
from kernel_builder.resources import templates
from kernel_builder.spec.includes import HEADER_SUFFIXES
from kernel_builder.spec.sources import host_folders, support_sources
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kernel_builder.compile.sources import Sources
    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.spec.model import Component, Kernel
    from kernel_builder.toolchain.model import Toolchain, TorchSdk

# gnu-unique symbols would keep a library loaded for ever and tie two kernels' statics together.
BASE_FLAGS = (
    "-O2",
    "-fPIC",
    "-fvisibility=hidden",
    "-fvisibility-inlines-hidden",
    "-fno-gnu-unique",
    "-DNDEBUG",
    "-D_GLIBCXX_USE_CXX11_ABI=1",
)
_CXX20_SINCE = MajorMinor(2, 14)
# GiB, measured with room to spare: the headers decide, not our sources.
_FULL_ABI_MEMORY, _STABLE_MEMORY, _PLAIN_MEMORY = 1.0, 0.4, 0.25


def binding_units(variant: VariantPlan, toolchain: Toolchain, sources: Sources) -> Iterator[tuple[str, Unit]]:
    """Source → unit of every binding source; the same units for every variant of one SDK and ABI."""
    torch = variant.kernel.torch
    for source in compiled(torch.sources):
        yield source, _torch_unit("binding", source, torch.include, torch.cxx_flags, variant, toolchain, sources)


def component_units(variant: VariantPlan, toolchain: Toolchain, sources: Sources) -> Iterator[tuple[str, Unit]]:
    """Source → unit of every host source of the variant's backend."""
    for component in variant.components:
        for source in compiled(component.sources):
            if "torch" in component.depends:
                flags = (backend_define(variant.backend), *component.cxx_flags)
                yield source, _torch_unit("component", source, component.include, flags, variant, toolchain, sources)
            else:
                yield source, _plain_unit(component, source, variant.kernel, toolchain, sources)


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
    """The sources without the headers that are listed among them."""
    return (source for source in sources if f".{source.rpartition('.')[2]}" not in HEADER_SUFFIXES)


def backend_define(backend: str) -> str:
    """``-DKB_CUDA=1``."""
    return f"-DKB_{backend.upper()}=1"


def torch_target(version: MajorMinor) -> str:
    """Torch version as its stable ABI spells it: 2.10 → ``0x020a000000000000``."""
    return f"0x{version.major:02x}{version.minor:02x}000000000000"


def _torch_unit(
    kind: Literal["binding", "component"],
    source: str,
    include: tuple[str, ...],
    flags: tuple[str, ...],
    variant: VariantPlan,
    toolchain: Toolchain,
    sources: Sources,
) -> Unit:
    kernel, sdk = variant.kernel, toolchain.sdks[variant.sdk]
    abi = f"stable {variant.variant.framework.version}" if variant.stable else "full"
    tag = f", {variant.backend}" if kind == "component" else ""
    return Unit(
        kind=kind,
        label=f"{kernel.name}: {source} [torch {sdk.version} {abi} ABI{tag}]",
        output=_object_name(source),
        argv=(
            "@cxx@", *_torch_flags(variant, sdk), *BASE_FLAGS, *_prefix_maps(kernel), "-ffile-prefix-map=@sdk@/=torch/",
            *_include_flags(kernel, include), *_sdk_include_flags(sdk), *flags,
            "-c", f"@kernel@/{source}", "-o", "@out@",
        ),
        places={**_places(kernel, toolchain), "sdk": str(sdk.root)},
        tools={"host compiler": toolchain.host.identity, f"torch SDK {sdk.version}": sdk.digest},
        files=sources.reached(kernel.root / source, host_folders(kernel, include), kernel),
        memory=_STABLE_MEMORY if variant.stable else _FULL_ABI_MEMORY,
    )  # fmt: skip


def _plain_unit(component: Component, source: str, kernel: Kernel, toolchain: Toolchain, sources: Sources) -> Unit:
    return Unit(
        kind="component",
        label=f"{kernel.name}: {source} [{component.key}]",
        output=_object_name(source),
        argv=(
            "@cxx@", "-std=c++17", *BASE_FLAGS, *_prefix_maps(kernel), backend_define(component.backend),
            *_include_flags(kernel, component.include), *component.cxx_flags,
            "-c", f"@kernel@/{source}", "-o", "@out@",
        ),
        places=_places(kernel, toolchain),
        tools={"host compiler": toolchain.host.identity},
        files=sources.reached(kernel.root / source, host_folders(kernel, component.include), kernel),
        memory=_PLAIN_MEMORY,
    )  # fmt: skip


def _torch_flags(variant: VariantPlan, sdk: TorchSdk) -> tuple[str, ...]:
    if variant.stable:
        target = torch_target(variant.variant.framework.version)
        return ("-std=c++17", "-DKB_STABLE_ABI=1", f"-DTORCH_TARGET_VERSION={target}")
    return ("-std=c++20" if sdk.version >= _CXX20_SINCE else "-std=c++17", "-DKB_STABLE_ABI=0")


def _places(kernel: Kernel, toolchain: Toolchain) -> dict[str, str]:
    return {"cxx": toolchain.host.cxx, **project_places(kernel)}


def _prefix_maps(kernel: Kernel) -> list[str]:
    """Names that ``__FILE__`` gives instead of this machine's folders."""
    common = [] if kernel.common is None else ["-ffile-prefix-map=@common@/=common/"]
    return [f"-ffile-prefix-map=@kernel@/={kernel.name}/", *common]


def _include_flags(kernel: Kernel, include: tuple[str, ...]) -> list[str]:
    folders = [placed(folder, kernel) for folder in dict.fromkeys(host_folders(kernel, include))]
    return [f"-I@{place}@/{rest}" for place, rest in folders]


def _sdk_include_flags(sdk: TorchSdk) -> list[str]:
    # System folders: their warnings are not the author's.
    return [word for path in sdk.include for word in ("-isystem", f"@sdk@/{path.relative_to(sdk.root).as_posix()}")]


def _object_name(source: str) -> str:
    return f"{source.rpartition('/')[2].rpartition('.')[0]}.o"
