"""Notes that a variant folder was hashed, kept outside of it: an unchanged folder need not be hashed again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_loader.integrity import FileStamp

# Coarser than the clocks of file systems: a file written this recently could be written again under the same stamp.
_SETTLED_NS = 50_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Stamp:
    """What was true when a folder was last hashed.

    Attributes:
        expected: Identity of the digests that the folder matched.
        files: Stamp of every file, those outside the digest included.
    """

    expected: str
    files: Mapping[str, FileStamp]


@dataclass(frozen=True, slots=True)
class StampFolder:
    """Stamps of many variant folders, one file each, named by the hash of the folder's path."""

    root: Path

    def read(self, folder: Path) -> Stamp | None:
        """The stamp of a folder, None when there is none that can be read."""
        try:
            data = json.loads(self._path(folder).read_bytes())
            files = {name: tuple(stamp) for name, stamp in data["files"].items()}
            return Stamp(expected=data["expected"], files=files)
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None

    def write(self, folder: Path, stamp: Stamp, *, hashed_at_ns: int) -> None:
        """Keep a stamp, unless a file is too young to be told from a later write; a read-only cache keeps none.

        Args:
            folder: The variant folder.
            stamp: Its stamp, taken before hashing and unchanged after.
            hashed_at_ns: When hashing began.
        """
        if any(ctime > hashed_at_ns - _SETTLED_NS for *_, ctime in stamp.files.values()):
            return
        data = json.dumps({"folder": str(folder), "expected": stamp.expected, "files": stamp.files})
        with contextlib.suppress(OSError):
            self.root.mkdir(parents=True, exist_ok=True)
            write_atomic(self._path(folder), data.encode("utf-8", "surrogateescape"), scratch=self.root)

    def _path(self, folder: Path) -> Path:
        return self.root / f"{hashlib.sha256(os.fsencode(folder)).hexdigest()[:32]}.json"


def write_atomic(path: Path, data: bytes, *, scratch: Path) -> None:
    """Replace a file in one step, so that a reader sees the old content or the new one.

    Args:
        path: The file.
        data: Its new content.
        scratch: Folder on the same file system for the unfinished file.
    """
    descriptor, name = tempfile.mkstemp(dir=scratch, prefix=".writing-")
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
        # Temporary files are private, but a cache may serve users who did not fill it.
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


def now_ns() -> int:
    """The clock that file times are compared with, in nanoseconds."""
    return time.time_ns()
