"""The lock: which wheels make up each toolkit and torch SDK, and which bytes they must hold."""

from __future__ import annotations

from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kernel_builder.errors import ToolchainError
from kernel_builder.toml import parse_toml
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCK_FILE = Path(__file__).with_name("toolchains.lock.toml")
ItemKind = Literal["toolkit", "torch"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedFile:
    """One wheel file that holds the members: its name on the index, SHA-256 and size in bytes."""

    name: str
    sha256: str
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedWheel:
    """Members taken out of one release of one project.

    Attributes:
        include: Patterns of member names; ``*`` also matches slashes.
        tree: ``files.tree_digest`` of the members.
        members: How many they are; ``unpacked`` is their size in bytes.
        files: Wheels that hold the same members; any one will do.
    """

    project: str
    version: str
    include: tuple[str, ...]
    exclude: tuple[str, ...] = ()
    tree: str = ""
    members: int = 0
    unpacked: int = 0
    files: tuple[LockedFile, ...] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedItem:
    """A toolkit or a torch SDK.

    Attributes:
        digest: ``files.tree_digest`` over all members of all wheels.
        headers: Include folders relative to the item's root, in order.
        libraries: ``nvrtc``, ``nvrtc_builtins``, ``nvfatbin`` → path relative to the root; empty for torch.
    """

    kind: ItemKind
    version: MajorMinor
    release: str
    digest: str
    headers: tuple[str, ...]
    libraries: Mapping[str, str]
    wheels: tuple[LockedWheel, ...]

    @property
    def label(self) -> str:
        """``NVRTC 12.8.93`` or ``torch 2.10.0``, for people."""
        return f"{'torch' if self.kind == 'torch' else 'NVRTC'} {self.release}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Lock:
    """Everything that can be provisioned on x86_64 Linux."""

    toolkits: Mapping[MajorMinor, LockedItem]
    sdks: Mapping[MajorMinor, LockedItem]

    def toolkit(self, version: MajorMinor) -> LockedItem:
        """The toolkit of a CUDA version.

        Raises:
            ToolchainError: The lock has none.
        """
        return _lookup(self.toolkits, version, "CUDA toolkit")

    def sdk(self, version: MajorMinor) -> LockedItem:
        """The headers of a torch version.

        Raises:
            ToolchainError: The lock has none.
        """
        return _lookup(self.sdks, version, "torch SDK")


def _lookup(items: Mapping[MajorMinor, LockedItem], version: MajorMinor, what: str) -> LockedItem:
    if version in items:
        return items[version]
    known = [str(v) for v in sorted(items)]
    near = get_close_matches(str(version), known, n=1, cutoff=0.5)
    raise ToolchainError(
        f"There is no {what} {version} in the lock, which has {', '.join(known)}.",
        where=LOCK_FILE.name,
        hint=f"did you mean {near[0]}?" if near else "choose one of these, or add it: kernel-builder toolchain lock",
    )


def read_lock(path: Path = LOCK_FILE) -> Lock:
    """Read a lock file.

    Raises:
        ToolchainError: It is not one that this version can read.
    """
    try:
        data = parse_toml(path.read_text(encoding="utf-8"))
        if data["version"] != 1:
            raise ToolchainError(f"{path.name} has version {data['version']}, this program reads version 1.")
        return Lock(toolkits=_items("toolkit", data), sdks=_items("torch", data))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolchainError(f"The toolchain lock cannot be read: {error!r}.", where=str(path)) from error


def _items(kind: ItemKind, data: Mapping[str, Any]) -> dict[MajorMinor, LockedItem]:
    items = {}
    for name, row in data.get(kind, {}).items():
        version = MajorMinor.parse(name)
        items[version] = LockedItem(
            kind=kind,
            version=version,
            release=row["release"],
            digest=row.get("digest", ""),
            headers=tuple(row["headers"]),
            libraries=dict(row.get("libraries", {})),
            wheels=tuple(_wheel(wheel) for wheel in row["wheel"]),
        )
    return items


def _wheel(row: Mapping[str, Any]) -> LockedWheel:
    return LockedWheel(
        project=row["project"],
        version=row["version"],
        include=tuple(row["include"]),
        exclude=tuple(row.get("exclude", ())),
        tree=row.get("tree", ""),
        members=row.get("members", 0),
        unpacked=row.get("unpacked", 0),
        files=tuple(LockedFile(**file) for file in row.get("files", ())),
    )
