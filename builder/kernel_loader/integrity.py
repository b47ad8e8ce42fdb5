"""Reading variant folders without being led out of them: which files lie there, their stamps and their hashes."""

from __future__ import annotations

import base64
import hashlib
import os
import stat
from typing import TYPE_CHECKING

from kernel_loader.errors import DigestMismatch, NotFoundError
from kernel_loader.format.digest import Digest, is_bytecode, is_hashed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_CHUNK = 1 << 20

# What tells a rewritten file from an untouched one: inode, size in bytes, mtime and ctime in nanoseconds.
FileStamp = tuple[int, int, int, int]


def list_files(folder: Path) -> dict[str, Path]:
    """Every file below a variant folder except byte code: relative path with ``/`` → real path, sorted.

    Raises:
        DigestMismatch: Something is no regular file, or a link leads out of the folder (links into the ``blobs``
            folder of the same cached repository are how Hugging Face's cache stores files).
        NotFoundError: There is no such folder.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise NotFoundError("The variant folder is not there.", where=str(folder))
    inside = (root, *_blob_folders(root))
    return dict(sorted(_walk(root, "", inside)))


def _blob_folders(root: Path) -> tuple[Path, ...]:
    parents = root.parents
    if len(parents) < 5 or parents[2].name != "snapshots" or "--" not in parents[3].name:
        return ()
    return (parents[3] / "blobs", parents[4] / "blobs")


def _walk(folder: Path, prefix: str, inside: tuple[Path, ...]) -> Iterator[tuple[str, Path]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            path, name = folder / entry.name, prefix + entry.name
            if is_bytecode(name):
                continue
            if entry.is_dir(follow_symlinks=False):
                yield from _walk(path, name + "/", inside)
                continue
            real = path.resolve() if entry.is_symlink() else path
            if not any(real.is_relative_to(root) for root in inside):
                raise DigestMismatch(f"{name} is a link that leads out of the variant folder.", where=str(path))
            if not real.is_file():
                raise DigestMismatch(f"{name} is no regular file.", where=str(path))
            yield name, real


def stamp_of(path: Path) -> FileStamp:
    """The stamp of one file."""
    status = path.stat()
    return (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)


def stamp_files(files: Mapping[str, Path]) -> dict[str, FileStamp]:
    """The stamps of listed files."""
    return {name: stamp_of(path) for name, path in files.items()}


def hash_folder(path: Path, *, algorithm: str = "sha256") -> Digest:
    """Digest of a variant folder as it lies on disk.

    Raises:
        DigestMismatch: See ``list_files``.
        NotFoundError: There is no such folder.
    """
    return hash_files(list_files(path), algorithm=algorithm)


def hash_files(files: Mapping[str, Path], *, algorithm: str = "sha256") -> Digest:
    """Digest of listed files; names that no digest covers are left out."""
    hashes = {name: _hash_file(real, algorithm) for name, real in files.items() if is_hashed(name)}
    return Digest(algorithm=algorithm, files=hashes)


def _hash_file(path: Path, algorithm: str) -> str:
    state = hashlib.new(algorithm)
    with path.open("rb") as file:
        while chunk := file.read(_CHUNK):
            state.update(chunk)
    return base64.b64encode(state.digest()).decode("ascii")


def open_regular(path: Path) -> int:
    """Open a file for reading and return its descriptor; never hangs on a pipe or device.

    Raises:
        FileNotFoundError: It is missing or no regular file.
    """
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise FileNotFoundError(f"{path} is no regular file")
    return descriptor


def read_regular(path: Path, *, limit: int) -> bytes:
    """Content of a regular file of at most ``limit`` bytes.

    Raises:
        FileNotFoundError: It is missing or no regular file.
        DigestMismatch: It is longer.
    """
    with os.fdopen(open_regular(path), "rb") as file:
        data = file.read(limit + 1)
    if len(data) > limit:
        raise DigestMismatch(f"The file is longer than {limit} bytes.", where=str(path))
    return data
