"""Orders and answers, with workers that are plain functions."""

from __future__ import annotations

import hashlib
import io
from concurrent.futures import CancelledError
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest
from fake_toolchain import Notes, Workshop

from kernel_builder.compile.cluster import dispatch
from kernel_builder.compile.cluster.connection import scheduler_address
from kernel_builder.compile.cluster.dispatch import Dispatch
from kernel_builder.compile.cluster.orders import order_of
from kernel_builder.compile.cluster.results import Results
from kernel_builder.compile.graph import write_graph
from kernel_builder.compile.parallelism import Jobs
from kernel_builder.compile.sources import Sources
from kernel_builder.compile.store import UnitStore
from kernel_builder.compile.units import closure
from kernel_builder.compile.variants import units_of
from kernel_builder.errors import CompileError, UsageError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    Answer = Callable[[str, dict[str, Any]], dict[str, Any]]


@dataclass(eq=False, kw_only=True)
class FakeFuture:
    value: Any

    def add_done_callback(self, then: Callable[[FakeFuture], None]) -> None:
        then(self)

    def result(self, timeout: float) -> Any:
        if isinstance(self.value, BaseException):
            raise self.value
        return self.value


@dataclass(kw_only=True)
class FakeClient:
    """A cluster whose workers answer at once: ``workers`` is address → what it answers to an order."""

    workers: dict[str, Answer]
    sent: list[tuple[str, str]] = field(default_factory=list)
    cancelled: int = 0
    status: str = "running"

    @property
    def scheduler(self) -> FakeClient:
        return self

    def ncores(self) -> dict[str, int]:
        return dict.fromkeys(self.workers, 1)

    def sync(self, call: Callable[[], Any], callback_timeout: float) -> Any:
        return call()

    def submit(self, task: object, order: dict[str, Any], content: object, **how: Any) -> FakeFuture:
        worker = min(how["workers"] or self.workers)
        self.sent.append((worker, order["label"]))
        try:
            return FakeFuture(value={"worker": worker, **self.workers[worker](worker, order)})
        except Exception as error:
            return FakeFuture(value=error)

    def cancel(self, futures: Sequence[FakeFuture], *, force: bool) -> None:
        self.cancelled += len(futures)


def made(worker: str, order: dict[str, Any]) -> dict[str, Any]:
    data = order["label"].encode()
    sha256 = hashlib.sha256(data).hexdigest()
    return {"status": "made", "data": data, "sha256": sha256, "peak": 2 << 20, "output": ["@kernel@: fine"]}


def unfit(worker: str, order: dict[str, Any]) -> dict[str, Any]:
    return {"status": "unfit", "sentence": "Its host compiler is old.", "output": []}


def failed(worker: str, order: dict[str, Any]) -> dict[str, Any]:
    return {"status": "failed", "sentence": "A compile step failed.", "output": ["no"]}


def garbled(worker: str, order: dict[str, Any]) -> dict[str, Any]:
    return {**made(worker, order), "data": b"other"}


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Dispatch]:
    monkeypatch.setattr(dispatch, "_TICK", 0.01)

    def made_with(parts: int = 3, patience: float = 0.2, **workers: Answer) -> Dispatch:
        workshop = Workshop.make(tmp_path / "place", parts=parts)
        (variant,) = units_of(workshop.toolchain(), Sources())
        units = [unit for unit in closure((variant.link,)) if unit.output.startswith("part")]
        store, folder = UnitStore(workshop.store), tmp_path / "run"
        folder.mkdir()
        steps = write_graph(folder, units, store, Jobs(total=1, heavy=1, threshold=1, reason=""))
        orders = {unit.key: order_of(unit, workshop.store, "1") for unit in units}
        return Dispatch(
            client=FakeClient(workers=workers),
            address="tcp://scheduler:1",
            orders={key: order for key, order in orders.items() if order},
            steps=steps,
            results=Results(folder=folder, store=store, log=io.StringIO()),
            reporter=Notes(),
            patience=patience,
        )

    return made_with


def test_results_are_in_the_store_and_in_the_log(make: Callable[..., Dispatch]) -> None:
    run = make(a=made)
    run.run(keep_going=False)
    assert [unit.output for unit in run.results.done] == ["part0.o", "part1.o", "part2.o"]
    assert all(run.results.store.has(unit, whole=True) for unit in run.results.done)
    assert {run.results.store.last_peak(unit.label) for unit in run.results.done} == {2.0}, "GiB, for the next plan"
    log = run.results.log.getvalue()  # type: ignore[attr-defined]
    assert log.count(" [a]\n") == 3
    assert f"{run.results.done[0].places['kernel']}: fine" in log
    assert run.reporter.steps[-1] == (3, 3)  # type: ignore[attr-defined]


