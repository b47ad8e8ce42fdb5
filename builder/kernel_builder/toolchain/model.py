"""What a plan is compiled with. Every value names its content by a digest, never by its folder."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernel_builder.plan.model import Plan
    from kernel_loader.format.versions import MajorMinor


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolkit:
    """An NVRTC device compiler with headers, unpacked into the store.

    Attributes:
        version: e.g. 12.8.
        release: Full version of the compiler, e.g. ``12.8.93``.
        digest: Hex SHA-256 over all its files: the compiler's identity in unit keys.
        root: Folder in the store that holds everything below.
        nvrtc, nvrtc_builtins, nvfatbin: Shared libraries.
        include: Include folders, in order.
    """

    version: MajorMinor
    release: str
    digest: str
    root: Path
    nvrtc: Path
    nvrtc_builtins: Path
    nvfatbin: Path
    include: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchSdk:
    """Headers of one torch version. ``release`` is e.g. ``2.10.0``; ``include`` holds torch's include folders."""

    version: MajorMinor
    release: str
    digest: str
    root: Path
    include: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class HostCompiler:
    """The machine's C++ compiler: ``identity`` is its version line and target, part of unit keys.

    ``cxx`` is a command in shell syntax with absolute paths, such as ``/usr/bin/ccache /usr/bin/g++``; split it with
    shlex.
    """

    cxx: str
    version: tuple[int, int, int]
    identity: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Floor:
    """Link-time stand-ins that hold libraries at the manylinux_2_28 floor.

    Attributes:
        root: Folder with the stub libraries, named by soname, and ``libfloor_compat.a``.
        torch: Folder with empty libraries that carry torch's sonames.
        digest: Hex SHA-256 over the stubs and the archive.
        link: Arguments after the objects and before ``-o``, complete and in order, torch's libraries included;
            ``cpu`` and ``cuda`` are the keys.
    """

    root: Path
    torch: Path
    digest: str
    link: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True, slots=True)
class Toolchain:
    """Everything one plan needs, provisioned. ``downloaded`` counts bytes fetched by this run."""

    plan: Plan
    host: HostCompiler
    floor: Floor
    toolkits: Mapping[MajorMinor, Toolkit]
    sdks: Mapping[MajorMinor, TorchSdk]
    downloaded: int = 0
