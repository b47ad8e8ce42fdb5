"""Reads matrix.toml: the rows of torch × CUDA that are built, and what each CUDA toolkit can compile."""

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


@dataclass(frozen=True, kw_only=True, slots=True)
class Row:
    """One line of the matrix: a torch ABI and one backend.

    Attributes:
        abi: ``stable`` serves ``torch`` and newer, ``full`` serves exactly ``torch``.
        sdk: Torch version whose headers are compiled against.
        platform: CPU and operating system, ``x86_64-linux``.
    """

    abi: Literal["stable", "full"]
    torch: MajorMinor
    sdk: MajorMinor
    backend: Backend
    platform: str

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
class ToolkitArchs:
    """What a CUDA toolkit can compile (``known``, without PTX marks), and what it compiles by default."""

    version: MajorMinor
    known: frozenset[Arch]
    default: tuple[Arch, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Matrix:
    """Rows in file order, toolkits by version."""

    rows: tuple[Row, ...]
    toolkits: Mapping[MajorMinor, ToolkitArchs]

    @property
    def backends(self) -> tuple[str, ...]:
        """Names of the backends that rows build, sorted."""
        return tuple(sorted({row.backend.name for row in self.rows}))


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
        rows = tuple(row for table in data["row"] for row in _rows(table, data["platform"]))
        toolkits = {toolkit.version: toolkit for toolkit in map(_toolkit, data["toolkit"])}
    except KeyError as error:
        raise ValueError(f"the matrix lacks the key {error}") from error
    names = [str(row.variant) for row in rows]
    if len(set(names)) != len(names):
        raise ValueError("two rows of the matrix build the same variant")
    if missing := {row.backend.version for row in rows if row.backend.version} - toolkits.keys():
        raise ValueError(f"the matrix has no toolkit {sorted(map(str, missing))}")
    return Matrix(rows=rows, toolkits=toolkits)


def _rows(table: Mapping[str, Any], platform: str) -> list[Row]:
    torch = MajorMinor.parse(table["torch"])
    sdk = MajorMinor.parse(table.get("sdk", table["torch"]))
    if table["abi"] not in ("stable", "full") or sdk < torch:
        raise ValueError(f"torch {torch}: abi is stable or full, and sdk is not older than torch")
    return [
        Row(abi=table["abi"], torch=torch, sdk=sdk, backend=Backend.parse(name), platform=platform)
        for name in table["backends"]
    ]


def _toolkit(table: Mapping[str, Any]) -> ToolkitArchs:
    ptx = Arch.parse(f"{table['ptx']}+PTX")
    default = (*(Arch.parse(text) for text in table["default"]), ptx)
    return ToolkitArchs(
        version=MajorMinor.parse(table["version"]),
        known=frozenset(Arch.parse(text) for text in table["archs"]),
        default=default,
    )
