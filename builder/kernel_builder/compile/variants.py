"""Toolchain → units: what each variant is linked from."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.compile.host import binding_units, component_units, identity_unit, support_units
from kernel_builder.compile.images import device_unit, fatbin_unit, images_unit
from kernel_builder.compile.nvcc import nvcc_units
from kernel_builder.compile.units import Unit
from kernel_builder.errors import CompileError
from kernel_builder.resources import templates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.compile.sources import Sources
    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.toolchain.model import Floor, Toolchain
    from kernel_loader.format.archs import Arch

_EXPORTS = "exports.map"
_LINK_FLAGS = (
    "-shared",
    "-s",
    "-Wl,--build-id=none",
    "-Wl,-z,relro,-z,now,-z,noexecstack",
    f"-Wl,--version-script,@templates@/{_EXPORTS}",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantUnits:
    """One variant's link and what the artefact must still be able to name.

    Attributes:
        device_code: (device, arch, unit) of every compiled device source.
        objects: Source or role → unit, in link order.
    """

    plan: VariantPlan
    link: Unit
    device_code: tuple[tuple[str, Arch, Unit], ...]
    objects: Mapping[str, Unit]


def units_of(toolchain: Toolchain, sources: Sources) -> tuple[VariantUnits, ...]:
    """Units of every variant of the plan, in its order.

    Raises:
        CompileError: A source cannot be read.
        SpecError: An include leaves the kernel folder.
    """
    return tuple(_variant(variant, toolchain, sources) for variant in toolchain.plan.variants)


def _variant(variant: VariantPlan, toolchain: Toolchain, sources: Sources) -> VariantUnits:
    codes = _device_code(variant, toolchain, sources)
    objects = {
        **dict(binding_units(variant, toolchain, sources)),
        **dict(component_units(variant, toolchain, sources)),
        **dict(nvcc_units(variant, toolchain, sources)),
        **dict(support_units(variant, toolchain, sources)),
        "identity": identity_unit(variant, toolchain, sources),
    }
    if variant.toolkit is not None:
        objects["device images"] = images_unit(
            variant, _fatbins(variant, codes, toolchain, sources), toolchain, sources
        )
    return VariantUnits(
        plan=variant,
        link=_link(variant, tuple(objects.values()), toolchain, sources),
        device_code=codes,
        objects=objects,
    )


def _device_code(variant: VariantPlan, toolchain: Toolchain, sources: Sources) -> tuple[tuple[str, Arch, Unit], ...]:
    if variant.toolkit is None:
        return ()
    toolkit = toolchain.toolkits[variant.toolkit]
    return tuple(
        (device.name, arch, device_unit(device, arch, variant, toolkit, sys.executable, sources))
        for device in variant.kernel.devices
        for arch in variant.archs[device.name]
    )


def _fatbins(
    variant: VariantPlan, codes: tuple[tuple[str, Arch, Unit], ...], toolchain: Toolchain, sources: Sources
) -> tuple[Unit, ...]:
    assert variant.toolkit is not None
    toolkit = toolchain.toolkits[variant.toolkit]
    by_device = {
        device.name: tuple((arch, unit) for name, arch, unit in codes if name == device.name)
        for device in variant.kernel.devices
    }
    return tuple(
        fatbin_unit(device, own, variant.kernel, toolkit, sys.executable, sources) for device, own in by_device.items()
    )


def _link(variant: VariantPlan, objects: tuple[Unit, ...], toolchain: Toolchain, sources: Sources) -> Unit:
    floor, nvcc = toolchain.floor, toolchain.nvccs[variant.nvcc] if variant.nvcc else None
    return Unit(
        kind="link",
        label=variant.label,
        output=f"{variant.op_id}.abi3.so",
        argv=(
            "@cxx@",
            *_LINK_FLAGS,
            *(f"@in{index}@" for index in range(len(objects))),
            *_floor_arguments(floor, variant),
            *([f"@cuda@/{nvcc.cudart.relative_to(nvcc.root).as_posix()}"] if nvcc else []),
            "-o",
            "@out@",
        ),
        places={
            "cxx": toolchain.host.cxx,
            "templates": str(templates() / "build"),
            "floor": str(floor.root),
            "torch": str(floor.torch),
            **({"cuda": str(nvcc.root)} if nvcc else {}),
        },
        tools={
            "host compiler": toolchain.host.identity,
            "portability floor": floor.digest,
            **({f"nvcc {nvcc.version}": nvcc.digest} if nvcc else {}),
        },
        files={f"template {_EXPORTS}": sources.file(templates() / "build" / _EXPORTS)},
        inputs=objects,
    )


def _floor_arguments(floor: Floor, variant: VariantPlan) -> list[str]:
    key = "nvcc" if variant.nvcc else variant.backend
    if key not in floor.link:
        raise CompileError(f"There is no link line for backend {variant.backend}.", where=variant.label)
    # The floor's digest is in the key; where it lies must not be.
    return [
        argument.replace(str(floor.torch), "@torch@").replace(str(floor.root), "@floor@")
        for argument in floor.link[key]
    ]
