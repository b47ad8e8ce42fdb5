"""``kernel-builder test``."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernel_builder.cli.options import epilog, quiet_and_json, read_output
from kernel_builder.console.progress import reporting

if TYPE_CHECKING:
    from kernel_builder.console.output import Output
    from kernel_builder.test.model import Receipt, Tested

_FOLDER = click.Path(path_type=Path, file_okay=False)
_LOG_LINES = 40


@click.command(
    epilog=epilog(
        "kernel-builder test rmsnorm --device cpu",
        "kernel-builder test --device cuda",
        "kernel-builder test dist/rmsnorm --device cpu -- -k backward -x",
        codes=(2, 4, 6, 9),
    )
)
@click.argument("kernel", required=False)
@click.argument("pytest_arguments", nargs=-1, type=click.UNPROCESSED, metavar="[-- PYTEST...]")
@click.option("--device", type=click.Choice(["cpu", "cuda"]), required=True, help="What the tests run on.")
@click.option("--out", type=_FOLDER, default=Path("dist"), show_default=True, help="Where packaged variants are.")
@click.option("--kernels-dir", type=_FOLDER, default=Path("kernels-src"), show_default=True, help="Where tests are.")
@click.option("--tests", type=_FOLDER, help="Folder of tests; default: the kernel's own, else those in source.tar.gz.")
@click.option(
    "--across-cuda",
    is_flag=True,
    help="Also run variants made for another CUDA release than torch's: code that is launched through the driver can.",
)
@quiet_and_json
def test(kernel: str | None, pytest_arguments: tuple[str, ...], **options: Any) -> int:
    """Run kernels' tests against packaged variants.

    KERNEL is a name or the path of dist/KERNEL or of one variant; default: everything in --out. Each variant
    tested gets a receipt, but none is written when pytest was given arguments.
    """
    from kernel_builder.errors import CheckError

    _, output = read_output(options)
    tested = {
        root: _test_root(root, output, pytest_arguments, **options) for root in _roots(kernel, options.pop("out"))
    }
    receipts = [receipt for outcome in tested.values() for receipt in outcome.receipts]
    rows = [row for root, outcome in tested.items() for row in _rows(root, outcome)]
    cases = sum(receipt.counts.passed for receipt in receipts)
    output.result(
        data={
            "receipts": [receipt.to_json() for receipt in receipts],
            "unfit": [{"variant": u.variant, "reason": u.reason} for t in tested.values() for u in t.unfit],
        },
        ids=[receipt.digest for receipt in receipts],
        lines=[*output.table(("VARIANT", "RESULT", "DETAIL"), rows), "", f"{cases} cases passed"],
    )
    failed = [receipt for receipt in receipts if receipt.result == "failed"]
    for receipt in failed:
        _show(receipt, output)
    return CheckError.exit_code if failed else 0


def _roots(kernel: str | None, out: Path) -> list[Path]:
    """Folders to test: the one that is named, or every kernel of ``out``."""
    from kernel_builder.errors import UsageError

    if kernel is not None:
        named = out / kernel
        return [named if named.is_dir() or not Path(kernel).is_dir() else Path(kernel)]
    roots = sorted(path.parent for path in out.glob("*/build"))
    if not roots:
        raise UsageError("No packaged kernel is there.", where=str(out), hint="kernel-builder build makes them")
    return roots


def _test_root(
    root: Path,
    output: Output,
    arguments: tuple[str, ...],
    *,
    device: str,
    kernels_dir: Path,
    tests: Path | None,
    across_cuda: bool,
) -> Tested:
    from kernel_builder.package.read import packaged_variants, unpack_sources
    from kernel_builder.test.test import run_tests

    with reporting(output) as reporter, tempfile.TemporaryDirectory(prefix="kernel-source-") as scratch:
        variant = packaged_variants(root)[0]
        folder = tests or kernels_dir / variant.metadata.name / "tests"
        if tests is None and not folder.is_dir():
            folder = unpack_sources(variant, Path(scratch)) / variant.metadata.name / "tests"
        return run_tests(
            root, tests=folder, device=device, reporter=reporter, arguments=arguments, across_cuda=across_cuda
        )


def _rows(root: Path, tested: Tested) -> list[tuple[str, ...]]:
    rows = []
    for receipt in tested.receipts:
        counts = receipt.counts
        detail = f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped on {receipt.machine.device}"
        rows.append((f"{root.name}/{receipt.variant}", receipt.result, f"{detail}, torch {receipt.machine.torch}"))
    return rows + [(f"{root.name}/{unfit.variant}", "not run", unfit.reason) for unfit in tested.unfit]


def _show(receipt: Receipt, output: Output) -> None:
    lines = receipt.log.read_text("utf-8", errors="replace").splitlines()
    nothing = receipt.counts.passed == 0 and receipt.counts.failed == 0
    sentence = "No test passed, so nothing is proven." if nothing else "Tests failed."
    output.error(sentence, where=f"{receipt.variant}, log {receipt.log}", detail="\n".join(lines[-_LOG_LINES:]))
