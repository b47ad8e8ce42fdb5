"""The architectures inside the binary are exactly those that were planned, or that metadata.json declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.check.cubin import read_cubin
from kernel_builder.check.device_code import device_codes
from kernel_builder.check.elf import NotAnElfError
from kernel_loader.format.archs import Arch

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kernel_builder.check.device_code import Image
    from kernel_builder.check.model import Finding
    from kernel_builder.check.subject import Library

_HINT = "the architectures come from build.toml and kernel-builder.toml; build again"


def check_planned_archs(
    library: Library, images: tuple[Image, ...], planned: Mapping[str, tuple[Arch, ...]]
) -> Iterator[Finding]:
    """Each device source and ``.cu`` file has code for each of its planned architectures, and no other (``archs``)."""
    found: dict[str, list[frozenset[Arch]]] = {}
    for image in images:
        found.setdefault(image.device, []).append(image.archs)
    for device in sorted(found.keys() - planned.keys()):
        yield library.finding("archs", f"It holds GPU code {device!r}, which the kernel does not plan.", hint=_HINT)
    for device, archs in planned.items():
        inside = found.get(device, [frozenset()])
        in_all, in_any = frozenset.intersection(*inside), frozenset.union(*inside)
        yield from _compare(library, f"{device}: ", _missing(archs, in_all), _extra(archs, in_any))


def check_declared_archs(library: Library, images: tuple[Image, ...], declared: tuple[Arch, ...]) -> Iterator[Finding]:
    """metadata.json's ``archs`` are what the binary serves (``archs``).

    A variant of this toolchain declares what all of its images serve. Other builders declare the union.
    """
    if not images and not declared and library.variant.backend.name == "cuda":
        yield library.finding("archs", "A cuda variant that holds no GPU code.", severity="warning")
    union: frozenset[Arch] = frozenset().union(*(image.archs for image in images))
    groups = [image.archs for image in images] if library.own else [union]
    served = {arch for arch in union if all(serves(group, arch) for group in groups)}
    unserved = [arch for arch in declared if not all(serves(group, arch) for group in groups)]
    missing = dict.fromkeys([*_missing(declared, union), *unserved])
    yield from _compare(library, "metadata.json: ", missing, _extra(declared, served))


def check_regions(library: Library, images: tuple[Image, ...]) -> Iterator[Finding]:
    """The labels by which the driver picks code say what the code is (``fatbin-label``)."""
    for image in images:
        for arch, code in device_codes(image).items():
            try:
                cubin = read_cubin(code)
            except NotAnElfError as error:
                yield library.finding("fatbin-label", f"The code labelled {arch} of {_named(image)}: {error}.")
                continue
            inside = Arch(cubin.sm // 10, cubin.sm % 10, "a" if cubin.accelerated else "")
            if (inside.major, inside.minor) != (arch.major, arch.minor) or (cubin.accelerated and arch.feature != "a"):
                yield library.finding("fatbin-label", f"Code for {inside} is labelled {arch} in {_named(image)}.")


def _named(image: Image) -> str:
    return image.device or "a fat binary without a name"


def _compare(library: Library, what: str, missing: Iterable[Arch], extra: Iterable[Arch]) -> Iterator[Finding]:
    for arch in missing:
        yield library.finding("archs", f"{what}{_kind(arch)} for {_bare(arch)} is promised but not inside.", hint=_HINT)
    for arch in extra:
        yield library.finding("archs", f"{what}{_kind(arch)} for {_bare(arch)} is inside but not promised.", hint=_HINT)


def _kind(arch: Arch) -> str:
    return "PTX" if arch.ptx else "machine code"


def _bare(arch: Arch) -> str:
    return str(arch).removesuffix("+PTX")


def _missing(promised: Iterable[Arch], inside: Iterable[Arch]) -> list[Arch]:
    return [arch for arch in promised if arch not in inside]


def _extra(promised: Iterable[Arch], inside: Iterable[Arch]) -> list[Arch]:
    """``12.0+PTX`` promises PTX and allows machine code beside it."""
    allowed = {*promised, *(Arch(a.major, a.minor, a.feature) for a in promised)}
    return sorted(arch for arch in inside if arch not in allowed)


def serves(codes: Iterable[Arch], wanted: Arch) -> bool:
    """Whether some of the codes runs where code for ``wanted`` does; PTX is served by PTX only."""
    capability = (wanted.major, wanted.minor)
    if wanted.ptx:
        return any(code.ptx and (code.major, code.minor) <= capability for code in codes)
    return any(code.covers(capability) for code in codes)
