"""The GPU code inside a library, container by container."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.check.elf import NotAnElfError, section_of
from kernel_builder.check.fatbin import FatbinError, read_fatbins

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from kernel_builder.check.elf import Elf
    from kernel_builder.check.fatbin import Region
    from kernel_builder.compile.model import Artefact
    from kernel_loader.format.archs import Arch

# Relocatable device code is linked into the second one.
_SECTIONS = (".nv_fatbin", "__nv_relfatbin")


@dataclass(frozen=True, kw_only=True, slots=True)
class Image:
    """One fat binary.

    Attributes:
        device: The device source that it was packed from, or ``kernel.<key>`` of the component whose ``.cu`` source
            nvcc made it from; empty when unknown.
    """

    device: str
    regions: tuple[Region, ...]

    @property
    def archs(self) -> frozenset[Arch]:
        """Architectures with code inside; PTX and machine code are separate entries."""
        return frozenset(region.arch for region in self.regions)


def read_images(path: Path, elf: Elf) -> tuple[Image, ...]:
    """Fat binaries of a library, named by the identifiers they were packed under; nvcc gives none.

    Raises:
        FatbinError: A section that should hold them does not.
    """
    images = []
    with path.open("rb") as stream:
        for name in _SECTIONS:
            offset, size = elf.sections.get(name, (0, 0))
            stream.seek(offset)
            data = stream.read(size)
            if len(data) < size:
                raise FatbinError(f"section {name} is cut off")
            images += [Image(device=_label(regions), regions=regions) for regions in read_fatbins(data)]
    return tuple(images)


def name_images(images: tuple[Image, ...], artefact: Artefact) -> tuple[Image, ...]:
    """The images with what each was made from, proven by the cubins and objects that the build left behind.

    Raises:
        FatbinError: An object's code cannot be read.
    """
    built = [(code.device, code.path.read_bytes()) for code in artefact.device_code if not code.arch.ptx]
    objects = list(_component_images(artefact))
    named = []
    for image in images:
        same = next((made for made in objects if made.regions == image.regions), None)
        if same is not None:
            objects.remove(same)
        named.append(same or Image(device=_origin(image, built) or image.device, regions=image.regions))
    return tuple(named)


def _component_images(artefact: Artefact) -> Iterator[Image]:
    """What nvcc put into the objects of each component."""
    for component in artefact.plan.components:
        for source in component.sources:
            if source.endswith(".cu") and source in artefact.objects:
                for regions in _object_code(artefact.objects[source]):
                    yield Image(device=f"kernel.{component.key}", regions=regions)


def _object_code(path: Path) -> tuple[tuple[Region, ...], ...]:
    try:
        return read_fatbins(section_of(path, _SECTIONS[0]))
    except NotAnElfError as error:
        raise FatbinError(f"{path.name}: {error}") from error


def device_codes(image: Image) -> Mapping[Arch, bytes]:
    """Machine code of an image that is not compressed."""
    return {r.arch: r.code for r in image.regions if r.code is not None and not r.arch.ptx}


def _label(regions: tuple[Region, ...]) -> str:
    names = {region.name for region in regions}
    return names.pop() if len(names) == 1 else ""


def _origin(image: Image, built: list[tuple[str, bytes]]) -> str | None:
    codes = [code.rstrip(b"\0") for code in device_codes(image).values()]
    return next((device for device, data in built if data.rstrip(b"\0") in codes), None)
