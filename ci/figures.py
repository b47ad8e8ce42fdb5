"""Compares a build of rmsnorm with what torch.utils.cpp_extension would run for the same variants; not part of CI.

python ci/figures.py [--jobs 2] [--rows 6] [--out figures.json]

Ours is ``kernel-builder build rmsnorm --jobs N`` as a whole process: planning, compiling, linking, checking and
packaging, with toolkits and SDKs in the store and no compiled unit. Theirs is the compile steps alone that torch
writes, all variants in one ninja with the same ``-j``, in two styles:

- ``tutorial``: sources as torch's tutorial on extensions has them, where binding and ``.cu`` see ``torch/extension.h``.
- ``narrow``: our own binding over the full ABI with its few includes, and a ``.cu`` that sees nothing of torch. Who
  writes this has done by hand half of what our division of labour does.

Both compile the same device code for the same architectures. What the comparison grants to theirs: linking is left out,
host code is not optimised (torch's own command lines ask for that), nvcc 13.0 stands for every toolkit (it compiles for
all these architectures), and in the cover both make four variants, though only ours serve every torch with them: with
cpp_extension that takes a build per torch, which is the row ``full``. What it grants to ours: no step of theirs is
shared between variants, as where each is built in an environment of its own.

The full matrix takes cpp_extension an hour and more. ``--rows`` of its rows are run, spread evenly, and each other row
is taken to need the processor time that the rows with the same number of architectures needed on average; the sum
divided by N is its time, as if the steps could be spread over the N jobs without a gap.

Wall time is what counts, on a machine that does nothing else; processor time is given beside it, because it is nearly
the same on one that does.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpp_extension import ROOT, SOURCES, run_steps, steps_of

from kernel_builder.console.text import size, table
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection
from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.spec.read import find_kernels
from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.nvcc.provide import provide_nvcc
from kernel_builder.toolchain.provision import provision
from kernel_builder.toolchain.supply import Supply
from kernel_builder.toolchain.torch_sdk import provide_sdk
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kernel_builder.plan.model import Plan, VariantPlan
    from kernel_builder.plan.rows import Strategy
    from kernel_builder.toolchain.model import Nvcc, Toolchain

KERNELS = ROOT / "kernels-src"
NVCC = MajorMinor(13, 0)
DOWNLOADS = ("toolkits", "sdks", "floor", "symbols")


def plan_of(strategy: Strategy) -> Plan:
    return make_plan(find_kernels(("rmsnorm",), KERNELS), selection=Selection(), strategy=strategy)


def ours(strategy: Strategy, jobs: int, place: Path) -> dict[str, Any]:
    """Seconds of a first build and of a second one that has nothing to do."""
    store = place / f"store-{strategy}"
    store.mkdir()
    for name in DOWNLOADS:
        (store / name).symlink_to(Settings.from_environment().store / name)
    argv = [
        sys.executable, "-m", "kernel_builder", "build", "rmsnorm", "--kernels-dir", str(KERNELS),
        "--matrix", strategy, "--jobs", str(jobs), "--out", str(place / f"dist-{strategy}"), "--json",
    ]  # fmt: skip
    env = {**os.environ, "KERNEL_BUILDER_CACHE": str(store)}
    seconds, processor, made = [], [], {}
    for _ in range(2):
        started, spent = time.monotonic(), processor_time()
        done = subprocess.run(argv, env=env, capture_output=True, text=True, check=True)
        seconds.append(time.monotonic() - started)
        processor.append(processor_time() - spent)
        made = made or json.loads(done.stdout)
    return {
        "variants": len(made["variants"]), "units": len(made["compiled"]),
        "seconds": seconds[0], "processor": processor[0], "unchanged": seconds[1],
    }  # fmt: skip


def processor_time() -> float:
    """Processor seconds of all programs that this process started and that have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def theirs(
    name: str, variants: Sequence[VariantPlan], style: str, toolchain: Toolchain, nvcc: Nvcc, jobs: int, place: Path
) -> tuple[float, float, dict[str, float]]:
    """Seconds from start to end, processor seconds, and variant → processor seconds of its steps."""
    below = place / f"{style}-{name}"
    steps = {str(v.variant): steps_of(v, style, toolchain.sdks[v.sdk], nvcc, below) for v in variants}
    started, spent = time.monotonic(), processor_time()
    times = run_steps([step for own in steps.values() for step in own], below / "run", jobs)
    seconds, processor = time.monotonic() - started, processor_time() - spent
    return seconds, processor, {variant: sum(times[step.name] for step in own) for variant, own in steps.items()}


