"""Compilers started through a compiler cache."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import pytest
from fake_toolchain import Workshop

from kernel_builder.compile.graph import write_graph
from kernel_builder.compile.parallelism import Machine, plan_jobs
from kernel_builder.compile.store import UnitStore
from kernel_builder.compile.units import Unit

if TYPE_CHECKING:
    from pathlib import Path

# Notes what it starts, and with which folder for temporary files.
LAUNCHER = """#!/bin/sh
for last; do :; done
echo "$last" >> "{log}"
echo "$TMPDIR" >> "{log}.tmp"
exec "$@"
"""


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    """With a folder ``caches`` that has an ``sccache``."""
    workshop = Workshop.make(tmp_path)
    program = tmp_path / "caches" / "sccache"
    program.parent.mkdir()
    program.write_text(LAUNCHER.format(log=tmp_path / "launched"))
    program.chmod(0o755)
    return workshop


def launched(workshop: Workshop) -> list[str]:
    log = workshop.folder / "launched"
    return sorted(line.rpartition("/")[2] for line in log.read_text().split()) if log.exists() else []


def with_cache(workshop: Workshop) -> Workshop:
    workshop.variables = {"PATH": f"{workshop.folder / 'caches'}:/usr/bin:/bin"}
    return workshop


def test_sccache_starts_the_compilers_when_it_is_on_path(workshop: Workshop) -> None:
    result = with_cache(workshop).build()
    assert len(result.compiled) == 5
    # Not what is generated for one build alone, nor the link: no cache could keep them.
    assert launched(workshop) == ["binding.o", "part0.o", "part1.o"]


def test_the_users_launcher_wins_and_an_empty_one_turns_it_off(workshop: Workshop) -> None:
    other = workshop.folder / "caches" / "sccache"
    with_cache(workshop).variables["CMAKE_CXX_COMPILER_LAUNCHER"] = ""
    workshop.build()
    assert launched(workshop) == []
    (workshop.kernel / "binding.cpp").write_text("other\n")
    workshop.variables = {"CMAKE_CXX_COMPILER_LAUNCHER": f"env;KEPT=1;{other}"}
    workshop.build()
    assert launched(workshop) == ["binding.o"]


def test_a_launcher_is_no_part_of_what_a_result_is_made_of(workshop: Workshop) -> None:
    workshop.build()
    assert with_cache(workshop).build().compiled == ()


def test_what_a_launcher_starts_keeps_its_folder_for_temporary_files(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server of a cache is started by its first call and outlives the build, whose own folder does not."""
    monkeypatch.setenv("TMPDIR", str(workshop.folder))
    with_cache(workshop).build()
    assert set((workshop.folder / "launched.tmp").read_text().split()) == {str(workshop.folder)}


def nvcc_command(folder: Path, *launcher: str, threads: int = 1) -> list[str]:
    unit = Unit(
        kind="nvcc",
        label="a.cu",
        output="a.o",
        argv=("@cuda@/bin/nvcc", "--objdir-as-tempdir", "-c", "a.cu", "-o", "@out@"),
        places={"cuda": "/cuda"},
        tools={},
        files={},
    )
    folder.mkdir()
    jobs = plan_jobs(Machine(cores=8, available=1 << 34), [1.0], threads=threads)
    steps = write_graph(folder, [unit], UnitStore(folder), jobs, launcher)
    return shlex.split(steps[unit.key].command.replace(unit.key, "KEY"))


def test_nvcc_is_started_by_the_launcher_too(tmp_path: Path) -> None:
    plain = ["/cuda/bin/nvcc", "--objdir-as-tempdir", "-c", "a.cu", "-o", "KEY/a.o"]
    assert nvcc_command(tmp_path / "a") == plain
    assert nvcc_command(tmp_path / "b", "/usr/bin/ccache") == ["/usr/bin/ccache", *plain]
    # sccache 0.16 fails with the flag, and gives the same bytes without.
    assert nvcc_command(tmp_path / "c", "/usr/bin/sccache") == ["/usr/bin/sccache", plain[0], *plain[2:]]


def test_nvcc_threads_reach_nvcc(tmp_path: Path) -> None:
    assert nvcc_command(tmp_path / "a", threads=4)[-1] == "--threads=4"
