"""What imports gets the least of receipts; what does not gets a finding and none."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from kernel_builder.check import check as checks
from kernel_builder.check.model import Finding
from kernel_builder.reporting import SilentReporter
from kernel_builder.test import importing
from kernel_builder.test.importing import import_variants
from kernel_builder.test.receipts import level_of

NAME = "torch213-cxx11-cpu-x86_64-linux"


@pytest.fixture
def distribution(tmp_path):
    variant = SimpleNamespace(
        name=NAME, path=tmp_path / "build" / NAME, digest="d" * 64, metadata=SimpleNamespace(commit=None)
    )
    return SimpleNamespace(root=tmp_path, variants=(variant,))


@pytest.fixture
def run(distribution, tmp_path, monkeypatch):
    """Imports the distribution's variant where check finds these findings."""

    def go(*findings: Finding, obstacle: str = ""):
        monkeypatch.setattr(importing, "obstacle", lambda _: obstacle)
        monkeypatch.setattr(checks, "check_variant", lambda _, **__: findings)
        found = dict(import_variants(distribution, tmp_path / "store", SilentReporter()))
        return found, level_of(tmp_path / "receipts" / f"{'d' * 64}.json")

    return go


def finding(code: str, severity: str) -> Finding:
    return Finding(code=code, severity=severity, where=NAME, message="It says so.")


def test_what_imports_is_at_level_c_and_is_not_imported_again(run, tmp_path) -> None:
    assert run(finding("local-memory", "note")) == ({NAME: (finding("local-memory", "note"),)}, "C")
    (receipt,) = (tmp_path / "receipts").iterdir()
    assert json.loads(receipt.read_bytes())["digest"] == "d" * 64
    assert run(finding("import", "error")) == ({}, "C")


def test_what_does_not_import_has_no_receipt(run) -> None:
    assert run(finding("import", "error")) == ({NAME: (finding("import", "error"),)}, "none")
    assert run() == ({NAME: ()}, "C")


def test_what_cannot_be_tried_has_no_receipt_and_says_why(run) -> None:
    note = finding("not-imported", "note")
    assert run(note, obstacle="torch is not installed here") == ({NAME: (note,)}, "none")


def test_a_test_receipt_stays(run, tmp_path) -> None:
    path = tmp_path / "receipts" / f"{'d' * 64}.json"
    path.parent.mkdir()
    path.write_text('{"level": "A", "result": "passed"}')
    assert run(finding("import", "error")) == ({}, "A")
