"""Reads matrix.toml: which torch builds exist, which bindings and toolkits there are, and what they can compile."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kernel_builder.toml import parse_toml
from kernel_loader.format.archs import Arch
from kernel_loader.format.variants import ArchVariant, Backend, Framework
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Mapping

CPU = Backend("cpu")


@dataclass(frozen=True, kw_only=True, slots=True)
class Torch:
    """A torch minor and its CUDA builds → architectures that its wheels have machine code for."""

    version: MajorMinor
    cuda: Mapping[MajorMinor, tuple[Arch, ...]]

    @property
    def backends(self) -> tuple[Backend, ...]:
        """The builds that exist, cpu first."""
        return (CPU, *(Backend("cuda", version) for version in self.cuda))


@dataclass(frozen=True, kw_only=True, slots=True)
class Stable:
    """A stable-ABI binding: compiled for ``target`` with the headers of ``sdk``, runs from ``torch`` on."""

    target: MajorMinor
    torch: MajorMinor
    sdk: MajorMinor


@dataclass(frozen=True, kw_only=True, slots=True)
class ToolkitArchs:
    """What a CUDA version can compile (``known``, without PTX marks), and what it compiles by default.

    Attributes:
        driver: Oldest Linux driver that takes its PTX.
        nvcc: An nvcc of this version is locked.
    """

    version: MajorMinor
    known: frozenset[Arch]
    default: tuple[Arch, ...]
    driver: str = ""
    nvcc: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Gpu:
    """A class of GPUs: compute capability, names that people know them by, and the oldest driver, "" for any."""

    capability: tuple[int, int]
    name: str
    driver: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """A torch ABI and a backend: what one variant of a kernel is made for.

    Attributes:
        abi: ``stable`` serves ``torch`` and newer, ``full`` serves exactly ``torch``.
        sdk: Torch version whose headers are compiled against.
        target: TORCH_TARGET_VERSION of the stable ABI, None for the full one.
        platform: CPU and operating system, ``x86_64-linux``.
    """

    abi: Literal["stable", "full"]
    torch: MajorMinor
    sdk: MajorMinor
    backend: Backend
    platform: str
    target: MajorMinor | None = None

    @property
    def variant(self) -> ArchVariant:
        """The variant that a kernel gets from this row."""
        cpu, os = self.platform.split("-")
        if self.abi == "stable":
            framework = Framework("torch-stable-abi", self.torch)
        else:
            framework = Framework("torch", self.torch, "cxx11" if os == "linux" else "")
        return ArchVariant(framework, self.backend, cpu, os)


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """The window: torches, stable bindings and GPU classes in file order, toolkits by version."""

    platform: str
    torches: tuple[Torch, ...]
    stables: tuple[Stable, ...]
    toolkits: Mapping[MajorMinor, ToolkitArchs]
    gpus: tuple[Gpu, ...]

    @property
    def backends(self) -> tuple[str, ...]:
        """Names of the backends that variants are built for, sorted."""
        return tuple(sorted({backend.name for torch in self.torches for backend in torch.backends}))

    @property
    def cuda(self) -> tuple[MajorMinor, ...]:
        """CUDA versions that some torch is built with, ascending."""
        return tuple(sorted({version for torch in self.torches for version in torch.cuda}))

    @property
    def nvccs(self) -> tuple[MajorMinor, ...]:
        """Versions of the locked nvccs, ascending."""
        return tuple(sorted(version for version, toolkit in self.toolkits.items() if toolkit.nvcc))


@cache
def default_matrix() -> Matrix:
    """The matrix that travels with this package."""
    return parse(Path(__file__).with_name("matrix.toml").read_text(encoding="utf-8"))


def parse(text: str) -> Matrix:
    """Read a matrix file.

    Raises:
        ValueError: It is not TOML, lacks a key, or holds a version, backend or architecture that cannot be.
    """
    data = parse_toml(text)
    try:
        matrix = Matrix(
            platform=data["platform"],
            torches=tuple(map(_torch, data["torch"])),
            stables=tuple(map(_stable, data.get("stable", ()))),
            toolkits={toolkit.version: toolkit for toolkit in map(_toolkit, data["toolkit"])},
            gpus=tuple(map(_gpu, data["gpu"])),
        )
    except KeyError as error:
        raise ValueError(f"the matrix lacks the key {error}") from error
    for torch in matrix.torches:
        Framework("torch", torch.version), torch.backends  # a version without a variant name raises
    if missing := set(matrix.cuda) - matrix.toolkits.keys():
        raise ValueError(f"the matrix has no toolkit {sorted(map(str, missing))}")
    for versions in ([t.version for t in matrix.torches], [s.target for s in matrix.stables]):
        if versions != sorted(set(versions)):
            raise ValueError("torch versions and stable targets of the matrix ascend, each once")
    return matrix


def _torch(table: Mapping[str, Any]) -> Torch:
    return Torch(
        version=MajorMinor.parse(table["version"]),
        cuda={
            MajorMinor.parse(version): tuple(map(Arch.parse, archs)) for version, archs in table.get("cuda", {}).items()
        },
    )


def _stable(table: Mapping[str, Any]) -> Stable:
    stable = Stable(**{key: MajorMinor.parse(table[key]) for key in ("target", "torch", "sdk")})
    if not stable.torch <= stable.target <= stable.sdk:
        raise ValueError(f"stable target {stable.target}: torch is not newer, and sdk not older, than the target")
    return stable


def _toolkit(table: Mapping[str, Any]) -> ToolkitArchs:
    ptx = Arch.parse(f"{table['ptx']}+PTX")
    return ToolkitArchs(
        version=MajorMinor.parse(table["version"]),
        known=frozenset(Arch.parse(text) for text in table["archs"]),
        default=(*(Arch.parse(text) for text in table["default"]), ptx),
        driver=table["driver"],
        nvcc=table.get("nvcc", False),
    )


def _gpu(table: Mapping[str, Any]) -> Gpu:
    capability = Arch.parse(table["capability"])
    return Gpu(capability=(capability.major, capability.minor), name=table["name"], driver=table.get("driver", ""))
