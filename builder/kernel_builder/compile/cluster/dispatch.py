"""Hands orders to workers until each is answered: by a result, by an error, or by nobody who could make it."""

from __future__ import annotations

import asyncio
import queue
import secrets
import time
from collections import deque
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel_builder.compile.cluster.connection import live_workers
from kernel_builder.compile.cluster.orders import content_of
from kernel_builder.compile.cluster.worker import perform
from kernel_builder.errors import CompileError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.compile.cluster.results import Results
    from kernel_builder.compile.graph import Step
    from kernel_builder.reporting import Reporter

_TICK = 1.0  # seconds between two looks at the workers
_AHEAD = 2  # orders on their way for each thread: workers never wait, and the scheduler holds few sources


@dataclass(kw_only=True)
class Dispatch:
    """Orders of one run.

    Attributes:
        client: A ``distributed.Client``.
        orders: Unit key → order.
        steps: Unit key → step.
        patience: Seconds to wait while there is no worker.
        unfit: Key of each order that no worker can make → why, by worker.
    """

    client: Any
    address: str
    orders: Mapping[str, Mapping[str, Any]]
    steps: Mapping[str, Step]
    results: Results
    reporter: Reporter
    patience: float
    unfit: dict[str, dict[str, str]] = field(default_factory=dict)
    # Tools of orders → worker → why it cannot make them.
    _refusals: dict[tuple[tuple[str, str], ...], dict[str, str]] = field(default_factory=dict)
    _flying: dict[Any, str] = field(default_factory=dict)
    _landed: queue.SimpleQueue[Any] = field(default_factory=queue.SimpleQueue)
    _workers: Mapping[str, int] = field(default_factory=dict)
    _seen: float = field(default_factory=time.monotonic)
    _looked: float = 0.0

    def run(self, *, keep_going: bool) -> None:
        """Return when every order is answered, or at the first failure without ``keep_going``.

        Raises:
            CompileError: The scheduler was lost, or there was no worker for too long.
        """
        waiting = deque(self.orders)
        try:
            while (waiting or self._flying) and (keep_going or not self.results.failures):
                self._look()
                while waiting and len(self._flying) < _AHEAD * sum(self._workers.values()):
                    self._send(waiting.popleft())
                for future in self._wait():
                    key = self._flying.pop(future)
                    if self._settle(key, future):
                        answered = len(self.orders) - len(self._flying) - len(waiting)
                        label = self.steps[key].unit.label
                        self.reporter.progress("compile on workers", answered, len(self.orders), label)
                    else:
                        waiting.appendleft(key)
        finally:
            self._recall()

    def _look(self) -> None:
        """Ask who the workers are, at most once a tick."""
        now = time.monotonic()
        if now < self._looked + _TICK:
            return
        before, self._workers, self._looked = self._workers, live_workers(self.client), now
        for worker in sorted(set(before) - set(self._workers)):
            self.reporter.note(f"worker {worker} was lost, others do its steps")
        if self._workers:
            self._seen = now
        elif now > self._seen + self.patience:
            raise CompileError(
                f"The cluster has had no worker for {self.patience:g} seconds.",
                where=self.address,
                hint="start some: dask worker HOST:PORT; finished steps are kept",
            )

    def _send(self, key: str) -> None:
        refusals = self._refusals.get(_tools(self.orders[key]), {})
        fit = [worker for worker in self._workers if worker not in refusals]
        if not fit:
            self.unfit[key] = refusals
            return
        try:
            content = content_of(self.steps[key].unit)
        except CompileError as error:
            self.results.fail(self.steps[key], error.message)
            return
        future = self.client.submit(
            perform,
            self.orders[key],
            content,
            key=f"compile-{key}-{secrets.token_hex(4)}",
            workers=fit if refusals else None,
            # A worker that died must not hold what waits for it; who is unfit says so again.
            allow_other_workers=bool(refusals),
        )
        self._flying[future] = key
        future.add_done_callback(self._landed.put)

    def _wait(self) -> list[Any]:
        """Futures that are done; empty after a tick without one."""
        landed = []
        with suppress(queue.Empty):
            landed.append(self._landed.get(timeout=_TICK if self._flying else 0.05))
            while True:
                landed.append(self._landed.get_nowait())
        return landed

    def _settle(self, key: str, future: Any) -> bool:
        """Take the answer; False if the order must be sent again."""
        try:
            answer = self._answer(future)
        except CompileError:
            raise
        except CancelledError as error:
            raise CompileError(
                "The scheduler of the cluster was lost.",
                where=self.address,
                hint="start it and its workers, and run the build again: finished steps are kept",
            ) from error
        except Exception as error:
            killed = type(error).__name__ == "KilledWorker"
            sentence = "Its workers were lost, one after the other." if killed else "A worker could not run a step."
            self.results.fail(self.steps[key], sentence, f"{'Killed: ' * killed}{error!r}")
            return True
        if answer["status"] == "unfit":
            refusals = self._refusals.setdefault(_tools(self.orders[key]), {})
            refusals[answer["worker"]] = answer["sentence"]
            return False
        self.results.take(self.steps[key], answer)
        return True

    def _answer(self, future: Any) -> dict[str, Any]:
        """What the worker returned. If it has died since, another one makes it again."""
        while (answer := self._try(future)) is None:
            self._look()
        return answer

    def _try(self, future: Any) -> dict[str, Any] | None:
        try:
            answer: dict[str, Any] = future.result(timeout=_TICK)
        except (TimeoutError, asyncio.TimeoutError):
            return None
        return answer

    def _recall(self) -> None:
        """Nobody waits any longer for what is on its way."""
        if self._flying and self.client.status == "running":
            with suppress(OSError, asyncio.TimeoutError):
                self.client.cancel(list(self._flying), force=True)
        self._flying.clear()


def _tools(order: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted(order["tools"].items()))
