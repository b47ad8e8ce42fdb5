"""Files as every stage treats them: hashed, locked, and written whole or not at all."""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kernel_builder.reporting import Reporter

# Begins the names of files and folders that a killed process may leave behind.
UNFINISHED = ".staging-"
_CHUNK = 1 << 20


def sha256_of(path: Path) -> str:
    """Hex SHA-256 of a file's content.

    Raises:
        OSError: It cannot be read.
    """
    digest = hashlib.sha256()
    with path.open("rb") as stream:
        while chunk := stream.read(_CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


def tree_lines(files: Mapping[str, str]) -> bytes:
    """The sorted lines ``path NUL sha256 LF`` of POSIX path → hex SHA-256 of the content, in UTF-8."""
    return b"".join(f"{path}\0{files[path]}\n".encode() for path in sorted(files))


def tree_digest(files: Mapping[str, str]) -> str:
    """Hex SHA-256 over ``tree_lines``: one digest for many files."""
    return hashlib.sha256(tree_lines(files)).hexdigest()


@contextmanager
def locked(path: Path, reporter: Reporter, *, waiting: str) -> Iterator[None]:
    """Hold an OS-level lock, which the kernel releases when its holder dies; the file names the holder.

    Args:
        path: The lock file.
        reporter: Is told when another process holds the lock.
        waiting: What it is told; ``{}`` stands for the other process.

    Raises:
        OSError: The file cannot be written.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+", encoding="ascii") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            file.seek(0)
            reporter.note(waiting.format(f"process {file.read().strip() or 'unknown'}"))
            fcntl.flock(file, fcntl.LOCK_EX)
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        yield


def write_whole(path: Path, data: bytes, *, durable: bool = False) -> None:
    """Put a file in place by rename; with ``durable``, after its bytes have reached the disk."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished(path.parent, data, durable=durable).replace(path)
    if durable:
        sync(path.parent)


def unfinished(folder: Path, data: bytes, *, durable: bool = False) -> Path:
    """A new file of ``folder`` that holds ``data`` and is still to get its name."""
    handle, name = tempfile.mkstemp(prefix=UNFINISHED, dir=folder)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            # Explicitly: temporary files are private, and the umask of whoever builds is not part of the product.
            os.fchmod(file.fileno(), 0o644)
            if durable:
                file.flush()
                os.fsync(file.fileno())
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return Path(name)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, have reached the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
