"""What ``build`` says at its end: every planned variant is in the table, made or not, and forty fit on a screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.check.model import Finding
from kernel_builder.cli.build import _report_failures
from kernel_builder.cli.pipeline import Built
from kernel_builder.compile.model import BuildResult
from kernel_builder.console.output import Output
from kernel_builder.plan.model import Plan
from kernel_builder.toolchain.model import Floor, HostCompiler, Toolchain

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

LABELS = [f"toy/torch2{minor}-cxx11-cpu-x86_64-linux" for minor in range(10, 16)]


def built(place: Path, *, failed: dict[str, str], findings: dict[str, tuple[Finding, ...]]) -> Built:
    toolchain = Toolchain(
        plan=Plan(variants=()),
        host=HostCompiler(cxx="c++", version=(12, 2, 0), identity="x"),
        floor=Floor(root=place, torch=place, digest="", link={}),
        toolkits={},
        sdks={},
    )
    result = BuildResult(artefacts=(), failed=failed, compiled=("a", "b"), reused=3, log=place / "log")
    return Built(toolchain=toolchain, result=result, findings=findings, distributions=(), outcomes=(), hub=None)


def refusal(label: str) -> Finding:
    return Finding(code="glibc-floor", severity="error", where=label, message="It needs GLIBC_2.38.", hint="link less")


def test_variants_that_failed_are_rows_with_the_stage_that_stopped_them(tmp_path: Path) -> None:
    made = built(tmp_path, failed={LABELS[0]: "It broke"}, findings={LABELS[1]: (refusal(LABELS[1]),), LABELS[2]: ()})
    assert made.rows() == [
        (LABELS[0], "–", "–", "–", "FAILED: compile"),
        (LABELS[1], "–", "–", "–", "FAILED: check"),
    ]
    assert next(made.summary(1.0)) == "0 variants, 2 FAILED; 2 units compiled, 3 reused, 0 B downloaded, 1.0 s"


def test_one_fault_in_many_variants_is_said_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = built(tmp_path, failed=dict.fromkeys(LABELS, "A compile step failed: toy: a.cpp"), findings={})
    assert _report_failures(made, Output()) == 5
    assert capsys.readouterr().err == (
        f"error: A compile step failed: toy: a.cpp\n  at {LABELS[0]} and 5 more\nhint: the log is {tmp_path / 'log'}\n"
    )


def test_refusals_of_check_are_exit_code_6_unless_a_compiler_failed_too(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    refused = {label: (refusal(label),) for label in LABELS[:2]}
    assert _report_failures(built(tmp_path, failed={}, findings=refused), Output()) == 6
    assert f"  at {LABELS[0]} and 1 more\n" in capsys.readouterr().err
    assert _report_failures(built(tmp_path, failed={LABELS[3]: "It broke"}, findings=refused), Output()) == 5
