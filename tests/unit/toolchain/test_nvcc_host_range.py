"""nvcc runs a host compiler that its own header allows, or nothing is compiled."""

from __future__ import annotations

import shlex

import pytest
from fake_nvcc import host_config
from test_toolchain_host import program

from kernel_builder.errors import ToolchainError
from kernel_builder.settings import Settings
from kernel_builder.toolchain.host import find_host_compiler
from kernel_builder.toolchain.nvcc.host_range import choose_host, find_header, read_host_range


@pytest.fixture
def supported(tmp_path):
    header = tmp_path / "include/crt/host_config.h"
    header.parent.mkdir(parents=True)
    header.write_text(host_config(13))
    return read_host_range("12.4.131", find_header((tmp_path / "elsewhere", tmp_path / "include")))


def compilers(folder, **versions):
    for name, version in versions.items():
        program(folder / "bin", name.replace("gxx", "g++").replace("_", "-"), version=version)
    settings = Settings(store=folder, path=str(folder / "bin"))
    return find_host_compiler(settings), settings.path


def test_the_range_is_the_one_of_the_toolkits_header(supported) -> None:
    assert str(supported) == "GCC 9 to 13"
    assert [major for major in (8, 9, 13, 14) if major in supported] == [9, 13]


def test_a_header_without_a_bound_takes_any_newer_gcc(tmp_path) -> None:
    (tmp_path / "host_config.h").write_text("#pragma once\n")
    assert 40 in read_host_range("14.0.1", tmp_path / "host_config.h")


def test_a_toolkit_without_headers_is_refused(tmp_path) -> None:
    with pytest.raises(ToolchainError, match=r"headers of nvcc 12\.4\.131 are not complete") as caught:
        read_host_range("12.4.131", find_header((tmp_path,)))
    assert caught.value.where == str(tmp_path / "crt/host_config.h")


def test_a_fitting_compiler_is_taken_as_it_is(tmp_path, supported, recorder) -> None:
    host, path = compilers(tmp_path, gxx="12.2.0", gxx_13="13.1.0")
    assert choose_host(supported, host, path, recorder) == host
    assert not recorder.notes


def test_a_too_new_gcc_is_replaced_by_the_newest_that_fits_and_that_is_said(tmp_path, supported, recorder) -> None:
    host, path = compilers(tmp_path, gxx="15.0.1", gxx_11="11.4.0", gxx_12="12.2.0", gxx_14="14.2.0")
    chosen = choose_host(supported, host, path, recorder)
    assert chosen.cxx == str(tmp_path / "bin/g++-12")
    assert chosen.version == (12, 2, 0)
    assert recorder.notes == [
        f"nvcc 12.4.131 takes GCC 9 to 13: it runs {tmp_path}/bin/g++-12, not {tmp_path}/bin/g++ (15.0.1)"
    ]


def test_only_too_new_compilers_stop_with_the_range_and_the_remedy(tmp_path, supported, recorder) -> None:
    # A g++-13 that is really GCC 15 does not count.
    host, path = compilers(tmp_path, gxx="15.0.1", gxx_13="15.0.1", gxx_14="14.2.0")
    with pytest.raises(ToolchainError) as caught:
        choose_host(supported, host, path, recorder)
    assert caught.value.message == f"nvcc 12.4.131 works with GCC 9 to 13, and {tmp_path}/bin/g++ is GCC 15.0.1."
    assert "apt install g++-13" in caught.value.hint
    assert caught.value.exit_code == 4


def test_nvcc_gets_the_compiler_without_ccache(tmp_path, supported, recorder) -> None:
    program(tmp_path / "bin", "g++")
    launcher = tmp_path / "bin/ccache"
    launcher.write_text('#!/bin/sh\nexec "$@"\n')
    launcher.chmod(0o755)
    settings = Settings(store=tmp_path, path=str(tmp_path / "bin"), cxx="ccache g++ -march=x86-64-v3")
    host = find_host_compiler(settings)
    chosen = choose_host(supported, host, settings.path, recorder)
    assert shlex.split(chosen.cxx) == [str(tmp_path / "bin/g++"), "-march=x86-64-v3"]
    assert chosen.identity == host.identity
