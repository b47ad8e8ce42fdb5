"""Rules that every first-party kernel's sources keep."""

from __future__ import annotations

import re
import types
from pathlib import Path

import jinja2
import pytest
from kernels._rust import Build

from kernel_builder.resources import templates
from kernel_builder.spec.read import read_kernel

KERNELS = Path(__file__).parents[3] / "kernels-src"
FOLDERS = sorted(path.parent for path in KERNELS.glob("*/build.toml"))
NATIVE = sorted(p for p in KERNELS.rglob("*") if p.suffix in {".cpp", ".h", ".cu", ".cuh"})
DEVICE = [path for path in NATIVE if path.suffix in {".cu", ".cuh"}]


def _code(path: Path) -> str:
    """The file without comments."""
    return re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(), flags=re.DOTALL)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda f: f.name)
def test_hugging_face_can_read_the_build_file(folder: Path) -> None:
    backends = read_kernel(folder, common=KERNELS / "common").backends
    assert [str(backend) for backend in Build.open(folder).general.backends] == [*backends]


@pytest.mark.parametrize("path", NATIVE, ids=lambda p: p.relative_to(KERNELS).as_posix())
def test_native_sources_stay_small_and_never_end_the_process(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 400
    assert not re.search(r"\b(exit|abort|_Exit|terminate|assert)\s*\(", _code(path))


@pytest.mark.parametrize("path", DEVICE, ids=lambda p: p.relative_to(KERNELS).as_posix())
def test_device_code_has_no_names_that_depend_on_the_folder(path: Path) -> None:
    code = _code(path)
    assert not re.search(r"namespace\s*\{", code)
    assert not re.search(r"^static\b", code, flags=re.MULTILINE)


def test_device_entry_points_come_from_the_table() -> None:
    table = (KERNELS / "rmsnorm/csrc/rms_norm_table.h").read_text()
    pairs = re.findall(r"RMS_NORM_SHAPES\(DO, (\w+), (\w+)\)", table)
    types_in_order = ("f16", "bf16", "f32")  # kb::DType, by which the launch code indexes the table
    assert pairs[1:] == [(x, w) for x in types_in_order for w in types_in_order]
    assert "enum class DType : int { f16, bf16, f32 }" in (KERNELS / "common/include/kb/dtype.h").read_text()


def test_ops_module_names_the_ops_of_its_build(monkeypatch: pytest.MonkeyPatch) -> None:
    template = jinja2.Template((templates() / "package/_ops.py.j2").read_text())
    source = template.render(op_id="_relu_cpu_0123456789")
    torch = types.SimpleNamespace(ops=types.SimpleNamespace(_relu_cpu_0123456789="the ops"))
    package = types.ModuleType("package")
    package._relu_cpu_0123456789 = "the extension"
    monkeypatch.setitem(__import__("sys").modules, "torch", torch)
    monkeypatch.setitem(__import__("sys").modules, "package", package)
    module = {"__name__": "package._ops", "__package__": "package"}
    exec(compile(source, "_ops.py", "exec"), module)
    assert module["ops"] == "the ops"
    assert module["add_op_namespace_prefix"]("relu") == "_relu_cpu_0123456789::relu"
    assert source.index("import torch") < source.index("from . import")
