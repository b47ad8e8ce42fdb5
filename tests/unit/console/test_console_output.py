"""What people and programs see."""

from __future__ import annotations

import io
import json
import sys

import pytest

from kernel_builder.console.output import Output
from kernel_builder.console.progress import PlainReporter, reporting
from kernel_builder.console.text import counted, size, table


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (999, "999 B"), (1000, "1.0 kB"), (88_000_000, "88.0 MB"), (2_500_000_000, "2.5 GB")],
)
def test_sizes_are_short(count, text) -> None:
    assert size(count) == text


def test_counts_agree_with_their_noun() -> None:
    assert [counted(n, "unit") for n in (0, 1, 2)] == ["0 units", "1 unit", "2 units"]


def test_a_table_aligns_and_never_cuts() -> None:
    name = "torch-stable-abi210-cu128-x86_64-linux" * 4
    assert table(("A", "B"), [(name, "1"), ("x", "22")]) == [
        f"{'A'.ljust(len(name))}  B",
        f"{name}  1",
        f"{'x'.ljust(len(name))}  22",
    ]


def test_stdout_is_text_ids_or_one_versioned_object(capsys) -> None:
    for output in (Output(), Output(quiet=True), Output(as_json=True)):
        output.result(data={"a": 1}, ids=["id"], lines=["line"])
    text, ids, *rest = capsys.readouterr().out.split("\n", 2)
    assert (text, ids) == ("line", "id")
    assert json.loads(rest[0]) == {"version": 1, "a": 1}


def test_an_error_has_sentence_place_detail_and_hint(capsys) -> None:
    Output().error("It broke.", where="build.toml: general", detail="one\ntwo", hint="mend it")
    out, err = capsys.readouterr()
    assert err == "error: It broke.\n  at build.toml: general\n  one\n  two\nhint: mend it\n"
    assert out == ""


@pytest.mark.parametrize(
    ("color", "stream", "painted"), [(True, Terminal, True), (False, Terminal, False), (True, io.StringIO, False)]
)
def test_colour_only_on_a_terminal_that_wants_it(monkeypatch, color, stream, painted) -> None:
    monkeypatch.setattr(sys, "stderr", stream())
    Output(color=color).error("x")
    assert ("\033[" in sys.stderr.getvalue()) is painted


def test_off_a_terminal_progress_is_two_lines_per_step(capsys) -> None:
    with reporting(Output()) as reporter:
        assert isinstance(reporter, PlainReporter)
        for done in range(0, 101, 10):
            reporter.progress("NVRTC 12.8.93", done * 1000, 100_000, "bytes")
        reporter.progress("compiling", 4, 4, "rms_norm.cu")
    assert capsys.readouterr().err.splitlines() == [
        "NVRTC 12.8.93 …",
        "NVRTC 12.8.93: 100.0 kB/100.0 kB",
        "compiling: 4/4 rms_norm.cu",
    ]


def test_quiet_keeps_warnings_only(capsys) -> None:
    with reporting(Output(quiet=True)) as reporter:
        reporter.note("note")
        reporter.progress("compiling", 1, 1)
        reporter.warn("careful")
    assert capsys.readouterr().err == "warning: careful\n"


def test_on_a_terminal_there_are_bars(monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", Terminal())
    with reporting(Output(color=False)) as reporter:
        reporter.progress("compiling", 1, 2, "a.cu")
        reporter.note("[not markup]")
        reporter.warn("careful")
        reporter.progress("compiling", 2, 2, "b.cu")
    shown = sys.stderr.getvalue()
    assert "compiling" in shown
    assert "2/2 b.cu" in shown
    assert "[not markup]" in shown
    assert "warning: careful" in shown
