"""Reads and writes one repository of a folder hub. A branch moves by creating its next number, exclusively."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.errors import DigestError
from kernel_builder.files import sha256_of, sync, unfinished, write_whole
from kernel_loader.format.hubstore import (
    Commit,
    TreeEntry,
    blob_path,
    commit_id,
    commit_path,
    dump_commit,
    is_commit_id,
    parse_commit,
    ref_folder,
    ref_name,
    ref_number,
)
from kernel_loader.format.versions import version_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Head:
    """The newest state of a branch; number 0 and no commit id when the branch is not there yet."""

    number: int
    commit_id: str | None
    commit: Commit


@dataclass(frozen=True, slots=True)
class Repository:
    """``HUB/org/name``."""

    root: Path

    def head(self, branch: str) -> Head:
        """The branch's newest state.

        Raises:
            DigestError: The commit is missing or damaged.
        """
        folder = self.root / ref_folder(branch)
        numbers = [ref_number(path.name) or 0 for path in folder.iterdir()] if folder.is_dir() else []
        newest = max(numbers, default=0)
        if newest == 0:
            return Head(number=0, commit_id=None, commit=Commit())
        path = folder / ref_name(newest)
        found = path.read_text("ascii", errors="replace").strip()
        if not is_commit_id(found):
            raise DigestError("The head of a branch is no commit id.", where=str(path))
        return Head(number=newest, commit_id=found, commit=self._commit(found))

    def versions(self) -> tuple[int, ...]:
        """Kernel versions that have a branch."""
        refs = self.root / "refs"
        numbers = (version_of(path.name) for path in refs.iterdir()) if refs.is_dir() else ()
        return tuple(sorted(number for number in numbers if number is not None))

    def read(self, entry: TreeEntry) -> bytes:
        """Bytes of a file.

        Raises:
            DigestError: They are missing, or not those that the commit names.
        """
        path = self.root / blob_path(entry.sha256)
        data = path.read_bytes() if path.is_file() else None
        if data is None or hashlib.sha256(data).hexdigest() != entry.sha256:
            state = "missing" if data is None else "damaged"
            raise DigestError(
                f"A file of the hub is {state}.", where=str(path), hint="restore it from a copy of the hub"
            )
        return data

    def add(self, files: Mapping[str, bytes]) -> dict[str, TreeEntry]:
        """Store contents, also over damaged ones, and return their entries. Nothing refers to them yet."""
        entries = {name: entry_of(data) for name, data in files.items()}
        for name, data in files.items():
            path = self.root / blob_path(entries[name].sha256)
            if not path.is_file() or sha256_of(path) != path.name:
                write_whole(path, data, durable=True)
        return entries

    def advance(self, branch: str, head: Head, commit: Commit) -> str | None:
        """Make ``commit`` the branch's newest state if ``head`` still is; None when another writer was first."""
        data = dump_commit(commit)
        name = commit_id(data)
        write_whole(self.root / commit_path(name), data, durable=True)
        target = self.root / ref_folder(branch) / ref_name(head.number + 1)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary = unfinished(target.parent, f"{name}\n".encode(), durable=True)
        try:
            # A hard link fails when the name exists, and shows the whole file at once when it does not.
            os.link(temporary, target)
        except FileExistsError:
            return None
        finally:
            temporary.unlink(missing_ok=True)
        sync(target.parent)
        return name

    def _commit(self, name: str) -> Commit:
        path = self.root / commit_path(name)
        data = path.read_bytes() if path.is_file() else b""
        if commit_id(data) != name:
            raise DigestError("A commit of the hub is missing or damaged.", where=str(path))
        try:
            return parse_commit(data)
        except ValueError as e:
            raise DigestError("A commit of the hub cannot be read.", where=str(path), detail=str(e)) from e


def entry_of(data: bytes) -> TreeEntry:
    """The tree entry of a file's bytes."""
    return TreeEntry(hashlib.sha256(data).hexdigest(), len(data))


def changed(old: Mapping[str, TreeEntry], new: Mapping[str, TreeEntry]) -> tuple[int, int, int]:
    """How many files are new or different, gone, and as before."""
    kept = sum(1 for path, entry in new.items() if old.get(path) == entry)
    return len(new) - kept, sum(1 for path in old if path not in new), kept
