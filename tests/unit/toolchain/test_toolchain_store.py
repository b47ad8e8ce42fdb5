"""Folders of the store appear whole or not at all, however many processes make them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from kernel_builder.errors import ToolchainError
from kernel_builder.files import tree_digest
from kernel_builder.toolchain.store import install

KILLED = """
import os, signal, sys
from pathlib import Path
from kernel_builder.reporting import SilentReporter
from kernel_builder.toolchain.store import install

def fill(folder):
    (folder / "half").write_text("half")
    os.kill(os.getpid(), signal.SIGKILL)

install(Path(sys.argv[1]), "kind", "name", fill, SilentReporter())
"""


def test_a_folder_is_made_once_and_read_only(tmp_path, recorder) -> None:
    calls = []

    def fill(folder) -> None:
        calls.append(folder)
        (folder / "x").write_text("x")

    made = [install(tmp_path, "kind", "name", fill, recorder) for _ in range(2)]
    assert made == [tmp_path / "kind/name"] * 2
    assert len(calls) == 1
    assert (made[0] / "x").stat().st_mode & 0o777 == 0o444


def test_a_killed_run_leaves_nothing_that_counts(tmp_path, recorder) -> None:
    done = subprocess.run([sys.executable, "-c", KILLED, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (tmp_path / "kind/name").exists()
    root = install(tmp_path, "kind", "name", lambda folder: None, recorder)
    assert list(root.iterdir()) == []
    assert recorder.notes == []


def test_a_failed_fill_leaves_nothing(tmp_path, recorder) -> None:
    def fill(folder) -> None:
        (folder / "half").write_text("half")
        raise ToolchainError("no")

    with pytest.raises(ToolchainError, match="no"):
        install(tmp_path, "kind", "name", fill, recorder)
    assert not (tmp_path / "kind").exists()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_the_second_process_waits_and_names_the_first(tmp_path, recorder) -> None:
    inside, go = threading.Event(), threading.Event()

    def slow(folder) -> None:
        inside.set()
        go.wait(10)
        (folder / "x").write_text("first")

    def second_fill(folder) -> None:
        raise AssertionError("made twice")

    first = threading.Thread(target=install, args=(tmp_path, "kind", "name", slow, recorder))
    first.start()
    inside.wait(10)
    second = threading.Thread(target=install, args=(tmp_path, "kind", "name", second_fill, recorder))
    second.start()
    while not recorder.notes:
        second.join(0.01)
    go.set()
    first.join(10)
    second.join(10)
    assert recorder.notes == [f"waiting for process {os.getpid()}, which is preparing kind/name"]
    assert (tmp_path / "kind/name/x").read_text() == "first"


def test_a_store_that_cannot_be_written_says_what_to_do(tmp_path, recorder) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ToolchainError, match="The store cannot be written") as caught:
        install(tmp_path / "file", "kind", "name", lambda folder: None, recorder)
    assert "KERNEL_BUILDER_CACHE" in caught.value.hint


def test_tree_digests_do_not_depend_on_order_and_see_names() -> None:
    one = tree_digest({"a": "1", "b": "2"})
    assert one == tree_digest({"b": "2", "a": "1"})
    assert one != tree_digest({"a": "2", "b": "1"})
