"""Why a unit runs again, in words."""

from __future__ import annotations

import pytest

from kernel_builder.compile.reasons import reasons_of

OLD = {
    "tool host compiler": "gcc 12",
    "output": "a.o",
    "flags": "c++\n-O2\n-c",
    "file csrc/a.cpp": "1",
    "unit 0 x": "k",
}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"file csrc/a.cpp": "2"}, "csrc/a.cpp changed"),
        ({"file csrc/b.h": "2"}, "csrc/b.h is new"),
        ({"file csrc/a.cpp": None}, "csrc/a.cpp is gone"),
        ({"tool host compiler": "gcc 13"}, "host compiler changed"),
        ({"tool torch SDK 2.10": "d"}, "torch SDK 2.10 is new"),
        ({"flags": "c++\n-O3\n-c"}, "flags changed (+-O3 --O2)"),
        ({"flags": "c++\n-c\n-O2"}, "flags changed (order)"),
        ({"generated source": "{}"}, "the sources of the kernel changed, and its id with them"),
        ({"unit 0 x": "l"}, "made of the above"),
        ({}, "the result in the store is gone or damaged"),
    ],
)
def test_the_changed_input_is_named(change: dict[str, str | None], expected: str) -> None:
    new = {name: value for name, value in {**OLD, **change}.items() if value is not None}
    assert reasons_of(new, OLD) == (expected,)


def test_a_unit_without_a_record_is_new() -> None:
    assert reasons_of(OLD, None) == ("not compiled before",)


def test_every_own_reason_is_given_and_what_follows_is_not() -> None:
    new = {**OLD, "file csrc/a.cpp": "2", "tool host compiler": "gcc 13", "unit 0 x": "l"}
    assert set(reasons_of(new, OLD)) == {"csrc/a.cpp changed", "host compiler changed"}
