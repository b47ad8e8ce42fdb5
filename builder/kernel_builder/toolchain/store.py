"""Folders of the store that are made once: filled aside, renamed into place, and shared by every process."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, TypeVar

from kernel_builder.errors import KernelBuilderError, ToolchainError
from kernel_builder.files import locked, sha256_of, tree_digest

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from kernel_builder.reporting import Reporter

Failure = TypeVar("Failure", bound=KernelBuilderError)


def install(store: Path, kind: str, name: str, fill: Callable[[Path], None], reporter: Reporter) -> Path:
    """Folder ``store/kind/name``; if it is not there, ``fill`` makes its content in an empty folder first.

    The folder appears by one rename, so whoever sees it sees all of it. Its files are made read-only; programs
    stay programs.

    Raises:
        ToolchainError: The store cannot be written.
    """
    target = store / kind / name
    if target.is_dir():
        return target
    scratch = store / "tmp" / f"{kind}-{name}"
    waiting = f"waiting for {{}}, which is preparing {kind}/{name}"
    try:
        with locked(store / "locks" / f"{kind}-{name}", reporter, waiting=waiting):
            if not target.is_dir():
                _make(scratch, target, fill)
    except OSError as error:
        raise unwritable(ToolchainError, error, store) from error
    return target


def unwritable(kind: type[Failure], error: OSError, store: Path) -> Failure:
    """The stage's error for a store that cannot be written."""
    return kind(
        f"The store cannot be written: {error.strerror or error}.",
        where=str(error.filename or store),
        hint="free some space, or set KERNEL_BUILDER_CACHE to a folder that you can write",
    )


def _make(scratch: Path, target: Path, fill: Callable[[Path], None]) -> None:
    # What a killed run left behind is ours to remove: the lock is held.
    shutil.rmtree(scratch, ignore_errors=True)
    scratch.mkdir(parents=True)
    try:
        fill(scratch)
        for path in scratch.rglob("*"):
            if path.is_file():
                path.chmod(0o555 if path.stat().st_mode & 0o111 else 0o444)
        target.parent.mkdir(parents=True, exist_ok=True)
        scratch.rename(target)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)


def file_digests(root: Path) -> dict[str, str]:
    """POSIX path relative to ``root`` → hex SHA-256, for every file below it."""
    return {path.relative_to(root).as_posix(): sha256_of(path) for path in root.rglob("*") if path.is_file()}


def folder_digest(root: Path) -> str:
    """``tree_digest`` of every file below ``root``."""
    return tree_digest(file_digests(root))
