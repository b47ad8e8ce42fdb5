"""Writes the dist tree: whole folders by rename, archives with nothing in them that depends on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import io
import os
import shutil
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.files import UNFINISHED, write_whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@contextlib.contextmanager
def writing(root: Path) -> Iterator[None]:
    """Hold ``root`` for one writer and clear what a killed one left behind."""
    root.mkdir(parents=True, exist_ok=True)
    handle = os.open(root, os.O_RDONLY)
    try:
        # The system drops the lock when its holder dies, so a killed run never blocks the next.
        fcntl.flock(handle, fcntl.LOCK_EX)
        for left_over in root.glob(f"{UNFINISHED}*"):
            _remove(left_over)
        yield
    finally:
        os.close(handle)


def write_folder(root: Path, folder: Path, files: Mapping[str, bytes]) -> bool:
    """Make ``folder``, which lies below ``root``, hold exactly ``files``; returns whether anything was written.

    The new folder is complete before it takes the old one's place, so old and new files never mix.
    """
    if _read_folder(folder) == dict(files):
        return False
    staging = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=root))
    try:
        fresh = staging / "new"
        fresh.mkdir()
        for name, data in files.items():
            _write(fresh / name, data)
        for made in (fresh, *(path for path in fresh.rglob("*") if path.is_dir())):
            made.chmod(0o755)
        folder.parent.mkdir(parents=True, exist_ok=True)
        if folder.exists():
            folder.rename(staging / "old")
        fresh.rename(folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return True


def write_file(path: Path, data: bytes) -> bool:
    """Make ``path`` hold ``data``, by rename; returns whether anything was written."""
    if path.is_file() and path.read_bytes() == data:
        return False
    write_whole(path, data)
    return True


def tar_bytes(files: Mapping[str, bytes], *, epoch: int) -> bytes:
    """A ``.tar.gz`` whose bytes depend on names and contents only; ``epoch`` is every time stamp, in seconds."""
    raw = io.BytesIO()
    with (
        gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=epoch, compresslevel=9) as packed,
        tarfile.open(mode="w", fileobj=packed, format=tarfile.PAX_FORMAT) as tar,
    ):
        for name in sorted(files):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mtime, entry.mode = len(files[name]), epoch, 0o644
            tar.addfile(entry, io.BytesIO(files[name]))
    return raw.getvalue()


def remove_folder(root: Path, folder: Path) -> None:
    """Take ``folder``, which lies below ``root``, away in one step, then delete it."""
    staging = Path(tempfile.mkdtemp(prefix=UNFINISHED, dir=root))
    folder.rename(staging / "old")
    _remove(staging)


def _remove(path: Path) -> None:
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _read_folder(folder: Path) -> dict[str, bytes] | None:
    if not folder.is_dir():
        return None
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    # Explicitly, because the umask of whoever builds is not part of the product.
    path.chmod(0o644)
