"""One built variant in two loaders, ours and Hugging Face's ``kernels``, gives the reference's numbers."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[2]
VARIANTS = ("torch-stable-abi27-cpu-x86_64-linux", "torch213-cxx11-cpu-x86_64-linux")
# The answer in float64 is worked out here, so that both processes are held to the same numbers.
PROGRAM = """
import json, sys
from pathlib import Path
import torch
package, folder = sys.argv[1:]
kernel = __import__(package).get_local_kernel(Path(folder), backend="cpu")
torch.manual_seed(7)
x, weight = torch.randn(33, 515), torch.randn(515)
with torch.no_grad():
    y = kernel.rms_norm(x, weight, 1e-5)
exact = x.double() * torch.rsqrt(x.double().square().mean(-1, keepdim=True) + 1e-5) * weight.double()
print(json.dumps({"id": kernel.__name__, "error": (y - exact).abs().max().item(), "y": y.flatten().tolist()}))
"""


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("dist")
    argv = [sys.executable, "-m", "kernel_builder", "build", "rmsnorm", "--backend", "cpu", "--out", str(out), "-q"]
    for words in ((), ("--matrix", "full", "--torch", "2.13")):
        done = subprocess.run([*argv, *words], cwd=ROOT, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
    return out / "rmsnorm" / "build"


def load(package: str, folder: Path, cache: Path) -> dict:
    argv = [sys.executable, "-W", "ignore", "-c", PROGRAM, package, str(folder)]
    env = {**os.environ, "KERNELS_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("variant", VARIANTS)
def test_both_loaders_give_the_same_right_numbers(dist: Path, tmp_path: Path, variant: str) -> None:
    ours = load("kernel_loader", dist / variant, tmp_path)
    theirs = load("kernels", dist / variant, tmp_path)
    assert ours["id"] == theirs["id"]
    assert ours["y"] == theirs["y"]
    assert ours["error"] < 1e-5


def test_both_loaders_choose_the_same_variant(dist: Path, tmp_path: Path) -> None:
    ours = load("kernel_loader", dist.parent, tmp_path)
    theirs = load("kernels", dist.parent, tmp_path)
    assert ours["id"] == theirs["id"]
    assert ours["y"] == theirs["y"]