def test_an_order_that_one_worker_refuses_goes_to_another(make: Callable[..., Dispatch]) -> None:
    run = make(parts=6, a=unfit, b=made)
    run.run(keep_going=False)
    assert len(run.results.done) == 6
    assert run.unfit == {}
    first = [worker for worker, _ in run.client.sent].index("b")
    assert "a" not in [worker for worker, _ in run.client.sent][first:], "who refused is not asked again"


def test_an_order_that_all_workers_refuse_is_left_with_the_reasons(make: Callable[..., Dispatch]) -> None:
    run = make(a=unfit, b=unfit)
    run.run(keep_going=False)
    assert run.results.done == []
    assert run.results.failures == []
    assert list(run.unfit.values()) == [dict.fromkeys("ab", "Its host compiler is old.")] * 3


def test_a_failure_stops_the_run_unless_it_is_to_keep_going(make: Callable[..., Dispatch]) -> None:
    run = make(parts=6, a=failed)
    run.run(keep_going=False)
    assert 1 <= len(run.results.failures) < 6
    assert run.results.failures[0].output == ("no",)
    assert run.results.failures[0].command.startswith("/")


def test_with_keep_going_every_order_is_answered(make: Callable[..., Dispatch]) -> None:
    run = make(parts=6, a=failed)
    run.run(keep_going=True)
    assert len(run.results.failures) == 6


def test_bytes_that_do_not_match_their_hash_are_not_taken(make: Callable[..., Dispatch]) -> None:
    run = make(parts=1, a=garbled)
    run.run(keep_going=True)
    (failure,) = run.results.failures
    assert failure.sentence == "The bytes that a sent are not those that it made."
    assert not run.results.store.has(failure.unit)


def test_a_source_that_was_edited_meanwhile_fails_its_step(make: Callable[..., Dispatch]) -> None:
    def editing(worker: str, order: dict[str, Any]) -> dict[str, Any]:
        (source,) = [file for name, file in step.unit.files.items() if name.endswith(".cpp")]
        source.path.write_text("edited\n")
        return made(worker, order)

    run = make(parts=1, a=editing)
    (step,) = run.steps.values()
    run.run(keep_going=True)
    assert "part0.cpp was changed while it was compiled" in run.results.failures[0].sentence


def test_a_step_whose_workers_die_is_a_failure_that_names_memory(make: Callable[..., Dispatch], tmp_path: Path) -> None:
    class KilledWorker(Exception):
        """As dask calls it."""

    def dying(worker: str, order: dict[str, Any]) -> dict[str, Any]:
        raise KilledWorker("compile-x", "tcp://w:1", 3)

    run = make(parts=1, a=dying)
    run.run(keep_going=True)
    error = run.results.failures[0].error(tmp_path / "log")
    assert error.message == "Its workers were lost, one after the other."
    assert "memory may have run out" in error.hint


def test_a_lost_scheduler_ends_the_run(make: Callable[..., Dispatch]) -> None:
    def cancelling(worker: str, order: dict[str, Any]) -> dict[str, Any]:
        raise CancelledError

    with pytest.raises(CompileError, match="scheduler of the cluster was lost") as caught:
        make(a=cancelling).run(keep_going=True)
    assert caught.value.where == "tcp://scheduler:1"


def test_a_cluster_without_workers_is_waited_for_but_not_for_ever(make: Callable[..., Dispatch]) -> None:
    run = make()
    with pytest.raises(CompileError, match=r"no worker for 0\.2 seconds"):
        run.run(keep_going=True)


def test_a_worker_that_is_gone_is_said(make: Callable[..., Dispatch]) -> None:
    def going(worker: str, order: dict[str, Any]) -> dict[str, Any]:
        run.client.workers.pop("b", None)
        run._looked = 0.0
        return made(worker, order)

    run = make(parts=6, a=going, b=made)
    run.run(keep_going=False)
    assert run.reporter.notes == ["worker b was lost, others do its steps"]  # type: ignore[attr-defined]
    assert len(run.results.done) == 6


def test_orders_under_way_are_taken_back_when_the_build_is_interrupted(make: Callable[..., Dispatch]) -> None:
    class Interrupted(Notes):
        def progress(self, label: str, done: int, total: int, detail: str = "") -> None:
            raise KeyboardInterrupt

    run = make(parts=2, a=made)
    run.reporter = Interrupted()
    with pytest.raises(KeyboardInterrupt):
        run.run(keep_going=False)
    assert run.client.cancelled == 1


@pytest.mark.parametrize(
    "name", ["", "local", "dask:", "dask://host", "tcp://host:1", "dask://host:port", "dask://user@host:1", "ray://h:1"]
)
def test_an_executor_that_is_none_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="names no executor") as caught:
        scheduler_address(name)
    assert caught.value.exit_code == 2


def test_addresses_of_schedulers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel_builder.compile.cluster.connection.find_spec", lambda name: name)
    assert scheduler_address("dask://build-1:8786") == "tcp://build-1:8786"
    assert scheduler_address("dask://[::1]:8786") == "tcp://[::1]:8786"
    assert scheduler_address("dask+tls://build-1:8786") == "tls://build-1:8786"
