"""The lock: which wheels make up each toolkit and torch SDK, and which bytes they must hold."""

from __future__ import annotations

from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from kernel_builder.errors import ToolchainError
from kernel_builder.toml import parse_toml
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Mapping

LOCK_FILE = Path(__file__).with_name("toolchains.lock.toml")
ItemKind = Literal["toolkit", "torch", "nvcc"]
_NAMES = {"toolkit": "NVRTC", "torch": "torch", "nvcc": "nvcc"}


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
class LockedPackage:
    """A Debian package that holds what no wheel has: its place in the archive, and the SHA-256 and size of its file."""

    name: str
    version: str
    suite: str
    component: str
    sha256: str = ""
    size: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class LockedItem:
    """A toolkit or a torch SDK.

    Attributes:
        digest: ``files.tree_digest`` over all members of all wheels, and what is taken from the package.
        headers: Include folders relative to the item's root, in order.
        libraries: ``nvrtc``, ``nvrtc_builtins``, ``nvfatbin``, or ``nvcc``, ``cudart`` → path relative to the root;
            empty for torch.
        package: Of an nvcc, the Debian package that its programs are taken from; None when wheels have them.
        symbols: Of a torch release, the digest over the names that its libraries export.
    """

    kind: ItemKind
    version: MajorMinor
    release: str
    digest: str
    headers: tuple[str, ...]
    libraries: Mapping[str, str]
    wheels: tuple[LockedWheel, ...]
    package: LockedPackage | None = None
    symbols: str = ""

    @property
    def label(self) -> str:
        """``NVRTC 12.8.93``, ``torch 2.10.0`` or ``nvcc 13.0.88``, for people."""
        return f"{_NAMES[self.kind]} {self.release}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Lock:
    """Everything that can be provisioned on x86_64 Linux."""

    toolkits: Mapping[MajorMinor, LockedItem]
    sdks: Mapping[MajorMinor, LockedItem]
    nvccs: Mapping[MajorMinor, LockedItem] = field(default_factory=dict)

    @property
    def items(self) -> Mapping[str, LockedItem]:
        """Every item under the name that people give it: ``12.8``, ``torch-2.13``, ``nvcc-13.0``."""
        named = {str(version): item for version, item in self.toolkits.items()}
        named |= {f"torch-{version}": item for version, item in self.sdks.items()}
        return named | {f"nvcc-{version}": item for version, item in self.nvccs.items()}

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

    def nvcc(self, version: MajorMinor) -> LockedItem:
        """The nvcc of a CUDA version.

        Raises:
            ToolchainError: The lock has none.
        """
        return _lookup(self.nvccs, version, "nvcc")


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
        return Lock(toolkits=_items("toolkit", data), sdks=_items("torch", data), nvccs=_items("nvcc", data))
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
            package=LockedPackage(**row["package"]) if "package" in row else None,
            symbols=row.get("symbols", ""),
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