def spread(variants: Sequence[VariantPlan], rows: int) -> list[VariantPlan]:
    """Rows with every number of architectures, and of old and new torches: evenly from the plan in that order."""
    ordered = sorted(variants, key=lambda v: (_archs(v), v.sdk))
    return [ordered[(2 * index + 1) * len(ordered) // (2 * rows)] for index in range(min(rows, len(ordered)))]


def _archs(variant: VariantPlan) -> int:
    return sum(map(len, variant.archs.values()))


def extrapolated(variants: Sequence[VariantPlan], measured: dict[str, float], jobs: int) -> float:
    """Seconds of all rows from those of some."""
    by_archs: dict[int, list[float]] = {}
    for variant in variants:
        if str(variant.variant) in measured:
            by_archs.setdefault(_archs(variant), []).append(measured[str(variant.variant)])
    return sum(statistics.mean(by_archs[_archs(variant)]) for variant in variants) / jobs


def bytes_of_another_torch(place: Path) -> dict[str, int]:
    """What one more torch costs a store that has one: headers, and the symbols that its full-ABI variants are checked
    against."""
    settings = replace(Settings.from_environment(), store=place / "store-bytes")
    lock, received = read_lock(), []
    with closing(Supply(settings, SilentReporter())) as supply:
        for version in (MajorMinor(2, 13), MajorMinor(2, 12)):
            for fetch in (lambda item: provide_sdk(item, supply), supply.symbols):
                before = supply.received
                fetch(lock.sdk(version))
                received.append(supply.received - before)
    return {"headers": received[2], "symbols": received[3]}


def machine() -> str:
    """The processor's name and how many there are."""
    lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{len(names)} × {names[0]}"


def measure(jobs: int, rows: int, place: Path) -> Iterator[dict[str, Any]]:
    """Do all of it; yields what is known after each part."""
    settings, reporter = Settings.from_environment(), SilentReporter()
    plans = {"cover": plan_of("cover"), "full": plan_of("full")}
    toolchains = {name: provision(plan, settings, reporter) for name, plan in plans.items()}
    with closing(Supply(settings, reporter)) as supply:
        nvcc = provide_nvcc(NVCC, "locked", toolchains["cover"].host, settings, supply, reporter)
    figures: dict[str, Any] = {"machine": machine(), "jobs": jobs, "ours": {}, "cpp_extension": {}}
    figures["bytes of another torch"] = bytes_of_another_torch(place)
    for name in ("cover", "full"):
        figures["ours"][name] = ours(name, jobs, place)
        yield figures
    cover, full = plans["cover"].variants, plans["full"].variants
    for style in SOURCES:
        seconds, processor, _ = theirs("cover", cover, style, toolchains["cover"], nvcc, jobs, place)
        figures["cpp_extension"][style] = {"cover": seconds, "cover processor": processor}
        yield figures
        _, _, measured = theirs("full", spread(full, max(3, rows)), style, toolchains["full"], nvcc, jobs, place)
        figures["cpp_extension"][style] |= {"full": extrapolated(full, measured, jobs), "rows measured": measured}
        yield figures


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--rows", type=int, default=6)
    parser.add_argument("--out", type=Path, default=Path("figures.json"))
    asked = parser.parse_args()
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        for figures in measure(asked.jobs, asked.rows, Path(folder)):
            asked.out.write_text(json.dumps(figures, indent=2) + "\n")
    sys.stdout.write("\n".join(report(figures)) + "\n")


def report(figures: dict[str, Any]) -> list[str]:
    """The figures as lines of text."""
    rows = []
    for name, own in figures["ours"].items():
        for style, other in figures["cpp_extension"].items():
            how = "" if name == "cover" else f", from {len(other['rows measured'])} rows"
            rows.append((
                f"{name}, {own['variants']} variants", f"{own['seconds']:.1f} s", f"{style}{how}",
                f"{other[name]:.1f} s", f"{other[name] / own['seconds']:.1f}×",
            ))  # fmt: skip
    another = figures["bytes of another torch"]
    return [
        *table(("MATRIX", "OURS", "CPP_EXTENSION", "THEIRS", "RATIO"), rows),
        "",
        *(
            f"processor time of the cover: ours {figures['ours']['cover']['processor']:.0f} s, {style} "
            f"{other['cover processor']:.0f} s"
            for style, other in figures["cpp_extension"].items()
        ),
        *(f"{name} unchanged: {own['unchanged']:.1f} s" for name, own in figures["ours"].items()),
        f"another torch: {size(another['headers'])} of headers, {size(another['symbols'])} of symbols",
        f"{figures['machine']}, {figures['jobs']} jobs",
    ]


if __name__ == "__main__":
    main()
