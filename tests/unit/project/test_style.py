"""The size rules of the code base, counted."""

from __future__ import annotations

import ast
import statistics
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
MODULES = sorted((ROOT / "builder").rglob("*.py"))
FORBIDDEN_NAMES = ("utils", "helpers", "misc", "manager", "common")


def _functions() -> list[tuple[str, int]]:
    found = []
    for module in MODULES:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                body = node.body[1:] if ast.get_docstring(node) else node.body
                lines = body[-1].end_lineno - body[0].lineno + 1 if body else 0
                found.append((f"{module.relative_to(ROOT)}:{node.name}", lines))
    return found


def test_modules_stay_small() -> None:
    sizes = {m.relative_to(ROOT): len(m.read_text().splitlines()) for m in MODULES}
    assert not {m: n for m, n in sizes.items() if n > 400}
    assert statistics.median(n for n in sizes.values() if n > 5) <= 150


def test_functions_stay_small() -> None:
    sizes = [n for _, n in _functions()]
    assert statistics.median(sizes) <= 12
    assert statistics.quantiles(sizes, n=10)[-1] <= 45


def test_no_grab_bag_modules() -> None:
    assert [m for m in MODULES if m.stem in FORBIDDEN_NAMES] == []


def _calls(tree: ast.AST) -> set[str]:
    return {ast.unparse(node) for node in ast.walk(tree) if isinstance(node, ast.Attribute | ast.Name)}


@pytest.mark.parametrize(
    ("name", "allowed"),
    [
        ("os.environ", {"kernel_builder/settings.py", "kernel_builder/processes.py", "kernel_loader/settings.py"}),
        ("os.getenv", set()),
        ("subprocess.run", {"kernel_builder/processes.py"}),
        ("subprocess.Popen", {"kernel_builder/processes.py"}),
        ("os.system", set()),
        ("pickle", set()),
    ],
)
def test_side_effects_live_in_their_rooms(name: str, allowed: set[str]) -> None:
    users = {m.relative_to(ROOT / "builder").as_posix() for m in MODULES if name in _calls(ast.parse(m.read_text()))}
    assert users <= allowed


def test_nothing_names_a_registry_host_or_a_private_path() -> None:
    forbidden = ("py" + "pi.org", "python" + "hosted.org", "npm" + "js.org", "deb.deb" + "ian", "/wo" + "rk/")
    roots = ("builder", "templates", "kernels-src", "tests", "ci", "docs", ".ci")
    files = [f for r in roots for f in (ROOT / r).rglob("*") if f.is_file() and "__pycache__" not in f.parts]
    files += [ROOT / "README.md", ROOT / "Makefile", ROOT / "pyproject.toml"]
    hits = [f for f in files if any(word.encode() in f.read_bytes() for word in forbidden)]
    assert hits == []
