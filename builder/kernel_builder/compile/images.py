"""Units of device code: one per source × arch × toolkit, packed per toolkit, embedded per kernel and toolkit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.compile import device as device_worker
from kernel_builder.compile import fatbin as fatbin_worker
from kernel_builder.compile.sources import placed, project_places
from kernel_builder.compile.units import Unit
from kernel_builder.resources import templates
from kernel_builder.spec.sources import device_folders

if TYPE_CHECKING:
    from kernel_builder.compile.sources import Sources
    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.spec.model import Device, Kernel
    from kernel_builder.toolchain.model import Toolchain, Toolkit
    from kernel_loader.format.archs import Arch

# -I and -S: no user site, no environment, no site-packages; a worker needs the standard library only.
_PYTHON = ("@python@", "-I", "-S", "@worker@")
_DEVICE_MEMORY = 1.0  # GiB: what NVRTC takes for a large template kernel


def device_unit(
    device: Device, arch: Arch, variant: VariantPlan, toolkit: Toolkit, python: str, sources: Sources
) -> Unit:
    """One device source compiled for one architecture: a cubin, or PTX when ``arch.ptx``."""
    kernel = variant.kernel
    worker = Path(device_worker.__file__)
    target = f"compute_{arch.sm}" if arch.ptx else f"sm_{arch.sm}"
    # Links in the worker's folder are called like the placeholders, the same on every machine.
    folders = ["/".join(placed(folder, kernel)) for folder in dict.fromkeys(device_folders(kernel, device.include))]
    headers = [f"cuda/{path.relative_to(toolkit.root).as_posix()}" for path in toolkit.include]
    views = [f"--view={name}=@{name}@" for name in (*project_places(kernel), "cuda")]
    return Unit(
        kind="device",
        label=f"{kernel.name}: {device.source} {target} [device {device.name}, CUDA {toolkit.version}]",
        output=f"{device.name}.{target}.{'ptx' if arch.ptx else 'cubin'}",
        argv=(
            *_PYTHON,
            f"--nvrtc=@cuda@/{toolkit.nvrtc.relative_to(toolkit.root).as_posix()}",
            f"--builtins=@cuda@/{toolkit.nvrtc_builtins.relative_to(toolkit.root).as_posix()}",
            *views, f"--source=kernel/{device.source}", "--output=@out@", "--",
            f"--gpu-architecture={target}", "--std=c++17", *(["-lineinfo"] if variant.lineinfo else []),
            *(f"-I{folder}" for folder in (*folders, *headers)),
            *(f"-D{define}" for define in device.defines),
        ),
        places={"python": python, "worker": str(worker), "cuda": str(toolkit.root), **project_places(kernel)},
        tools={f"CUDA toolkit {toolkit.version}": toolkit.digest},
        files={
            f"step {worker.name}": sources.file(worker),
            **sources.reached(kernel.root / device.source, device_folders(kernel, device.include), kernel),
        },
        memory=_DEVICE_MEMORY,
    )  # fmt: skip


def fatbin_unit(
    device: str, codes: tuple[tuple[Arch, Unit], ...], kernel: Kernel, toolkit: Toolkit, python: str, sources: Sources
) -> Unit:
    """All code of one device source for one toolkit, packed."""
    worker = Path(fatbin_worker.__file__)
    return Unit(
        kind="fatbin",
        label=f"{kernel.name}: {device}.fatbin [CUDA {toolkit.version}]",
        output=f"{device}.fatbin",
        argv=(
            *_PYTHON,
            f"--nvfatbin=@cuda@/{toolkit.nvfatbin.relative_to(toolkit.root).as_posix()}",
            f"--name={device}",
            "--output=@out@",
            *(f"--{'ptx' if arch.ptx else 'cubin'}={arch.sm}:@in{index}@" for index, (arch, _) in enumerate(codes)),
        ),
        places={"python": python, "worker": str(worker), "cuda": str(toolkit.root)},
        tools={f"CUDA toolkit {toolkit.version}": toolkit.digest},
        files={f"step {worker.name}": sources.file(worker)},
        inputs=tuple(unit for _, unit in codes),
    )


def images_unit(variant: VariantPlan, fatbins: tuple[Unit, ...], toolchain: Toolchain, sources: Sources) -> Unit:
    """The generated object that holds the fatbins and the table that names them."""
    template = "device_images.S.j2"
    return Unit(
        kind="images",
        label=f"{variant.kernel.name}: device images [CUDA {variant.toolkit}]",
        output="device_images.o",
        argv=("@cxx@", "-c", "@source@", "-o", "@out@"),
        places={"cxx": toolchain.host.cxx},
        tools={"host compiler": toolchain.host.identity},
        files={f"template {template}": sources.file(templates() / "build" / template)},
        inputs=fatbins,
        template=template,
        context={"names": [unit.output.removesuffix(".fatbin") for unit in fatbins]},
    )
