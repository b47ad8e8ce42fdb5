"""Folders of the store that are made once: filled aside, renamed into place, and shared by every process."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernel_builder.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from kernel_builder.reporting import Reporter


def install(store: Path, kind: str, name: str, fill: Callable[[Path], None], reporter: Reporter) -> Path:
    """Folder ``store/kind/name``; if it is not there, ``fill`` makes its content in an empty folder first.

    The folder appears by one rename, so whoever sees it sees all of it. Its files are made read-only.

    Raises:
        ToolchainError: The store cannot be written.
    """
    target = store / kind / name
    if target.is_dir():
        return target
    scratch = store / "tmp" / f"{kind}-{name}"
    try:
        with _held(store / "locks" / f"{kind}-{name}", f"{kind}/{name}", reporter):
            if not target.is_dir():
                _make(scratch, target, fill)
    except OSError as error:
        raise ToolchainError(
            f"The store cannot be written: {error.strerror or error}.",
            where=str(error.filename or store),
            hint="free some space, or set KERNEL_BUILDER_CACHE to a folder that you can write",
        ) from error
    return target


def _make(scratch: Path, target: Path, fill: Callable[[Path], None]) -> None:
    # What a killed run left behind is ours to remove: the lock is held.
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        fill(scratch)
        for path in scratch.rglob("*"):
            if path.is_file():
                path.chmod(0o444)
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


@contextmanager
def _held(path: Path, what: str, reporter: Reporter) -> Iterator[None]:
    """Hold an OS-level lock, which the kernel releases when its holder dies; the file names the holder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            reporter.note(f"waiting for process {file.read().strip() or 'unknown'}, which is preparing {what}")
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def tree_digest(files: Mapping[str, str]) -> str:
    """Hex SHA-256 over the sorted lines ``path NUL sha256 LF`` of POSIX path → hex SHA-256 of the content."""
    total = hashlib.sha256()
    for path in sorted(files):
        total.update(f"{path}\0{files[path]}\n".encode())
    return total.hexdigest()


def file_digests(root: Path) -> dict[str, str]:
    """POSIX path relative to ``root`` → hex SHA-256, for every file below it."""
    return {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in root.rglob("*")
        if path.is_file()
    }
