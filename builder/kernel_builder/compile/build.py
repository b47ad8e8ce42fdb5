"""Step 4: compile what the store does not have, and say where every variant's library is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernel_builder.compile.graph import write_graph
from kernel_builder.compile.model import Artefact, BuildResult, DeviceCode
from kernel_builder.compile.parallelism import plan_jobs, this_machine
from kernel_builder.compile.reasons import reasons
from kernel_builder.compile.run import run_here
from kernel_builder.compile.sources import Sources
from kernel_builder.compile.store import UnitStore
from kernel_builder.compile.units import Unit, closure
from kernel_builder.compile.variants import VariantUnits, units_of

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from kernel_builder.compile.run import Executor, Failure, Ran
    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.model import Toolchain

_MARGIN, _LEAST = 1.25, 0.05  # of a measured peak, and GiB on top


def build(
    toolchain: Toolchain,
    settings: Settings,
    reporter: Reporter,
    *,
    jobs: int | None = None,
    keep_going: bool = False,
    executor: Executor | None = None,
) -> BuildResult:
    """Build every variant of the toolchain's plan.

    Args:
        toolchain: Provisioned toolchain.
        settings: Its store holds the results.
        reporter: Receives progress, the number of jobs, and why units run.
        jobs: Compile steps at once; default: MAX_JOBS, else what processors and memory allow.
        keep_going: Build the other variants when one fails; what failed is in ``BuildResult.failed``.
        executor: Runs the steps; default: ninja, on this machine.

    Raises:
        CompileError: A step failed (without ``keep_going``), or the store cannot be written.
        SpecError: An include leaves the kernel folder.
    """
    store = UnitStore(settings.store)
    variants = units_of(toolchain, Sources())
    run, log = None, None
    if _missing(variants, store):
        with store.lock(reporter):
            # Another build may have worked, and the author edited, while this one waited.
            variants = units_of(toolchain, Sources())
            missing = _missing(variants, store)
            if missing:
                run, log = _compile(
                    missing,
                    store,
                    settings,
                    reporter,
                    jobs or settings.jobs,
                    keep_going=keep_going,
                    executor=executor or run_here,
                )
    failed = _failed(variants, run.failures if run else ())
    done = run.done if run else []
    return BuildResult(
        artefacts=tuple(_artefact(variant, store) for variant in variants if variant.plan.label not in failed),
        failed=failed,
        compiled=tuple(unit.label for unit in done),
        reused=sum(store.has(unit) for unit in _all(variants)) - len(done),
        log=log,
    )


def _all(variants: Sequence[VariantUnits]) -> tuple[Unit, ...]:
    return closure(tuple(variant.link for variant in variants))


def _missing(variants: Sequence[VariantUnits], store: UnitStore) -> list[Unit]:
    """Units to compile, inputs first. What is handed out, and what a step will read, is compared bit by bit."""
    read = {variant.link.key for variant in variants}
    missing = []
    for unit in reversed(_all(variants)):
        if not store.has(unit, whole=unit.key in read):
            missing.append(unit)
            read.update(upstream.key for upstream in unit.inputs)
    return missing[::-1]


def _compile(
    missing: list[Unit],
    store: UnitStore,
    settings: Settings,
    reporter: Reporter,
    wanted: int | None,
    *,
    keep_going: bool,
    executor: Executor,
) -> tuple[Ran, Path]:
    threads = settings.nvcc_threads if any(unit.kind == "nvcc" for unit in missing) else 1
    missing = [_as_measured(unit, store, threads) for unit in missing]
    jobs = plan_jobs(this_machine(), [unit.memory for unit in missing], wanted=wanted, threads=threads)
    reporter.note(f"compiling {len(missing)} units, {jobs.reason}")
    for reason in reasons(missing, store.last_facts):
        reporter.note(reason)
    with store.run_folder() as folder:
        log = store.log_path(folder)
        steps = write_graph(folder, missing, store, jobs, settings.launcher)
        with log.open("w", encoding="utf-8") as file:
            run = executor(folder, steps, store, reporter, file, jobs, settings, keep_going=keep_going)
    errors = [failure.error(log) for failure in run.failures]
    if errors and not keep_going:
        raise errors[0]
    for failed in errors:
        reporter.warn(f"{failed.message}\n  at {failed.where}\n{failed.detail}")
    return run, log


def _as_measured(unit: Unit, store: UnitStore, threads: int) -> Unit:
    """The unit with the memory that it took the last time, and some more in case its sources grew.

    What is remembered is of one process; an nvcc with several threads has as many at work.
    """
    peak = store.last_peak(unit.label)
    memory = unit.memory if peak is None else _MARGIN * peak + _LEAST
    return replace(unit, memory=memory * threads if unit.kind == "nvcc" else memory)


def _failed(variants: Sequence[VariantUnits], failures: Sequence[Failure]) -> dict[str, str]:
    by_key = {failure.unit.key: failure for failure in failures}
    failed: dict[str, str] = {}
    for variant in variants:
        own = [by_key[unit.key] for unit in closure((variant.link,)) if unit.key in by_key]
        if own:
            failed[variant.plan.label] = f"{own[0].sentence.rstrip('.')}: {own[0].unit.label}"
    return failed


def _artefact(variant: VariantUnits, store: UnitStore) -> Artefact:
    objects: Mapping[str, Path] = {name: store.result(unit) for name, unit in variant.objects.items()}
    return Artefact(
        plan=variant.plan,
        library=store.result(variant.link),
        filename=variant.link.output,
        device_code=tuple(
            DeviceCode(device=device, arch=arch, path=store.result(unit)) for device, arch, unit in variant.device_code
        ),
        objects=objects,
    )
