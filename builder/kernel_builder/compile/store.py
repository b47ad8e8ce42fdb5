"""Results of units, in ``store/units``: a result is there whole or not at all.

A run compiles below ``store/runs/<id>``; what is finished is linked into a folder beside, flushed to disk and renamed
into place. One lock, which the operating system releases when its holder dies, lets one build write at a time.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernel_builder.errors import CompileError
from kernel_builder.files import locked, sha256_of, sync, write_whole
from kernel_builder.toolchain.store import unwritable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kernel_builder.compile.units import Unit
    from kernel_builder.reporting import Reporter

_RECORD = "unit.json"
PEAK = "peak"  # beside a finished file of a run: the KiB of memory that making it took
_LOGS_KEPT = 20
_KIB_PER_GIB = 1 << 20


class UnitStore:
    """The compile stage's part of the store.

    Args:
        root: Folder of the store (KERNEL_BUILDER_CACHE).
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._units, self._runs, self._labels = root / "units", root / "runs", root / "labels"

    def folder(self, unit: Unit) -> Path:
        """Where the result of a unit lies."""
        return self._units / unit.key[:2] / unit.key

    def result(self, unit: Unit) -> Path:
        """The unit's file, there or not."""
        return self.folder(unit) / unit.output

    def has(self, unit: Unit, *, whole: bool = False) -> bool:
        """Whether the result is there and has the size, and with ``whole`` also the content, it was stored with."""
        try:
            record = json.loads((self.folder(unit) / _RECORD).read_bytes())
            if self.result(unit).stat().st_size != record["size"]:
                return False
            return not whole or bool(sha256_of(self.result(unit)) == record["sha256"])
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def adopt(self, unit: Unit, made: Path) -> None:
        """Take a finished file of a run as the unit's result, and remember what its key was made of."""
        target = self.folder(unit)
        scratch = made.parent / "adopt"
        scratch.mkdir()
        made.chmod(0o444)
        (scratch / unit.output).hardlink_to(made)
        content = {"size": made.stat().st_size, "sha256": sha256_of(made)}
        _write(scratch / _RECORD, {"label": unit.label, **content, "facts": unit.facts()})
        # A power cut must not leave a named but empty file behind.
        for path in (scratch / unit.output, scratch):
            sync(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        _clear(target)
        scratch.rename(target)
        self._label(unit.label).parent.mkdir(exist_ok=True)
        peak = _peak(made.parent / PEAK)
        _write(self._label(unit.label), {"label": unit.label, "key": unit.key, "peak": peak})

    def last_facts(self, label: str) -> dict[str, str] | None:
        """What the key of the unit last compiled under this label was made of, None if there is no record."""
        try:
            key = json.loads(self._label(label).read_bytes())["key"]
            facts = json.loads((self._units / key[:2] / key / _RECORD).read_bytes())["facts"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return {str(name): str(value) for name, value in facts.items()}

    def last_peak(self, label: str) -> float | None:
        """GiB that the unit last compiled under this label took, None if that was not measured."""
        try:
            peak = json.loads(self._label(label).read_bytes())["peak"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return peak / _KIB_PER_GIB if isinstance(peak, int) else None

    def log_path(self, run: Path) -> Path:
        """Where the log of a run is kept after it; the oldest logs make room."""
        logs = self._root / "logs"
        logs.mkdir(exist_ok=True)
        for old in sorted(logs.glob("*.log"))[:-_LOGS_KEPT]:
            old.unlink(missing_ok=True)
        return logs / f"{run.name}.log"

    @contextmanager
    def run_folder(self) -> Iterator[Path]:
        """An empty folder for one run, gone afterwards; only with the lock held. Clears what killed runs left."""
        shutil.rmtree(self._runs, ignore_errors=True)
        folder = self._runs / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}"
        (folder / "tmp").mkdir(parents=True)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    @contextmanager
    def lock(self, reporter: Reporter) -> Iterator[None]:
        """Hold the store for one build; a waiting build says for whom it waits.

        Raises:
            CompileError: The store cannot be written, now or by what runs with the lock held.
        """
        path = self._root / "locks" / "build"
        try:
            with locked(path, reporter, waiting="waiting for the build of {}"):
                yield
        except OSError as error:
            raise unwritable(CompileError, error, self._root) from error

    def _label(self, label: str) -> Path:
        return self._labels / f"{hashlib.sha256(label.encode()).hexdigest()[:32]}.json"


def _write(path: Path, value: object) -> None:
    write_whole(path, json.dumps(value).encode())


def _peak(note: Path) -> int | None:
    try:
        return int(note.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def _clear(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)
