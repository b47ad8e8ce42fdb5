"""A killed build neither blocks nor spoils the next one."""

from __future__ import annotations

import hashlib
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

FAKES = Path(__file__).parents[1] / "unit" / "compile"
sys.path.insert(0, str(FAKES))

from fake_toolchain import Workshop  # noqa: E402

if TYPE_CHECKING:
    from collections.abc import Iterator


def _start(workshop: Workshop, jobs: int = 2) -> subprocess.Popen[str]:
    command = [sys.executable, str(FAKES / "fake_toolchain.py"), str(workshop.folder), str(jobs)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def _kill(process: subprocess.Popen[str]) -> None:
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=10)


def _wait_for(condition: object, seconds: float = 10) -> None:
    assert callable(condition)
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.02)


def _digests(workshop: Workshop) -> dict[str, str]:
    units = workshop.store / "units"
    return {
        f"{path.parent.name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(units.glob("*/*/*"))
        if path.name != "unit.json"
    }


def _children_of(marker: str) -> list[str]:
    """Command lines of running programs that name the folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:
                continue
            if marker in line:
                found.append(line)
    return found


def _open_files(pid: int) -> set[str]:
    found = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            found.add(str(entry.readlink()))
    return found


@pytest.fixture
def workshop(tmp_path: Path) -> Iterator[Workshop]:
    yield Workshop.make(tmp_path / "place", parts=6)
    assert not (tmp_path / "place" / "store" / "runs").exists() or not list(
        (tmp_path / "place" / "store" / "runs").iterdir()
    )


def test_a_build_killed_while_compiling_does_not_block_those_that_wait(workshop: Workshop) -> None:
    workshop.delay(3)
    first = _start(workshop)
    _wait_for(lambda: len(workshop.calls()) >= 2)
    waiting = [_start(workshop) for _ in range(3)]
    lock = str(workshop.store / "locks" / "build")
    _wait_for(lambda: all(lock in _open_files(process.pid) for process in waiting))
    time.sleep(0.2)
    _kill(first)
    workshop.delay(0)
    said = [process.communicate(timeout=30)[0] for process in waiting]
    assert [process.returncode for process in waiting] == [0, 0, 0]
    assert all(f"waiting for the build of process {first.pid}" in text for text in said)
    assert sum("compiling " in text for text in said) == 1, "one of them does the work, the others take it"
    assert workshop.build().compiled == ()
    assert not [path for path in workshop.store.glob("units/*/*/*") if path.read_text() == "half"]


def test_the_compilers_stop_when_the_builder_is_killed(workshop: Workshop) -> None:
    workshop.delay(20)
    first = _start(workshop)
    _wait_for(lambda: len(workshop.calls()) >= 2)
    _kill(first)
    _wait_for(lambda: not _children_of(str(workshop.folder)), seconds=5)
    workshop.delay(0)
    workshop.build()


def test_an_interrupted_build_stops_its_compilers_and_leaves_no_run(workshop: Workshop) -> None:
    workshop.delay(20)
    first = _start(workshop)
    _wait_for(lambda: len(workshop.calls()) >= 2)
    first.send_signal(signal.SIGINT)
    said = first.communicate(timeout=10)[0]
    assert "KeyboardInterrupt" in said
    assert not list((workshop.store / "runs").iterdir())
    _wait_for(lambda: not _children_of(str(workshop.folder)), seconds=5)


def test_ten_builds_killed_at_random_leave_what_a_clean_build_makes(workshop: Workshop, tmp_path: Path) -> None:
    moments = random.Random()
    workshop.delay(0.15)
    for _ in range(10):
        process = _start(workshop)
        time.sleep(moments.uniform(0.1, 1.2))
        _kill(process)
    workshop.delay(0)
    workshop.build()
    clean = Workshop.make(tmp_path / "clean", parts=6)
    clean.build()
    assert _digests(workshop) == _digests(clean)
