"""Results of units, in ``store/units``: a result is there whole or not at all.

A run compiles below ``store/runs/<id>``; what is finished is linked into a folder beside, flushed to disk and renamed
into place. One lock, which the operating system releases when its holder dies, lets one build write at a time.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import shutil
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from kernel_builder.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kernel_builder.compile.units import Unit
    from kernel_builder.reporting import Reporter

_RECORD = "unit.json"
_LOGS_KEPT = 20


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

    def has(self, unit: Unit) -> bool:
        """Whether the result is there and has the size it was stored with."""
        try:
            record = json.loads((self.folder(unit) / _RECORD).read_bytes())
            return bool(self.result(unit).stat().st_size == record["size"])
        except (OSError, ValueError, KeyError, TypeError):
            return False

    def adopt(self, unit: Unit, made: Path) -> None:
        """Take a finished file of a run as the unit's result, and remember what its key was made of."""
        target = self.folder(unit)
        scratch = made.parent / "adopt"
        scratch.mkdir()
        made.chmod(0o444)
        (scratch / unit.output).hardlink_to(made)
        _write(scratch / _RECORD, {"label": unit.label, "size": made.stat().st_size, "facts": unit.facts()})
        # A power cut must not leave a named but empty file behind.
        for path in (scratch / unit.output, scratch):
            _flush(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(target, ignore_errors=True)
        scratch.rename(target)
        self._label(unit.label).parent.mkdir(exist_ok=True)
        _write(self._label(unit.label), {"label": unit.label, "key": unit.key})

    def last_facts(self, label: str) -> dict[str, str] | None:
        """What the key of the unit last compiled under this label was made of, None if there is no record."""
        try:
            key = json.loads(self._label(label).read_bytes())["key"]
            facts = json.loads((self._units / key[:2] / key / _RECORD).read_bytes())["facts"]
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return {str(name): str(value) for name, value in facts.items()}

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
            CompileError: The store cannot be written.
        """
        path = self._root / "locks" / "build"
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("a+", encoding="ascii")
        except OSError as error:
            raise CompileError(
                f"The store cannot be written: {error.strerror or error}.",
                where=str(error.filename or path),
                hint="free some space, or set KERNEL_BUILDER_CACHE to a folder that you can write",
            ) from error
        with file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                file.seek(0)
                reporter.note(f"waiting for the build of process {file.read().strip() or 'unknown'}")
                fcntl.flock(file, fcntl.LOCK_EX)
            file.truncate(0)
            file.write(str(os.getpid()))
            file.flush()
            yield

    def _label(self, label: str) -> Path:
        return self._labels / f"{hashlib.sha256(label.encode()).hexdigest()[:32]}.json"


def _write(path: Path, value: object) -> None:
    scratch = path.with_suffix(".new")
    scratch.write_text(json.dumps(value), encoding="utf-8")
    scratch.replace(path)


def _flush(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
