"""Variant names ⇄ values: ``torch-stable-abi210-cu128-x86_64-linux``, ``torch213-cxx11-cpu-x86_64-linux``.

Every value prints to exactly one name and every name that parses prints back to itself, so a number that the grammar
cannot hold (CUDA 13.10 would read back as 131.0) is refused when the value is made.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from kernel_loader.format.versions import MajorMinor

FrameworkKind = Literal["torch", "torch-stable-abi", "tvm-ffi"]

_TOKEN = re.compile(r"[A-Za-z0-9_.]+")
_FRAMEWORKS = (
    ("torch-stable-abi", re.compile(r"torch-stable-abi(\d)(\d+)-(.+)")),
    ("torch", re.compile(r"torch(\d)(\d+)(?:-(cxx11|cxx98))?-(.+)")),
    ("tvm-ffi", re.compile(r"tvm-ffi(\d)(\d+)-(.+)")),
)
# Digits of the major version in a backend's tag; the remaining ones are the minor.
_BACKEND_TAGS = {"cuda": ("cu", 2), "rocm": ("rocm", 1), "xpu": ("xpu", 4), "cann": ("cann", 1)}
_PLAIN_BACKENDS = ("cpu", "metal", "neuron", "tpu")
_NOARCH_NAMES = ("cpu", "cuda", "metal", "neuron", "npu", "rocm", "tpu", "xpu", "universal")


class VariantNameError(ValueError):
    """A folder name that is no variant this version knows, or a value that has no name."""


@dataclass(frozen=True, order=True, slots=True)
class Framework:
    """What the variant links against.

    Attributes:
        kind: ``torch`` (full C++ ABI of one minor), ``torch-stable-abi`` (this minor or newer), ``tvm-ffi``.
        version: torch or tvm-ffi version.
        cxx_abi: ``"cxx11"``, ``"cxx98"`` or ``""`` when the name does not say.
    """

    kind: FrameworkKind
    version: MajorMinor
    cxx_abi: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.version.major <= 9:
            raise VariantNameError(f"{self.kind} {self.version} has no variant name: the major version has one digit")
        if self.cxx_abi and (self.kind != "torch" or self.cxx_abi not in ("cxx11", "cxx98")):
            raise VariantNameError(f"{self.kind} variants carry no C++ ABI tag {self.cxx_abi!r}")

    def __str__(self) -> str:
        tag = f"-{self.cxx_abi}" if self.cxx_abi else ""
        return f"{self.kind}{self.version.major}{self.version.minor}{tag}"


@dataclass(frozen=True, order=True, slots=True)
class Backend:
    """Compute backend: ``cpu``, ``cuda`` with its toolkit version, …; ``version`` is None where names have none."""

    name: str
    version: MajorMinor | None = None

    def __post_init__(self) -> None:
        if self.name in _PLAIN_BACKENDS and self.version is None:
            return
        if self.name not in _BACKEND_TAGS or self.version is None:
            raise VariantNameError(f"no backend {self.name!r} with version {self.version}")
        width = _BACKEND_TAGS[self.name][1]
        if len(str(self.version.major)) != width or self.version.minor > 9:
            raise VariantNameError(
                f"{self.name} {self.version} has no variant name: {width} digits of major and one of minor version"
            )

    def __str__(self) -> str:
        if self.version is None:
            return self.name
        return f"{_BACKEND_TAGS[self.name][0]}{self.version.major}{self.version.minor}"

    @classmethod
    def parse(cls, text: str) -> Backend:
        """Read ``cu128``, ``cpu``, ``rocm72``, ``xpu20253``."""
        if text in _PLAIN_BACKENDS:
            return cls(text)
        for name, (tag, width) in _BACKEND_TAGS.items():
            digits = text.removeprefix(tag)
            if digits != text and digits.isascii() and digits.isdigit() and len(digits) == width + 1:
                return cls(name, MajorMinor(int(digits[:width]), int(digits[width:])))
        raise VariantNameError(f"{text!r} is not a backend that this version knows")


@dataclass(frozen=True, order=True, slots=True)
class ArchVariant:
    """A variant with machine code."""

    framework: Framework
    backend: Backend
    cpu: str
    os: str

    def __post_init__(self) -> None:
        for token in (self.cpu, self.os):
            if not _TOKEN.fullmatch(token):
                raise VariantNameError(f"{token!r} cannot be part of a variant name")

    def __str__(self) -> str:
        return f"{self.framework}-{self.backend}-{self.cpu}-{self.os}"


@dataclass(frozen=True, order=True, slots=True)
class NoarchVariant:
    """A Python-only variant for one backend, or ``universal``."""

    backend: str

    def __post_init__(self) -> None:
        if self.backend not in _NOARCH_NAMES:
            raise VariantNameError(f"no Python-only variant for backend {self.backend!r}")

    def __str__(self) -> str:
        return f"torch-{self.backend}"


Variant = ArchVariant | NoarchVariant


def parse(name: str) -> Variant:
    """Read a variant folder name.

    Raises:
        VariantNameError: The name is not one; ``str(parse(name)) == name`` holds for every name that is.
    """
    variant = _parse(name)
    if str(variant) != name:
        raise VariantNameError(f"{name!r} does not read back: it would print as {str(variant)!r}")
    return variant


def _parse(name: str) -> Variant:
    if name.removeprefix("torch-") in _NOARCH_NAMES:
        return NoarchVariant(name.removeprefix("torch-"))
    for kind, pattern in _FRAMEWORKS:
        match = pattern.fullmatch(name)
        if match is None:
            continue
        major, minor, *abi, rest = match.groups()
        parts = rest.split("-")
        if len(parts) != 3 or not (major + minor).isascii():
            break
        framework = Framework(kind, MajorMinor(int(major), int(minor)), abi[0] or "" if abi else "")  # type: ignore[arg-type]
        return ArchVariant(framework, Backend.parse(parts[0]), parts[1], parts[2])
    raise VariantNameError(f"{name!r} is not a variant name that this version knows")
