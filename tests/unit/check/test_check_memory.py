"""Known findings come back as they were; another question, other code or a damaged record is looked at again."""

from __future__ import annotations

import pytest

from kernel_builder.check import memory
from kernel_builder.check.model import Finding

FOUND = (Finding(code="glibc-floor", severity="error", where="toy: a.so", message="Too new.", hint="older"),)


@pytest.fixture
def ask(tmp_path):
    """Asks, and counts how often the answer was worked out."""
    looked = []

    def go(*question: str, findings=FOUND):
        def answer():
            looked.append(question)
            return findings

        return memory.remembered(tmp_path, question, answer), len(looked)

    return go


def test_the_same_question_is_answered_once(ask) -> None:
    assert ask("a", "b") == (FOUND, 1)
    assert ask("a", "b", findings=()) == (FOUND, 1)


def test_nothing_found_is_an_answer_too(ask) -> None:
    assert ask("a", findings=()) == ((), 1)
    assert ask("a") == ((), 1)


def test_another_question_is_another_look(ask) -> None:
    ask("a", "bc")
    assert ask("ab", "c", findings=()) == ((), 2)


def test_other_code_looks_again(ask, monkeypatch) -> None:
    ask("a")
    monkeypatch.setattr(memory, "_code", lambda: "another version")
    assert ask("a", findings=()) == ((), 2)


def test_another_table_of_torchs_functions_looks_again(ask, monkeypatch, tmp_path) -> None:
    ask("a")
    table = tmp_path / "tables" / memory.SHIM_TABLE.name
    table.parent.mkdir()
    table.write_text(memory.SHIM_TABLE.read_text() + "torch_newer 2.15 2.15\n")
    monkeypatch.setattr(memory, "SHIM_TABLE", table)
    memory._code.cache_clear()
    assert ask("a", findings=()) == ((), 2)
    memory._code.cache_clear()


@pytest.mark.parametrize("damage", [b"", b"[{]", b'[{"code": "x"}]', b"7", b'{"a": 1}'])
def test_a_damaged_record_is_looked_at_again(ask, tmp_path, damage) -> None:
    ask("a")
    (record,) = (tmp_path / "findings").rglob("*.json")
    record.write_bytes(damage)
    assert ask("a", findings=()) == ((), 2)


def test_a_store_that_cannot_be_written_changes_nothing(tmp_path) -> None:
    (tmp_path / "findings").write_text("in the way")
    assert memory.remembered(tmp_path, ("a",), lambda: FOUND) == FOUND
