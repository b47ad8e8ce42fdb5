"""What a plan is compiled with. Every value names its content by a digest, never by its folder."""

from __future__ import annotations

from dataclasses import dataclass, field
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
class Nvcc:
    """A CUDA compiler driver for ``.cu`` sources with host code.

    Attributes:
        version: e.g. 13.0; ``release`` is e.g. ``13.0.88``.
        digest: Hex SHA-256 over all its files, or over what identifies a system toolkit: its identity in unit keys.
        root: Folder that everything below lies in.
        nvcc: The driver, run by absolute path.
        include: Folders of CUDA headers in order, those of cublas, cusparse, cusolver … that torch's headers include
            among them.
        cudart: The shared run-time library to link with, whose soname is ``libcudart.so.<major>``.
        host: Shell command of the host compiler that it is run with (``-ccbin``), within its supported range.
        source: Where it came from: ``wheels``, ``debian``, ``archive`` or ``system``.
        host_identity: Identity of that host compiler, part of unit keys: it may be another than the Toolchain's.
        origin: What pins its bytes, for provenance: the lock's digest, a release manifest with its SHA-256, or where an
            installed one was found.
    """

    version: MajorMinor
    release: str
    digest: str
    root: Path
    nvcc: Path
    include: tuple[Path, ...]
    cudart: Path
    host: str
    source: str
    host_identity: str = ""
    origin: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchSdk:
    """Headers of one torch version. ``release`` is e.g. ``2.10.0``; ``include`` holds torch's include folders."""

    version: MajorMinor
    release: str
    digest: str
    root: Path
    include: tuple[Path, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchSymbols:
    """Names that the libraries of one torch release export. ``root`` holds a text file for each backend's libraries."""

    version: MajorMinor
    release: str
    root: Path


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
            the keys are ``cpu``, ``cuda``, and ``nvcc`` for CUDA variants with ``.cu`` sources, which link libc10_cuda
            too (libcudart comes from the Nvcc).
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
    nvccs: Mapping[MajorMinor, Nvcc] = field(default_factory=dict)
    symbols: Mapping[MajorMinor, TorchSymbols] = field(default_factory=dict)
    downloaded: int = 0
