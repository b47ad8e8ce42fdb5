"""What runs on a worker: one step, compiled as a local build compiles it, into the worker's own store."""

from __future__ import annotations

import hashlib
import io
import math
import threading
from contextlib import contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, Any

from kernel_builder.compile.cluster.orders import unit_of, unpack
from kernel_builder.compile.cluster.workplace import find_places, workroom
from kernel_builder.compile.graph import write_graph
from kernel_builder.compile.parallelism import Jobs
from kernel_builder.compile.run import run_here
from kernel_builder.compile.store import UnitStore
from kernel_builder.errors import KernelBuilderError
from kernel_builder.files import locked
from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from kernel_builder.compile.units import Unit

_GIB, _KIB = 1 << 30, 1 << 10
_SHARE = 0.8


def own_version() -> str:
    """Version of the kernel-builder that runs here."""
    return version("kernel-builder")


def perform(order: Mapping[str, Any], content: Mapping[str, bytes]) -> dict[str, Any]:
    """The task that dask runs: ``carry_out`` with this worker's environment, and the worker's address in the answer."""
    from distributed import get_worker

    worker = get_worker()
    limit = worker.memory_manager.memory_limit
    budget = _SHARE * limit / _GIB if limit else math.inf
    return {"worker": worker.address, **carry_out(order, content, Settings.from_environment(), budget)}


def carry_out(
    order: Mapping[str, Any], content: Mapping[str, bytes], settings: Settings, budget: float = math.inf
) -> dict[str, Any]:
    """Compile an order, or take its result from the store.

    Args:
        order: Made by ``orders.order_of``.
        content: Made by ``orders.content_of``.
        settings: Name the store and the compiler.
        budget: GiB that the steps of this process may need together.

    Returns:
        Plain data: ``status`` is ``made`` (with ``data``, its ``sha256``, and ``peak``, KiB of memory or None),
        ``failed`` (with ``sentence``) or ``unfit`` (with ``sentence``: this machine is not one that can make it).
        ``output`` holds what the compiler said, with placeholders for this machine's folders.
    """
    if order["version"] != own_version():
        return _unfit(f"It has kernel-builder {own_version()}, not {order['version']}.")
    try:
        with workroom(settings.store) as room:
            unpack(order, content, room / "sources")
            places = find_places(order, room / "sources", settings)
            unit = unit_of(order, places, room / "sources")
            with _MEMORY.held(unit.memory, budget):
                return _make(unit, room, settings)
    except KernelBuilderError as error:
        return _unfit(error.message)
    except OSError as error:
        return _unfit(f"Its store cannot be used: {error}.")


def _unfit(sentence: str) -> dict[str, Any]:
    return {"status": "unfit", "sentence": sentence, "output": []}


def _make(unit: Unit, room: Path, settings: Settings) -> dict[str, Any]:
    store, log = _SharedStore(settings.store), io.StringIO()
    if not store.has(unit, whole=True):
        jobs = Jobs(total=1, heavy=1, threshold=unit.memory, reason="one step")
        steps = write_graph(room, [unit], store, jobs, settings.launcher)
        run = run_here(room, steps, store, SilentReporter(), log, jobs, settings, keep_going=False)
        for failure in run.failures:
            output = [_neutral(line, unit) for line in failure.output]
            return {"status": "failed", "sentence": failure.sentence, "output": output}
    # Between the label and the command, and the empty line that ends each step.
    output = [_neutral(line, unit) for line in log.getvalue().splitlines()[2:-1]]
    data, peak = store.result(unit).read_bytes(), store.last_peak(unit.label)
    return {
        "status": "made",
        "data": data,
        "sha256": hashlib.sha256(data).hexdigest(),
        "peak": peak and round(peak * _GIB / _KIB),
        "output": output,
    }


def _neutral(line: str, unit: Unit) -> str:
    """The line with placeholders for this machine's folders: who reads it has them elsewhere."""
    for name, path in sorted(unit.places.items(), key=lambda place: len(place[1]), reverse=True):
        line = line.replace(path, f"@{name}@")
    return line


class _SharedStore(UnitStore):
    """A store that several steps of one or more workers write at once."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._lock = root / "locks" / "adopt"

    def adopt(self, unit: Unit, made: Path) -> None:
        """Take a finished file as the unit's result, one at a time."""
        with locked(self._lock, SilentReporter(), waiting="waiting for {}"):
            super().adopt(unit, made)


class _Memory:
    """Lets steps run together as long as the memory that they need at most fits."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._used = 0.0

    @contextmanager
    def held(self, wanted: float, budget: float) -> Iterator[None]:
        """Wait until ``wanted`` GiB are left of the budget, or nothing else runs."""
        with self._changed:
            self._changed.wait_for(lambda: self._used == 0 or self._used + wanted <= budget)
            self._used += wanted
        try:
            yield
        finally:
            with self._changed:
                self._used -= wanted
                self._changed.notify_all()


_MEMORY = _Memory()
