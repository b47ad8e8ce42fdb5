"""How much memory steps took is measured, remembered, and decides how many run at once the next time."""

from __future__ import annotations

import re
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from fake_toolchain import Workshop

from kernel_builder.compile import build as compile_build
from kernel_builder.compile import measured
from kernel_builder.compile.parallelism import Machine, plan_jobs
from kernel_builder.errors import CompileError

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
# A compiler's driver that takes little itself.
ALLOCATES = """#!/bin/sh
for last; do :; done
python3 -c 'x = b"x" * 200_000_000'
echo made > "$last"
"""


@pytest.fixture
def workshop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workshop:
    """Eight sources on a machine of 64 cores and 2 GiB."""
    monkeypatch.setattr(compile_build, "this_machine", lambda: Machine(cores=64, available=2 * GIB))
    return Workshop.make(tmp_path, parts=8)


def jobs_of(workshop: Workshop) -> int:
    """How many steps the last build said it would run at once."""
    found = re.search(r"^compiling \d+ units, (\d+) at once", workshop.notes.notes[0])
    assert found
    return int(found[1])


def test_a_build_after_the_first_runs_as_many_steps_as_their_measured_memory_allows(workshop: Workshop) -> None:
    workshop.build()
    assert jobs_of(workshop) == 5, "0.25 GiB each are assumed and 0.4 for the binding, in 1.6 GiB"
    (workshop.kernel / "csrc" / "part.h").write_text("other header\n")
    result = workshop.build()
    assert jobs_of(workshop) == len(result.compiled) == 9, "a script takes a few MB"


def test_steps_that_took_much_run_by_fewer(workshop: Workshop) -> None:
    (workshop.folder / "bin" / "c++").write_text(ALLOCATES)
    workshop.build(jobs=2)
    (workshop.kernel / "csrc" / "part.h").write_text("other header\n")
    workshop.build()
    assert 4 <= jobs_of(workshop) <= 6, "1.25 × 0.21 + 0.05 GiB each"


def test_the_memory_of_a_step_is_that_of_the_largest_process_below_it(tmp_path: Path) -> None:
    inner = tmp_path / "inner"
    inner.write_text("python3 -c 'x = b\"x\" * 200_000_000'\ntrue\n")
    assert 190_000 < measure(tmp_path, "sh", "-c", f"sh {inner}; true") < 260_000


def measure(folder: Path, *command: str, status: int = 0) -> int:
    """KiB that the worker notes for a command."""
    argv = [sys.executable, "-I", "-S", measured.__file__, str(folder / "note"), *command]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    return int((folder / "note").read_text())


@pytest.mark.parametrize(("script", "status"), [("exit 7", 7), ("kill -9 $$", 137), ("kill -11 $$", 139)])
def test_a_measured_step_fails_as_it_would_unmeasured(tmp_path: Path, script: str, status: int) -> None:
    assert measure(tmp_path, "/bin/sh", "-c", script, status=status) > 0


def test_a_step_whose_memory_ran_out_says_what_to_do(workshop: Workshop) -> None:
    (workshop.folder / "bin" / "c++").write_text("#!/bin/sh\nkill -9 $$\n")
    with pytest.raises(CompileError) as caught:
        workshop.build()
    assert caught.value.hint == "memory may have run out; try fewer --jobs"


def test_a_compiler_that_is_not_there_is_named(workshop: Workshop) -> None:
    (workshop.folder / "bin" / "c++").unlink()
    with pytest.raises(CompileError) as caught:
        workshop.build()
    assert f"{workshop.folder}/bin/c++: No such file or directory" in caught.value.detail


@pytest.mark.parametrize(("cores", "gib"), [(8, 16), (96, 880), (2, 24)])
@pytest.mark.parametrize("threads", [1, 4])
@pytest.mark.parametrize("archs", [1, 6])
def test_processors_and_memory_hold_whatever_the_machine(cores: int, gib: int, threads: int, archs: int) -> None:
    """B002: jobs × threads × peak stay within 80 % of the memory, and jobs × threads within the processors."""
    peak = 2.5
    jobs = plan_jobs(Machine(cores=cores, available=gib * GIB), [peak * threads] * (20 * archs), threads=threads)
    assert jobs.total >= 1
    assert jobs.total == 1 or jobs.total * threads * peak <= 0.8 * gib
    assert jobs.total == 1 or jobs.total * threads <= cores
    assert f"{jobs.total} at once" in jobs.reason
    assert ("NVCC_THREADS" in jobs.reason) == (threads > 1)
    asked = plan_jobs(Machine(cores=cores, available=gib * GIB), [peak * threads], wanted=7, threads=threads)
    assert asked.total == 7
    assert asked.reason.startswith("7 at once")
    assert asked.reason.endswith("as asked for")
