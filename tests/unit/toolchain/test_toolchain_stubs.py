"""Stand-in libraries offer what the floor has, where the floor has it."""

from __future__ import annotations

import pytest

from kernel_builder.errors import ToolchainError
from kernel_builder.toolchain.stubs import (
    Symbol,
    assembly,
    distribute,
    moved_names,
    read_symbols,
    version_key,
    version_script,
)


def symbol(
    name: str, version: str = "GLIBC_2.2.5", kind: str = "function", *, size: int = 1, weak: bool = False
) -> Symbol:
    return Symbol(name=name, version=version, kind=kind, size=size, weak=weak)


@pytest.mark.parametrize(
    ("version", "within"),
    [
        ("GLIBC_2.28", True),
        ("GLIBC_2.29", False),
        ("GLIBC_2.3.4", True),
        ("GLIBC_PRIVATE", False),
        ("GLIBCXX_3.4.24", True),
        ("GLIBCXX_3.4.25", False),
        ("CXXABI_1.3.11", True),
        ("CXXABI_1.3.12", False),
        ("CXXABI_TM_1", True),
        ("GCC_7.0.0", True),
        ("GCC_14.0.0", False),
        ("LIBFOO_1", False),
        ("", False),
    ],
)
def test_the_floor_is_manylinux_2_28(version, within) -> None:
    assert (version_key(version) is not None) is within


def test_versions_compare_as_numbers() -> None:
    assert version_key("GLIBC_2.9") < version_key("GLIBC_2.17")


def test_names_that_glibc_merged_go_back_to_their_libraries() -> None:
    placed = distribute(
        {
            "libstdc++.so.6": [symbol("_Znwm", "GLIBCXX_3.4")],
            "libc.so.6": [symbol("malloc"), symbol("pthread_create"), symbol("dlopen")],
            "libm.so.6": [symbol("exp")],
        }
    )
    assert {library: [s.name for s in symbols] for library, symbols in placed.items()} == {
        "libstdc++.so.6": ["_Znwm"],
        "libc.so.6": ["malloc"],
        "libpthread.so.0": ["pthread_create"],
        "libdl.so.2": ["dlopen"],
        "libm.so.6": ["exp"],
    }


def test_a_name_of_an_older_libpthread_is_not_doubled() -> None:
    placed = distribute(
        {"libpthread.so.0": [symbol("sem_wait", "GLIBC_2.2.5")], "libc.so.6": [symbol("sem_wait", "GLIBC_2.3")]}
    )
    assert [s.version for s in placed["libpthread.so.0"]] == ["GLIBC_2.2.5"]


def test_the_list_of_merged_names_is_whole() -> None:
    names = moved_names()
    counts = {library: sum(home == library for home in names.values()) for library in set(names.values())}
    assert counts == {
        "librt.so.1": 35,
        "libpthread.so.0": 152,
        "libdl.so.2": 9,
        "libutil.so.1": 6,
        "libanl.so.1": 4,
        "libresolv.so.2": 24,
    }


def test_sources_are_the_same_every_time_and_name_each_version_once() -> None:
    symbols = [
        symbol("b", "GLIBC_2.14"),
        symbol("a"),
        symbol("t", kind="tls_object", size=4),
        symbol("o", kind="object", weak=True),
    ]
    assert assembly(symbols) == assembly(symbols)
    assert version_script(symbols) == "GLIBC_2.2.5 { };\nGLIBC_2.14 { };\n"
    assert ".weak stub_3" in assembly(symbols)
    assert assembly(symbols).index(".tbss") < assembly(symbols).index("t@@@GLIBC_2.2.5")


@pytest.mark.parametrize("content", [b"", b"not an elf file at all", b"\x7fELF" + bytes(100)])
def test_what_is_no_library_is_refused(content, tmp_path) -> None:
    path = tmp_path / "libc.so.6"
    path.write_bytes(content)
    with pytest.raises(ToolchainError, match=r"symbols of libc\.so\.6 cannot be read"):
        read_symbols(path)
