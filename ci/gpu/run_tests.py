"""Runs every packaged kernel's tests on this machine's GPU, and with --bench its benchmark too.

    PYTHONPATH=builder python ci/gpu/run_tests.py [--dist dist] [--bench FOLDER] [KERNEL...]

Needs torch, pytest and what kernel_loader needs; nothing of the build side. Fails when no CUDA device is visible, when
a kernel has no variant for this torch, and when no case ran.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

from kernel_builder.errors import KernelBuilderError, UsageError
from kernel_builder.reporting import SilentReporter
from kernel_builder.test.test import run_tests

ROOT = Path(__file__).resolve().parents[2]
LOG_LINES = 60


class Progress(SilentReporter):
    """Says on stderr which variant runs."""

    def progress(self, label: str, done: int, total: int, detail: str = "") -> None:
        if detail:
            print(f"{label} {done + 1} of {total}: {detail}", file=sys.stderr, flush=True)


def test_kernel(root: Path) -> tuple[int, int, list[Path]]:
    """Numbers of passed and failed cases, and the variants that were tested."""
    tested = run_tests(
        root, tests=ROOT / "kernels-src" / root.name / "tests", device="cuda", reporter=Progress(), across_cuda=True
    )
    for unfit in tested.unfit:
        print(f"{root.name}: {unfit.variant} is not for this machine: {unfit.reason}")
    for receipt in tested.receipts:
        counts = receipt.counts
        print(f"{root.name}: {receipt.variant} {receipt.result}: {counts.passed} passed, {counts.failed} failed")
        if receipt.result != "passed":
            print("\n".join(receipt.log.read_text().splitlines()[-LOG_LINES:]))
    passed = sum(receipt.counts.passed for receipt in tested.receipts)
    failed = sum(receipt.counts.failed + (receipt.result != "passed") for receipt in tested.receipts)
    return passed, failed, [root / "build" / receipt.variant for receipt in tested.receipts]


def benchmark(root: Path, variant: Path, results: Path) -> None:
    """Writes FOLDER/<kernel>-<variant>.json, if the kernel has a benchmark."""
    script = ROOT / "kernels-src" / root.name / "benchmarks" / "benchmark.py"
    if not script.is_file():
        return
    results.mkdir(parents=True, exist_ok=True)
    env = {**os.environ, "KERNEL_UNDER_TEST": str(variant.absolute()), "PYTHONPATH": str(ROOT / "builder")}
    done = subprocess.run([sys.executable, str(script)], env=env, stdout=subprocess.PIPE, text=True, check=True)
    (results / f"{root.name}-{variant.name}.json").write_text(done.stdout + "\n")
    print(done.stdout)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="*", metavar="KERNEL")
    parser.add_argument("--dist", type=Path, default=ROOT / "dist")
    parser.add_argument("--bench", type=Path, metavar="FOLDER")
    options = parser.parse_args()
    built = sorted(path.parent for path in options.dist.glob("*/build"))
    roots = [options.dist / name for name in options.kernels] or built
    if not roots:
        raise UsageError("No packaged kernel is there.", where=str(options.dist), hint="make build-matrix")
    passed = failed = 0
    for root in roots:
        kernel_passed, kernel_failed, variants = test_kernel(root)
        passed, failed = passed + kernel_passed, failed + kernel_failed
        if options.bench and not kernel_failed:
            benchmark(root, variants[0], options.bench)
    print(f"{passed} cases passed, {failed} failed on the GPU")
    return 0 if passed and not failed else 1


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KernelBuilderError as e:
        sys.exit("\n".join(filter(None, (e.message, e.where, e.hint, e.detail))))
