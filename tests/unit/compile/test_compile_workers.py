"""The device workers, without a toolkit: messages, arguments, and that they start with a bare interpreter."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from kernel_builder.compile import device, fatbin


def test_messages_name_the_files_that_the_author_knows() -> None:
    log = (
        "kernel/csrc/a.cu(3): error: x\nIn file included from common/include/kb/b.cuh:1,\n"
        'errors in "kernel/csrc/a.cu".\n  my_kernel/x and /kernel/y stay'
    )
    assert device.real_paths(log, {"kernel": "/home/me/k", "common": "/home/me/common"}) == (
        "/home/me/k/csrc/a.cu(3): error: x\nIn file included from /home/me/common/include/kb/b.cuh:1,\n"
        'errors in "/home/me/k/csrc/a.cu".\n  my_kernel/x and /kernel/y stay'
    )


@pytest.mark.parametrize("worker", [device, fatbin])
def test_a_worker_starts_without_site_packages_and_says_what_it_misses(worker: object) -> None:
    command = [sys.executable, "-I", "-S", str(Path(worker.__file__))]  # type: ignore[attr-defined]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "the following arguments are required" in done.stderr


@pytest.mark.parametrize("worker", [device, fatbin])
def test_a_worker_imports_nothing_heavy(worker: object) -> None:
    path = Path(worker.__file__)  # type: ignore[attr-defined]
    show = f"import runpy, sys; runpy.run_path({str(path)!r}, run_name='worker'); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", show], capture_output=True, text=True, check=True)
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    assert not loaded & {"jinja2", "rich", "elftools", "ninja", "kernel_builder", "subprocess", "asyncio"}


def test_functions_with_a_release_suffix_are_found(tmp_path: Path) -> None:
    library = tmp_path / "libnvfatbin.so.12"
    library.write_bytes(b"\0__nvFatbinCreate_12_8\0__nvFatbinGet_12_8\0")
    assert fatbin.release_suffix(library) == "_12_8"
    library.write_bytes(b"\0nvFatbinCreate\0")
    assert fatbin.release_suffix(library) == ""
