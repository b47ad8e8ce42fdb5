"""Whatever stands in a spec, the answer is a kernel or a SpecError, never another exception."""

from __future__ import annotations

from contextlib import suppress

import pytest
from spec_samples import BUILD, BUILDER

from kernel_builder.errors import SpecError
from kernel_builder.spec.read import read_kernel

FULL = BUILD.replace(
    "edition = 5\n", "edition = 5\nkernel-depends = []\npython-depends = []\nhub = {}\ncuda = {}\n"
).replace("depends = []\n", "depends = []\ninclude = []\ncxx-flags = []\n")
FULL_BUILDER = BUILDER + "include = []\ndefines = []\ndynamic-shared-bytes = 0\n"
LITERALS = [
    "true",
    "0",
    "-1",
    "9223372036854775807",
    "nan",
    "1.5",
    '""',
    '"x"',
    '"\\u0000"',
    '"{0}{name!r}%s"',
    "[]",
    "[[]]",
    "[{}]",
    "[1, 'x', {}]",
    '["x", "x"]',
    '[{repo-id = "a/b", version = 1, revision = 3, x = 1}]',
    "{}",
    "{ x = 1 }",
    "{ cpu = 1 }",
    "2026-01-01T00:00:00Z",
]


@pytest.mark.parametrize("literal", LITERALS)
def test_any_value_under_any_key(kernel_folder, literal):
    for which, text in (("build", FULL), ("builder", FULL_BUILDER)):
        lines = text.splitlines()
        for index, line in enumerate(lines):
            key, equals, _ = line.partition(" = ")
            if not equals:
                continue
            changed = "\n".join([*lines[:index], f"{key} = {literal}", *lines[index + 1 :]])
            with suppress(SpecError):
                read_kernel(kernel_folder(**{"build": FULL, "builder": FULL_BUILDER, which: changed}))


@pytest.mark.parametrize("literal", LITERALS)
@pytest.mark.parametrize("table", ["general", "torch", "torch-noarch", "tvm-ffi", "kernel", "kernel.x", "general.cuda"])
def test_any_value_as_a_table(kernel_folder, table, literal):
    root = kernel_folder(build=f"{table} = {literal}\n" + ("general.edition = 5\n" if "general" not in table else ""))
    with pytest.raises(SpecError):
        read_kernel(root)
