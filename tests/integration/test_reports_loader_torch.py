"""Faults of other loaders that only show with torch itself; each test names its report."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "loader"))
from kernel_fakes import variant_files, write_files

LAZY = """import torch

__all__ = ["scaled"]


def scaled(x: torch.Tensor) -> torch.Tensor:
    from .sub.deep import FACTOR

    return x * FACTOR
"""


def test_a_kernel_with_late_relative_imports_compiles_whole(tmp_path):
    """B060: under the name that only the loader knows, relative imports work in eager and in compiled mode."""
    files = {"__init__.py": LAZY.encode(), "sub/__init__.py": b"", "sub/deep.py": b"FACTOR = 10\n"}
    folder = write_files(tmp_path / "torch-universal", variant_files("lazy", files=files, backend="universal"))
    code = (
        "import sys, torch\n"
        "from kernel_loader import get_local_kernel\n"
        "kernel = get_local_kernel(sys.argv[1])\n"
        "compiled = torch.compile(kernel.scaled, backend='eager', fullgraph=True)\n"
        "print(compiled(torch.ones(2)).tolist(), kernel.scaled(torch.ones(1)).tolist())\n"
    )
    env = {**os.environ, "KERNELS_CACHE": str(tmp_path / "cache")}
    argv = [sys.executable, "-W", "ignore", "-c", code, str(folder)]
    done = subprocess.run(argv, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[10.0, 10.0] [10.0]"
