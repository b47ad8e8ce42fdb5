"""The exported names of each torch release, kept in the store; and the short table of its C shim that is shipped."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.files import tree_digest
from kernel_builder.toolchain.model import TorchSymbols
from kernel_builder.toolchain.symbols.libraries import exported_names
from kernel_builder.toolchain.wheels import UnfitWheelError, read_directory
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from kernel_builder.toolchain.lock import Lock, LockedItem
    from kernel_builder.toolchain.wheels import ByteSource

SHIM_TABLE = Path(__file__).with_name("torch_shim.txt")
# Table → the libraries that a variant of this backend is loaded beside.
_LIBRARIES = {
    "cpu.txt": ("libc10.so", "libtorch_cpu.so"),
    "cuda.txt": ("libc10_cuda.so", "libtorch_cuda.so"),
}
_SHIM = ("aoti_", "torch_")  # how the names of the C shim begin
_HEAD = """\
# The C shim of torch's stable ABI: function, first and last torch whose libraries export it without a gap up to there;
# `cuda` when only builds of torch for CUDA do. Read by `kernel-builder toolchain lock` out of the wheels of these
# releases, whose exported names the lock pins by these digests:
"""
_CUDA_ONLY = "cuda"


def read_tables(source: ByteSource) -> dict[str, bytes]:
    """Read the exported names out of a torch wheel: table file → its content, a name per line.

    Raises:
        UnfitWheelError: The wheel lacks a library, or one cannot be read.
    """
    members = {member.name: member for member in read_directory(source)}
    tables = {}
    for table, libraries in _LIBRARIES.items():
        names: set[str] = set()
        for library in libraries:
            path = f"torch/lib/{library}"
            if path not in members:
                raise UnfitWheelError(f"holds no {path}")
            names.update(exported_names(source, members[path]))
        tables[table] = "".join(f"{name}\n" for name in sorted(names)).encode("ascii")
    return tables


def digest_of(tables: Mapping[str, bytes]) -> str:
    """The digest that the lock pins."""
    return tree_digest({name: hashlib.sha256(data).hexdigest() for name, data in tables.items()})


def folder_of(item: LockedItem, store: Path) -> Path:
    """Where the tables of a release lie in the store, or would."""
    return store / "symbols" / f"torch-{item.release}-{item.symbols[:12]}"


def stored(lock: Lock, store: Path) -> dict[MajorMinor, TorchSymbols]:
    """The tables that the store has, by torch version."""
    known = (symbols_at(folder_of(item, store), item) for item in lock.sdks.values())
    return {symbols.version: symbols for symbols in known if symbols.root.is_dir()}


def symbols_at(folder: Path, item: LockedItem) -> TorchSymbols:
    """The tables of a release that lie in a folder of the store."""
    return TorchSymbols(version=item.version, release=item.release, root=folder)


def names_of(symbols: TorchSymbols, backend: str) -> frozenset[str]:
    """Every name that a variant of ``backend`` (``cpu`` or ``cuda``) may import from torch."""
    tables = ("cpu.txt",) if backend == "cpu" else tuple(_LIBRARIES)
    return frozenset().union(*(_read(symbols.root / table) for table in tables))


@cache
def _read(path: Path) -> frozenset[str]:
    return frozenset(path.read_text("ascii").split())


def shim_table(tables: Iterable[TorchSymbols], pinned: Mapping[str, str]) -> str:
    """Text of the shipped table.

    Args:
        tables: The exported names of each torch.
        pinned: Release → the lock's digest over them.
    """
    known = {symbols.version: symbols for symbols in tables}
    everywhere = {version: _shim_of(symbols, "cpu") for version, symbols in known.items()}
    exported = {version: _shim_of(symbols, "cuda") for version, symbols in known.items()}
    rows = []
    for name in sorted(frozenset().union(*exported.values())):
        first, last = _span(name, exported)
        mark = "" if any(name in names for names in everywhere.values()) else f" {_CUDA_ONLY}"
        rows.append(f"{name} {first} {last}{mark}\n")
    return _HEAD + "".join(f"# {release} {digest}\n" for release, digest in pinned.items()) + "".join(rows)


def _shim_of(symbols: TorchSymbols, backend: str) -> frozenset[str]:
    return frozenset(name for name in names_of(symbols, backend) if name.startswith(_SHIM))


def _span(name: str, exported: Mapping[MajorMinor, Collection[str]]) -> tuple[MajorMinor, MajorMinor]:
    """The newest run of versions that have the name: one that was away for a while counts from its return."""
    versions = sorted(exported)
    while name not in exported[versions[-1]]:
        versions.pop()
    last = versions[-1]
    while len(versions) > 1 and name in exported[versions[-2]]:
        versions.pop()
    return versions[-1], last


@cache
def shim(backend: str = _CUDA_ONLY) -> Mapping[str, tuple[MajorMinor, MajorMinor]]:
    """Function of the C shim that a variant of ``backend`` may import → first and last torch that exports it."""
    rows = [line.split() for line in _lines() if not line.startswith("#")]
    return {
        name: (MajorMinor.parse(first), MajorMinor.parse(last))
        for name, first, last, *mark in rows
        if not (mark and backend == "cpu")
    }


@cache
def proven_by() -> Mapping[str, str]:
    """Release that the shipped table was read from → digest over all the names that it exports."""
    rows = (line.split() for line in _lines() if line.startswith("# "))
    return {row[1]: row[2] for row in rows if len(row) == 3 and row[1][0].isdigit()}


@cache
def covered() -> tuple[MajorMinor, ...]:
    """The torch versions that the shipped table was read from, ascending."""
    return tuple(sorted(MajorMinor.parse(release) for release in proven_by()))


def _lines() -> list[str]:
    return SHIM_TABLE.read_text("ascii").splitlines()
