"""The documented keys are the keys that are read."""

from __future__ import annotations

import pytest
from spec_samples import BUILDER, replaced

from kernel_builder.errors import SpecError
from kernel_builder.spec.read import read_kernel
from kernel_builder.spec.schema import documentation


def test_rows_are_complete_and_unique():
    rows = documentation()
    assert len({row[:3] for row in rows}) == len(rows)
    assert all(all(row) and row[4].endswith(".") for row in rows)
    assert ("kernel-builder.toml", "[device.<name>]", "src", "string, required") in {row[:4] for row in rows}


PLACES = {
    "[general]": ("edition = 5\n", "edition = 5\n{}\n"),
    "[general.hub]": ("[torch]\n", "[general.hub]\n{}\n[torch]\n"),
    "[general.cuda]": ("[torch]\n", "[general.cuda]\n{}\n[torch]\n"),
    "[torch]": ("[torch]\n", "[torch]\n{}\n"),
    "[device.<name>]": None,
}


@pytest.mark.parametrize(
    "row",
    [row for row in documentation() if row[1] in PLACES and row[2] != "edition"],
    ids=lambda row: f"{row[1]} {row[2]}",
)
def test_a_documented_key_is_known_to_the_reader(kernel_folder, row):
    """A value of a type that no key has gives a type fault, never 'unknown key'."""
    _, table, key, _, _ = row
    wrong = f"{key} = 2026-01-01"
    if PLACES[table] is None:
        root = kernel_folder(builder="[device.op]\n" + wrong + "\n")
    else:
        build = replaced(*PLACES[table]).format(wrong)
        kept = [line for line in build.splitlines() if not line.startswith(f"{key} = ") or line == wrong]
        root = kernel_folder(build="\n".join(kept), builder=BUILDER)
    with pytest.raises(SpecError) as caught:
        read_kernel(root)
    assert "found date or time" in caught.value.detail
    assert "unknown key" not in caught.value.detail
