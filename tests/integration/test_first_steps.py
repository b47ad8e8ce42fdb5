"""A newcomer's first kernel: four commands from nothing to a loaded module, without root, Nix, nvcc or a GPU."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

MINUTES = 5


@pytest.fixture(scope="module")
def project(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("newcomer")
    (folder / "bin").mkdir()
    for trap in ("nvcc", "nix", "docker", "sudo"):
        (folder / "bin" / trap).write_text("#!/bin/sh\necho used >&2\nexit 99\n")
        (folder / "bin" / trap).chmod(0o755)
    return folder


def run(project: Path, *arguments: str) -> str:
    environment = {**os.environ, "PATH": f"{project / 'bin'}:{os.environ['PATH']}", "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=project, env=environment, capture_output=True, text=True, timeout=60 * MINUTES
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_four_commands_lead_to_a_loaded_kernel(project):
    started = time.monotonic()
    run(project, "-m", "kernel_builder", "init", "my-kernel")
    run(project, "-m", "kernel_builder", "build", "my-kernel")
    tested = run(project, "-m", "kernel_builder", "test", "my-kernel", "--device", "cpu")
    code = (
        "import torch; from kernel_loader import get_local_kernel; "
        "kernel = get_local_kernel('dist/my-kernel', backend='cpu'); "
        "print(kernel.my_kernel(torch.ones(3), torch.ones(3), 2.0).tolist())"
    )
    assert run(project, "-W", "ignore", "-c", code).strip() == "[3.0, 3.0, 3.0]"
    assert "0 failed" in tested
    assert "passed" in tested
    assert time.monotonic() - started < 60 * MINUTES
    names = {path.name for path in (project / "dist/my-kernel/build").iterdir()}
    assert any("-cu13" in name for name in names), "the CUDA variants need neither nvcc nor a GPU"


def test_op_is_correct_in_the_eyes_of_torch(project):
    code = (
        "import torch; from kernel_loader import get_local_kernel; "
        "k = get_local_kernel('dist/my-kernel', backend='cpu'); op = getattr(torch.ops, k.__name__).my_kernel.default; "
        "x, y = torch.randn(2, 5, 3, requires_grad=True); "
        "print(torch.library.opcheck(op, (x.detach().requires_grad_(), y.detach().requires_grad_(), 0.5)))"
    )
    assert "SUCCESS" in run(project, "-W", "ignore", "-c", code)
