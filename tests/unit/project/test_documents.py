"""What documents say is generated from the code, and the code reads exactly the variables that they list."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_builder import settings as builder_settings
from kernel_loader import settings as loader_settings

ROOT = Path(__file__).parents[3]


def test_generated_parts_are_up_to_date() -> None:
    argv = [sys.executable, str(ROOT / "ci" / "documents.py"), "--check"]
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("module", [builder_settings, loader_settings], ids=lambda m: m.__name__)
def test_every_variable_that_is_read_is_documented(module) -> None:
    calls = [node for node in ast.walk(ast.parse(Path(module.__file__).read_text())) if isinstance(node, ast.Call)]
    reads = [call for call in calls if ast.unparse(call.func) in ("env.get", "_integer", "_folder")]
    names = {arg.value for call in reads for arg in call.args[:2] if isinstance(arg, ast.Constant) and arg.value}
    assert {name for name in names if name.isupper()} == set(module.VARIABLES)
