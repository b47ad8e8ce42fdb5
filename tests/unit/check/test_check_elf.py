"""Files that only pretend to be libraries give a finding, never a traceback."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
from elf_writer import SharedObject
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from variant_writer import STABLE, codes, make_artefact, write_variant

from kernel_builder.check.check import check_artefact, check_variant
from kernel_builder.check.elf import NotAnElfError, read_elf

if TYPE_CHECKING:
    from pathlib import Path

GOOD = SharedObject(imports=[*STABLE, "pthread_once@GLIBC_2.34@libc.so.6"], runpath="$ORIGIN").write()


@pytest.mark.parametrize(
    "data", [b"", b"\x7fELF", b"MZ" * 40, GOOD[:64], GOOD[: len(GOOD) // 2], b"\x7fELF" + b"\xff" * 60]
)
def test_a_file_that_is_no_library_is_refused_by_name(tmp_path: Path, data: bytes) -> None:
    path = write_variant(tmp_path, library=data)
    findings = check_variant(path, imports=False)
    assert codes(findings) == ["not-an-elf"]
    assert findings[0].where.endswith(".abi3.so")


def test_a_broken_build_result_is_refused(tmp_path: Path) -> None:
    assert codes(check_artefact(*make_artefact(tmp_path, b"not a library"))) == ["not-an-elf"]


def test_a_library_without_symbol_tables_does_not_pass_unread(tmp_path: Path) -> None:
    without_headers = bytearray(GOOD)
    without_headers[40:48] = b"\0" * 8
    without_headers[58:64] = b"\0" * 6
    path = tmp_path / "stripped.so"
    path.write_bytes(without_headers)
    with pytest.raises(NotAnElfError):
        read_elf(path)


def test_section_headers_that_hide_the_real_symbols_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "liar.so"
    path.write_bytes(GOOD.replace(b".dynsym\0", b".dynsyn\0"))
    with pytest.raises(NotAnElfError, match="no dynamic symbols"):
        read_elf(path)
    headers = int.from_bytes(GOOD[40:48], "little")
    moved = bytearray(GOOD)
    second = headers + 2 * 64
    moved[second + 16 : second + 24] = (0).to_bytes(8, "little")
    path.write_bytes(moved)
    with pytest.raises(NotAnElfError, match=r"\.dynsym"):
        read_elf(path)


@settings(max_examples=300, deadline=2000, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    cut=st.integers(0, len(GOOD)),
    changes=st.dictionaries(st.integers(0, len(GOOD) - 1), st.integers(0, 255), max_size=12),
)
@example(cut=len(GOOD), changes={})
def test_no_change_of_bytes_ends_in_a_traceback(tmp_path: Path, cut: int, changes: dict[int, int]) -> None:
    data = bytearray(GOOD)
    for at, value in changes.items():
        data[at] = value
    path = tmp_path / "changed.so"
    path.write_bytes(data[:cut])
    with suppress(NotAnElfError):
        assert read_elf(path).machine
