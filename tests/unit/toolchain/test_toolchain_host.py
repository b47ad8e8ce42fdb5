"""The host compiler is found, named, and refused with a remedy."""

from __future__ import annotations

import shlex
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kernel_builder.errors import ToolchainError
from kernel_builder.settings import Settings
from kernel_builder.toolchain.host import find_host_compiler

if TYPE_CHECKING:
    from pathlib import Path

GCC = "(Debian 12.2.0-14) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc."
SCRIPT = """#!/bin/sh
for word in "$@"; do
  case "$word" in
    --version) echo {banner}; exit 0;;
    -dumpfullversion) echo {version}; exit 0;;
    -dumpmachine) echo {machine}; exit 0;;
  esac
done
exit 1
"""


def program(
    folder: Path, name: str, *, banner: str | None = None, version="12.2.0", machine="x86_64-linux-gnu"
) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / name
    text = SCRIPT.format(banner=shlex.quote(banner or f"{name} {GCC}"), version=version, machine=machine)
    path.write_text(text)
    path.chmod(0o755)
    return path


@pytest.fixture
def settings(tmp_path) -> Settings:
    return Settings(store=tmp_path / "store", path=str(tmp_path / "bin"))


def test_the_identity_does_not_depend_on_the_name_it_was_called_by(tmp_path, settings) -> None:
    program(tmp_path / "bin", "c++")
    first = find_host_compiler(settings)
    program(tmp_path / "bin", "g++-12")
    second = find_host_compiler(replace(settings, cxx="g++-12"))
    assert first.identity == second.identity == "gcc (Debian 12.2.0-14) 12.2.0 x86_64-linux-gnu"
    assert (first.cxx, first.version) == (str(tmp_path / "bin/c++"), (12, 2, 0))
    assert second.cxx == str(tmp_path / "bin/g++-12")


def test_no_compiler_says_what_to_install(settings) -> None:
    with pytest.raises(ToolchainError, match="No C\\+\\+ compiler was found on PATH") as caught:
        find_host_compiler(settings)
    assert caught.value.exit_code == 4
    assert "apt install g++" in caught.value.hint
    assert "dnf install gcc-c++" in caught.value.hint


def test_a_launcher_and_options_in_cxx_are_kept(tmp_path, settings) -> None:
    program(tmp_path / "bin", "g++")
    launcher = tmp_path / "bin" / "ccache"
    launcher.write_text('#!/bin/sh\nexec "$@"\n')
    launcher.chmod(0o755)
    host = find_host_compiler(replace(settings, cxx="ccache g++ -march=x86-64-v3"))
    assert shlex.split(host.cxx) == [str(launcher), str(tmp_path / "bin/g++"), "-march=x86-64-v3"]
    assert host.identity.endswith(" -march=x86-64-v3")


def test_folders_with_blanks_survive(tmp_path, settings) -> None:
    path = program(tmp_path / "my tools", "g++")
    host = find_host_compiler(replace(settings, cxx=shlex.quote(str(path))))
    assert shlex.split(host.cxx) == [str(path)]


@pytest.mark.parametrize(
    ("banner", "version", "machine", "says"),
    [
        (None, "8.5.0", "x86_64-linux-gnu", "GCC 8.5.0 is too old"),
        ("Debian clang version 19.1.7", "4.2.1", "x86_64-pc-linux-gnu", "not GCC: Debian clang version 19.1.7"),
        (None, "12.2.0", "aarch64-linux-gnu", "builds for aarch64-linux-gnu; only x86_64 Linux"),
        (None, "twelve", "x86_64-linux-gnu", "version cannot be read: 'twelve'"),
    ],
)
def test_unfit_compilers_are_refused(banner, version, machine, says, tmp_path, settings) -> None:
    program(tmp_path / "bin", "c++", banner=banner, version=version, machine=machine)
    with pytest.raises(ToolchainError) as caught:
        find_host_compiler(settings)
    assert says in caught.value.message


def test_gxx_is_taken_when_cxx_is_clang(tmp_path, settings) -> None:
    program(tmp_path / "bin", "c++", banner="clang version 19")
    program(tmp_path / "bin", "g++")
    assert find_host_compiler(settings).cxx == str(tmp_path / "bin/g++")


@pytest.mark.parametrize("cxx", ["g++-99", "'unclosed"])
def test_a_cxx_that_leads_nowhere_is_named(cxx, settings) -> None:
    with pytest.raises(ToolchainError) as caught:
        find_host_compiler(replace(settings, cxx=cxx))
    assert caught.value.where == "CXX"
    assert cxx in caught.value.message


def test_a_compiler_that_does_not_run_is_reported(tmp_path, settings) -> None:
    broken = tmp_path / "bin" / "c++"
    broken.parent.mkdir()
    broken.write_text("#!/nowhere/interpreter\n")
    broken.chmod(0o755)
    with pytest.raises(ToolchainError, match="cannot be run"):
        find_host_compiler(settings)
