"""Reading a folder hub. Nothing of it is believed before its hash was compared: commit ids, then trees, then blobs."""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kernel_loader.errors import DigestMismatch, NotFoundError
from kernel_loader.format.hubstore import (
    Commit,
    RepoId,
    TreeEntry,
    blob_path,
    commit_id,
    commit_path,
    is_commit_id,
    parse_commit,
    ref_folder,
    ref_name,
    ref_number,
    repo_folder,
)
from kernel_loader.format.versions import version_of
from kernel_loader.integrity import open_regular, read_regular

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_COMMIT_LIMIT = 256 << 20
_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class HubRepo:
    """One repository of a folder hub.

    Attributes:
        hub: The hub's folder.
    """

    hub: Path
    repo: RepoId

    @property
    def folder(self) -> Path:
        """The repository's folder."""
        return self.hub / repo_folder(self.repo)

    def versions(self) -> tuple[int, ...]:
        """Versions that have a branch, ascending."""
        return tuple(sorted(version for name in self.branches() if (version := version_of(name)) is not None))

    def branches(self) -> tuple[str, ...]:
        """Branch names, sorted."""
        refs = self.folder / "refs"
        return tuple(sorted(entry.name for entry in refs.iterdir() if entry.is_dir())) if refs.is_dir() else ()

    def resolve(self, revision: str) -> tuple[str, bytes]:
        """Commit id and commit JSON of a branch or commit id.

        Raises:
            NotFoundError: The repository, branch or commit is not there.
            DigestMismatch: The commit's bytes are not those that its id names.
        """
        if not self.folder.is_dir():
            raise NotFoundError(f"The hub has no kernel {self.repo}.", where=str(self.hub), hint=self._similar())
        commit = revision if is_commit_id(revision) else self._head(revision)
        try:
            data = read_regular(self.folder / commit_path(commit), limit=_COMMIT_LIMIT)
        except FileNotFoundError as e:
            raise NotFoundError(f"The hub has no commit {commit} of {self.repo}.", where=str(self.hub)) from e
        if commit_id(data) != commit:
            message = f"Commit {commit} of {self.repo} has other bytes than its id says."
            raise DigestMismatch(message, where=str(self.hub))
        return commit, data

    def _head(self, branch: str) -> str:
        folder = self.folder / ref_folder(branch)
        numbers = [ref_number(entry.name) for entry in folder.iterdir()] if folder.is_dir() else []
        newest = max((number for number in numbers if number is not None), default=None)
        if newest is None:
            known = ", ".join(self.branches()) or "none"
            raise NotFoundError(
                f"{self.repo} has no branch {branch}.", where=str(self.hub), hint=f"branches that it has: {known}"
            )
        line = read_regular(folder / ref_name(newest), limit=1024).decode("ascii", "replace").strip()
        if not is_commit_id(line):
            raise DigestMismatch(f"The head of {self.repo} {branch} is no commit id.", where=str(folder))
        return line

    def _similar(self) -> str:
        folders = [entry for entry in self.hub.iterdir() if entry.is_dir()] if self.hub.is_dir() else []
        known = [f"{org.name}/{entry.name}" for org in folders for entry in org.iterdir() if (entry / "refs").is_dir()]
        close = get_close_matches(str(self.repo), known, n=3, cutoff=0.5) or sorted(known)[:3]
        return f"kernels that it has: {', '.join(close)}" if close else "the hub is empty"

    def chunks(self, path: str, entry: TreeEntry) -> Iterator[bytes]:
        """The verified content of one file of a commit; the last chunk comes only when the hash was right.

        Raises:
            NotFoundError: The blob is missing.
            DigestMismatch: It has other bytes or another size.
        """
        try:
            descriptor = open_regular(self.folder / blob_path(entry.sha256))
        except FileNotFoundError as e:
            raise NotFoundError(
                f"The hub lacks the content of {path}.",
                where=str(self.folder / blob_path(entry.sha256)),
                hint="publish the version again, or copy the hub again",
            ) from e
        state, left, held = hashlib.sha256(), entry.size, b""
        with os.fdopen(descriptor, "rb") as file:
            while chunk := file.read(min(_CHUNK, left + 1)):
                left -= len(chunk)
                if left < 0:
                    break
                state.update(chunk)
                if held:
                    yield held
                held = chunk
        if left or state.hexdigest() != entry.sha256:
            where = str(self.folder / blob_path(entry.sha256))
            raise DigestMismatch(f"The hub's content of {path} is not what its hash says.", where=where)
        yield held


@functools.lru_cache(maxsize=8)
def parse_tree(data: bytes, *, where: str) -> Commit:
    """Read a commit of a hub; the last few are kept, since every load of a kernel begins with its commit.

    Raises:
        DigestMismatch: It is malformed or names unsafe paths.
    """
    try:
        return parse_commit(data)
    except ValueError as e:
        raise DigestMismatch(f"The commit cannot be read: {e}.", where=where) from e
