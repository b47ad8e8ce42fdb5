"""Fetched kernels on disk, laid out as Hugging Face's cache: ``kernels--org--name/{refs,snapshots/<commit>/build}``."""

from __future__ import annotations

import shutil
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_loader.errors import LoaderError
from kernel_loader.format.hubstore import RepoId, commit_path, is_commit_id, ref_folder
from kernel_loader.locks import exclusive
from kernel_loader.stamps import StampFolder, write_atomic

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class CacheError(LoaderError):
    """The cache folder cannot be written."""


@dataclass(frozen=True, slots=True)
class Cache:
    """The folder that holds every fetched kernel."""

    root: Path

    @property
    def stamps(self) -> StampFolder:
        """Stamps of verified folders. Programs that scan this cache skip ``.locks``, so what is ours lies there."""
        return StampFolder(self.root / ".locks" / "kernel-loader" / "stamps")

    def repo(self, repo: RepoId) -> CachedRepo:
        """One repository's part of the cache."""
        name = f"kernels--{repo.org}--{repo.name}"
        return CachedRepo(folder=self.root / name, lock=self.root / ".locks" / name / "kernel-loader.lock")


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedRepo:
    """The cached commits of one repository."""

    folder: Path
    lock: Path

    def variant(self, commit: str, name: str) -> Path:
        """Where a variant of a commit lies or would lie."""
        return self.builds(commit) / name

    def builds(self, commit: str) -> Path:
        """Folder of a commit's variants."""
        return self.folder / "snapshots" / commit / "build"

    def head(self, branch: str) -> str | None:
        """Commit that a branch had when it was last loaded."""
        try:
            text = (self.folder / ref_folder(branch)).read_text().strip()
        except (OSError, UnicodeDecodeError):
            return None
        return text if is_commit_id(text) else None

    def commit(self, commit: str) -> bytes | None:
        """JSON of a commit as it lies here, None when it does not."""
        try:
            return (self.folder / commit_path(commit)).read_bytes()
        except OSError:
            return None

    @contextmanager
    def writing(self) -> Iterator[Path]:
        """Hold the repository's lock and get an empty scratch folder on the same file system.

        Raises:
            CacheError: The cache is read-only or full.
        """
        scratch = self.folder / "incoming"
        try:
            with exclusive(self.lock):
                # Whatever lies here was left by a process that died: the lock is ours.
                shutil.rmtree(scratch, ignore_errors=True)
                scratch.mkdir(parents=True)
                yield scratch
                shutil.rmtree(scratch, ignore_errors=True)
        except LoaderError:
            raise
        except OSError as e:
            raise CacheError(
                f"The kernel cannot be copied into the cache: {e.strerror or e}.",
                where=str(e.filename or self.folder),
                hint="free some space or name a writable folder with KERNELS_CACHE",
            ) from e

    def write_head(self, branch: str, commit: str, scratch: Path) -> None:
        """Remember the head of a branch; the caller holds the lock."""
        _replace(self.folder / ref_folder(branch), commit.encode(), scratch)

    def write_commit(self, commit: str, data: bytes, scratch: Path) -> None:
        """Keep the JSON of a commit; the caller holds the lock."""
        _replace(self.folder / commit_path(commit), data, scratch)


def _replace(path: Path, data: bytes, scratch: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomic(path, data, scratch=scratch)
