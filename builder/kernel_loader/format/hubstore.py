"""Names and documents of a folder hub: ``ORG/NAME/{blobs/<sha256>, commits/<id>.json, refs/<branch>/<number>}``."""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel_loader.format.paths import check_path
from kernel_loader.format.tables import Table, read_table, write_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TOKEN = re.compile(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,94}[A-Za-z0-9_])?")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_REF = re.compile(r"[0-9]{6}")


class HubStoreError(ValueError):
    """A name or document that a folder hub cannot hold."""


@dataclass(frozen=True, order=True, slots=True)
class RepoId:
    """A repository: ``org/name``. Both are one safe path component without ``--``, so cache folders never collide."""

    org: str
    name: str

    def __post_init__(self) -> None:
        for token in (self.org, self.name):
            if not _safe_token(token):
                raise HubStoreError(f"{token!r} cannot be part of a repository id of the form org/name")

    def __str__(self) -> str:
        return f"{self.org}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> RepoId:
        """Read ``org/name``.

        Raises:
            HubStoreError: It is not of that form.
        """
        org, slash, name = text.partition("/")
        if not slash:
            raise HubStoreError(f"{text!r} is not a repository id of the form org/name")
        return cls(org, name)


@dataclass(frozen=True, order=True, slots=True)
class TreeEntry:
    """One file of a commit: hex SHA-256 of its bytes and their number."""

    sha256: str
    size: int

    def __post_init__(self) -> None:
        if not _SHA256.fullmatch(self.sha256) or self.size < 0:
            raise HubStoreError(f"no tree entry with hash {self.sha256!r} and size {self.size}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Commit:
    """The whole state of a branch.

    Attributes:
        tree: Safe relative path → entry; no path is a folder of another.
        parent: Commit id that this one follows, None for the first.
    """

    tree: Mapping[str, TreeEntry] = field(default_factory=dict)
    parent: str | None = None
    author: str = ""
    message: str = ""

    def __post_init__(self) -> None:
        for path in self.tree:
            check_path(path)
            parts = path.split("/")
            if any("/".join(parts[:end]) in self.tree for end in range(1, len(parts))):
                raise HubStoreError(f"{path!r} lies below another file of the tree")
        if self.parent is not None and not _COMMIT.fullmatch(self.parent):
            raise HubStoreError(f"{self.parent!r} is not a commit id")


def dump_commit(commit: Commit) -> bytes:
    """The one spelling of a commit."""
    tree = {path: {"sha256": entry.sha256, "size": entry.size} for path, entry in commit.tree.items()}
    return write_json({"tree": tree, "parent": commit.parent, "author": commit.author, "message": commit.message})


def commit_id(data: bytes) -> str:
    """Id of a commit: the first 40 hex digits of the SHA-256 of its JSON bytes."""
    return hashlib.sha256(data).hexdigest()[:40]


def parse_commit(data: bytes) -> Commit:
    """Read a commit. Unknown keys are ignored.

    Raises:
        ValueError: A value has the wrong type, a path is not safe, or a hash is none.
    """
    table = read_table(data, where="commit", error=HubStoreError)
    tree = table.table("tree")
    entries = {path: _read_entry(tree, path) for path in tree.data}
    return Commit(
        tree=entries,
        parent=table.get("parent", str),
        author=table.get("author", str) or "",
        message=table.get("message", str) or "",
    )


def _read_entry(tree: Table, path: str) -> TreeEntry:
    entry = tree.table(path)
    return TreeEntry(entry.need("sha256", str), entry.need("size", int))


def is_commit_id(text: str) -> bool:
    """Whether a revision is a full commit id rather than a branch name."""
    return bool(_COMMIT.fullmatch(text))


def repo_folder(repo_id: RepoId | str) -> str:
    """Folder of a repository inside its hub."""
    return str(RepoId.parse(repo_id) if isinstance(repo_id, str) else repo_id)


def blob_path(sha256: str) -> str:
    """File of a blob inside its repository's folder."""
    if not _SHA256.fullmatch(sha256):
        raise HubStoreError(f"{sha256!r} is not a hex SHA-256")
    return f"blobs/{sha256}"


def commit_path(commit: str) -> str:
    """File of a commit inside its repository's folder."""
    if not is_commit_id(commit):
        raise HubStoreError(f"{commit!r} is not a commit id of 40 hex digits")
    return f"commits/{commit}.json"


def ref_folder(branch: str) -> str:
    """Folder that holds the numbered heads of a branch."""
    if not _safe_token(branch):
        raise HubStoreError(f"{branch!r} is not a branch name: letters, digits, '.', '_' and '-'")
    return f"refs/{branch}"


def ref_name(number: int) -> str:
    """File name of a branch's n-th head, counted from 1."""
    if not 0 < number <= 999_999:
        raise HubStoreError(f"a branch has heads 1 to 999999, not {number}")
    return f"{number:06d}"


def ref_number(name: str) -> int | None:
    """Inverse of ``ref_name``; None for any other file name."""
    return int(name) if _REF.fullmatch(name) and name != "000000" else None


def variants_of(paths: Iterable[str]) -> tuple[str, ...]:
    """Names of the folders under ``build/`` among the paths of a tree, sorted."""
    split = (path.split("/", 2) for path in paths)
    return tuple(sorted({parts[1] for parts in split if len(parts) == 3 and parts[0] == "build"}))


def _safe_token(text: str) -> bool:
    return bool(_TOKEN.fullmatch(text)) and "--" not in text and ".." not in text
