"""Runs a kernel's tests against its packaged variants, one pytest process each, and writes receipts."""

from __future__ import annotations

import json
import sys
import tempfile
from os import pathsep
from pathlib import Path
from typing import TYPE_CHECKING

import kernel_loader
from kernel_builder.errors import CheckError, NoVariantError, UsageError
from kernel_builder.files import sha256_of, tree_digest
from kernel_builder.package.archive import write_file
from kernel_builder.package.read import packaged_variants
from kernel_builder.processes import stream
from kernel_builder.test.fitting import fitting, probe
from kernel_builder.test.model import Counts, Receipt, Tested
from kernel_builder.test.receipts import receipt_path
from kernel_loader.format.tables import write_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel_builder.package.model import PackagedVariant
    from kernel_builder.reporting import Reporter
    from kernel_builder.test.model import Machine, Unfit


def run_tests(
    distribution_root: Path,
    *,
    tests: Path,
    device: str,
    reporter: Reporter,
    arguments: Sequence[str] = (),
    across_cuda: bool = False,
) -> Tested:
    """Test every packaged variant that can run on ``device`` and write its receipt beside the variants.

    The tests find their variant in KERNEL_UNDER_TEST and the device in KERNEL_TEST_DEVICE.

    Args:
        distribution_root: ``dist/<kernel>``, or one variant folder.
        tests: Folder of the kernel's tests.
        device: ``cpu`` or ``cuda``.
        reporter: Is told which variant runs.
        arguments: Further arguments for pytest; a receipt is only written when there are none.
        across_cuda: Also test variants made for another CUDA release than torch's.

    Raises:
        UsageError: No variant or no tests are there.
        NoVariantError: No variant can run here.
        CheckError: A variant was replaced meanwhile.
    """
    if not tests.is_dir():
        raise UsageError(
            "The folder of the kernel's tests is not there.", where=str(tests), hint="name it with --tests"
        )
    variants = packaged_variants(distribution_root)
    base = {"PYTHONPATH": pathsep.join(_import_paths()), "PYTHONDONTWRITEBYTECODE": "1"}
    environment, machine = probe(device, base)
    fit, unfit = fitting(variants, environment, device, across_cuda=across_cuda)
    if not fit:
        raise NoVariantError(
            f"None of {len(variants)} variants can run here on {device}.",
            where=str(distribution_root),
            detail=_reasons(unfit),
        )
    receipts = []
    for index, variant in enumerate(fit):
        reporter.progress("testing", index, len(fit), variant.name)
        env = {**base, "KERNEL_UNDER_TEST": str(variant.path), "KERNEL_TEST_DEVICE": device}
        receipt = _test_variant(variant, tests.absolute(), machine, env, arguments)
        if packaged_variants(variant.path)[0].digest != variant.digest:
            message = "The variant was built again while it was tested, so the result belongs to neither."
            raise CheckError(message, where=str(variant.path), hint="test again")
        receipts.append(receipt)
        if not arguments:
            write_file(receipt_path(variant), write_json(receipt.to_json()))
    reporter.progress("testing", len(fit), len(fit))
    return Tested(receipts=tuple(receipts), unfit=unfit)


def _test_variant(
    variant: PackagedVariant, tests: Path, machine: Machine, env: dict[str, str], arguments: Sequence[str]
) -> Receipt:
    log = receipt_path(variant).with_name(f"{variant.name}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="kernel-test-") as scratch, log.open("w", encoding="utf-8") as output:
        counted = Path(scratch) / "counts.json"
        argv = [sys.executable, "-m", "pytest", str(tests), "-p", "kernel_builder.test.counting"]
        argv += ["--kernel-counts", str(counted), "-p", "no:cacheprovider", "--color=no", *arguments]
        status = stream(argv, lambda line: output.writelines((line, "\n")), cwd=tests.parent, env=env)
        counts = Counts(**json.loads(counted.read_text())) if counted.is_file() else Counts(failed=1)
    # A run in which nothing passed proves nothing, even if pytest is content.
    passed = status == 0 and counts.failed == 0 and counts.passed > 0
    return Receipt(
        variant=variant.name,
        digest=variant.digest,
        level="A",
        machine=machine,
        counts=counts,
        tests_digest=_tests_digest(tests),
        result="passed" if passed else "failed",
        commit=variant.metadata.commit,
        log=log,
    )


def _tests_digest(tests: Path) -> str:
    sources = [path for path in tests.rglob("*.py") if path.is_file()]
    return tree_digest({path.relative_to(tests).as_posix(): sha256_of(path) for path in sources})


def _import_paths() -> list[str]:
    """Folders that a fresh Python needs beside its own to import what this one can."""
    own = (sys.prefix, sys.base_prefix)
    beside = [path for path in sys.path if path and not path.startswith(own)]
    return list(dict.fromkeys([str(Path(kernel_loader.__file__).parents[1]), *beside]))


def _reasons(unfit: Sequence[Unfit]) -> str:
    return "\n".join(f"{entry.variant}: {entry.reason}" for entry in unfit)
