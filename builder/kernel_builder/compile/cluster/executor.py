"""Runs a build's missing units on a cluster: compile steps on its workers, the rest here."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TextIO

from kernel_builder.compile.cluster.connection import connected, scheduler_address
from kernel_builder.compile.cluster.dispatch import Dispatch
from kernel_builder.compile.cluster.orders import order_of
from kernel_builder.compile.cluster.results import Results
from kernel_builder.compile.cluster.worker import own_version
from kernel_builder.compile.graph import write_graph
from kernel_builder.compile.run import run_here

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from kernel_builder.compile.graph import Step
    from kernel_builder.compile.parallelism import Jobs
    from kernel_builder.compile.store import UnitStore
    from kernel_builder.compile.units import Unit
    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings


def connect(executor: str, *, patience: float = 60) -> Cluster:
    """An executor for ``compile.build.build``; the connection is made when there is something to compile.

    Args:
        executor: ``dask://HOST:PORT``, or ``dask+tls://HOST:PORT`` with dask's TLS configuration.
        patience: Seconds that a build waits while the cluster has no worker.

    Raises:
        UsageError: The address has another form.
        ToolchainError: dask is not installed.
    """
    return Cluster(address=scheduler_address(executor), patience=patience)


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """A scheduler's address; called with a run, it compiles it."""

    address: str
    patience: float

    def __call__(
        self,
        folder: Path,
        steps: Mapping[str, Step],
        store: UnitStore,
        reporter: Reporter,
        log: TextIO,
        jobs: Jobs,
        settings: Settings,
        *,
        keep_going: bool,
    ) -> Results:
        """Compile ``steps`` (unit key → step).

        Raises:
            ToolchainError: The scheduler cannot be reached, or a worker has another version.
            CompileError: The scheduler or all workers were lost.
        """
        results = Results(folder=folder, store=store, log=log)
        units = [step.unit for step in steps.values()]
        orders = {
            unit.key: order
            for unit in units
            if not unit.inputs and (order := order_of(unit, settings.store, own_version())) is not None
        }
        if orders:
            reporter.note(f"{len(orders)} of them on the workers of {self.address}, {len(units) - len(orders)} here")
            unfit = self._compile(orders, steps, results, reporter, keep_going=keep_going)
            for sentence in _refusals(unfit, steps):
                reporter.warn(sentence)
        here = _remaining(units, results)
        if here and (keep_going or not results.failures):
            own = folder / "here"
            (own / "tmp").mkdir(parents=True)
            graph = write_graph(own, here, store, jobs, settings.launcher)
            run = run_here(own, graph, store, reporter, log, jobs, settings, keep_going=keep_going)
            results.done.extend(run.done)
            results.failures.extend(run.failures)
        return results

    def _compile(
        self,
        orders: Mapping[str, Mapping[str, Any]],
        steps: Mapping[str, Step],
        results: Results,
        reporter: Reporter,
        *,
        keep_going: bool,
    ) -> Mapping[str, Mapping[str, str]]:
        """Have the orders made; returns those that no worker can make."""
        with connected(self.address) as client:
            dispatch = Dispatch(
                client=client,
                address=self.address,
                orders=orders,
                steps=steps,
                results=results,
                reporter=reporter,
                patience=self.patience,
            )
            dispatch.run(keep_going=keep_going)
            return dispatch.unfit


def _remaining(units: Sequence[Unit], results: Results) -> list[Unit]:
    """What is left to make here, without what a failed step keeps from being made."""
    settled = {unit.key for unit in results.done}
    lost = {failure.unit.key for failure in results.failures}
    here = []
    for unit in units:  # inputs come first
        if any(upstream.key in lost for upstream in unit.inputs):
            lost.add(unit.key)
        elif unit.key not in settled | lost:
            here.append(unit)
    return here


def _refusals(unfit: Mapping[str, Mapping[str, str]], steps: Mapping[str, Step]) -> list[str]:
    """One sentence per reason, with the first of the steps that were compiled here for it."""
    labels: dict[str, list[str]] = {}
    for key, reasons in unfit.items():
        text = " ".join(f"{worker}: {reason}" for worker, reason in sorted(reasons.items()))
        labels.setdefault(text, []).append(steps[key].unit.label)
    return [
        f"{names[0]}{f' and {len(names) - 1} more' if names[1:] else ''} is compiled here, no worker can. {text}"
        for text, names in labels.items()
    ]
