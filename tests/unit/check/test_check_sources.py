"""Lint of the sources that a kernel ships or is built from, through check_artefact and check_variant."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from elf_writer import SharedObject
from variant_writer import INIT, STABLE, codes, make_artefact, write_variant

from kernel_builder.check.check import check_artefact, check_variant

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.check.model import Finding

GOOD = SharedObject(imports=STABLE).write()


def lint(folder: Path, text: str, path: str = "torch-ext/rmsnorm/layers.py") -> tuple[Finding, ...]:
    return check_artefact(*make_artefact(folder, GOOD, sources={path: text.encode()}))


@pytest.mark.parametrize(
    "text",
    [
        "import math, torch, triton.language as tl\nfrom . import _ops\nfrom .config import X\n",
        "try:\n    import einops\nexcept ImportError:\n    einops = None\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import numpy as np\n",
        "import importlib\nm = importlib.import_module('.config', __package__)\n",
        "def f(rmsnorm):\n    return rmsnorm.x\n",
    ],
)
def test_relative_and_provided_imports_pass(tmp_path: Path, text: str) -> None:
    assert codes(lint(tmp_path, text)) == []


@pytest.mark.parametrize(
    "text",
    [
        "import rmsnorm\n",
        "def f():\n    from rmsnorm.config import X\n    return X\n",
        "import importlib\ndef f():\n    return importlib.import_module('rmsnorm')\n",
        "class A:\n    def f(self):\n        return __import__('rmsnorm.layers')\n",
        "try:\n    import rmsnorm\nexcept ImportError:\n    pass\n",
    ],
)
def test_an_import_of_the_kernel_by_its_own_name_is_found_however_late(tmp_path: Path, text: str) -> None:
    findings = lint(tmp_path, text)
    assert codes(findings) == ["own-name-import"]
    line = next(n for n, row in enumerate(text.splitlines(), 1) if "rmsnorm" in row)
    assert findings[0].where.endswith(f"layers.py:{line}")


def test_an_undeclared_package_is_found_and_a_declared_one_is_not(tmp_path: Path) -> None:
    text = b"import einops\nimport cutlass.cute\nfrom tvm_ffi import x\n"
    path = write_variant(tmp_path / "a", files={"layers.py": text})
    assert codes(check_variant(path, imports=False)) == ["undeclared-import"] * 3
    declared = {"python-depends": ["einops>=0.8", "nvidia-cutlass-dsl", "apache-tvm-ffi"]}
    path = write_variant(tmp_path / "b", files={"layers.py": text}, metadata=declared)
    assert codes(check_variant(path, imports=False)) == []


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n@torch.library.custom_op('my_ops::f', mutates_args=())\ndef f(x): ...\n",
        "from torch.library import triton_op as t\n@t('my_ops::f', mutates_args=())\ndef f(x): ...\n",
        "import torch\ndef late():\n    @torch.library.register_fake('my_ops::f')\n    def f(x): ...\n",
        "import torch\nNAME = 'my_ops::f'\ntorch.library.register_autograd(NAME, None)\n",
        "import torch\nfor n in 'ab':\n    torch.library.register_kernel(f'my_ops::{n}', 'cuda', None)\n",
        "import torch\nlib = torch.library.Library('my_ops', 'DEF')\n",
        "from torch import library\nlibrary.define(qualname='my_ops::f', schema='()')\n",
    ],
)
def test_an_op_under_a_fixed_namespace_is_refused(tmp_path: Path, text: str) -> None:
    assert codes(lint(tmp_path, text)) == ["literal-namespace"]


@pytest.mark.parametrize(
    "text",
    [
        "import torch\n@torch.library.custom_op(add_op_namespace_prefix('f'), mutates_args=())\ndef f(x): ...\n",
        "import torch\nf = g()\n@f.register_kernel('cuda')\ndef g(x): ...\n@f.register_fake\ndef h(x): ...\n",
        "import torch\nNAME = add_op_namespace_prefix('f')\ntorch.library.register_fake(NAME)\n",
        "registry.define('my_ops::f')\n",
    ],
)
def test_an_op_in_the_variants_namespace_passes(tmp_path: Path, text: str) -> None:
    assert codes(lint(tmp_path, text)) == []


def test_a_module_without_a_public_api_is_refused(tmp_path: Path) -> None:
    assert codes(lint(tmp_path, "import torch\n", "torch-ext/rmsnorm/__init__.py")) == ["public-api"]
    assert codes(lint(tmp_path / "b", "import torch\n__all__: list[str] = []\n", "torch-ext/rmsnorm/__init__.py")) == []


@pytest.mark.parametrize("text", ["def f(:\n", "x = '\0'\n", "(" * 5000])
def test_a_file_that_python_cannot_read_is_a_finding(tmp_path: Path, text: str) -> None:
    assert codes(lint(tmp_path, text)) == ["python-syntax"]


@pytest.mark.parametrize(
    "text",
    [
        "TORCH_LIBRARY(rmsnorm, m) {}\n",
        'int x;\nSTABLE_TORCH_LIBRARY_IMPL(rmsnorm, CUDA, m) { m.impl("f", f); }\n',
        "TORCH_LIBRARY_FRAGMENT( TORCH_EXTENSION_NAME , m) {}\n",
    ],
)
def test_cxx_registration_under_a_fixed_name_is_refused(tmp_path: Path, text: str) -> None:
    assert codes(lint(tmp_path, text, "torch-ext/torch_binding.cpp")) == ["literal-namespace"]


@pytest.mark.parametrize(
    "text",
    [
        "// TORCH_LIBRARY(rmsnorm, m)\n/* abort(); */\n",
        "#define LIB(n, m) \\\n  STABLE_TORCH_LIBRARY(n, m)\n",
        "TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {}\n",
        'asm volatile("exit();"); auto s = R"(abort())"; auto q = \'"\'; auto t = "exit(1)";\n',
        "scheduler.abort(1); state->exit(); my_exit(2); on_abort();\n",
    ],
)
def test_harmless_cxx_passes(tmp_path: Path, text: str) -> None:
    assert codes(lint(tmp_path, text, "csrc/launch.cpp")) == []


@pytest.mark.parametrize("call", ["exit(1)", "std::abort()", "::_exit(2)", "std::terminate()"])
def test_an_error_macro_that_ends_the_process_is_a_warning(tmp_path: Path, call: str) -> None:
    text = f"#define CHECK(x) \\\n  do {{ if (x) {{ {call}; }} }} while (0)\n"
    findings = lint(tmp_path, text, "csrc/check.h")
    assert [(f.code, f.severity) for f in findings] == [("process-exit", "warning")]
    assert findings[0].where.endswith("csrc/check.h:2")


def test_a_source_that_vanished_is_a_finding(tmp_path: Path) -> None:
    made = make_artefact(tmp_path, GOOD)
    (tmp_path / "kernel/torch-ext/torch_binding.cpp").unlink()
    assert codes(check_artefact(*made)) == ["sources"]


def test_shared_sources_are_read_from_the_common_folder(tmp_path: Path) -> None:
    artefact, toolchain = make_artefact(tmp_path, GOOD)
    (tmp_path / "common").mkdir()
    (tmp_path / "common/driver.cpp").write_text("void f() { abort(); }\n")
    from dataclasses import replace

    kernel = replace(
        artefact.plan.kernel,
        common=tmp_path / "common",
        sources={**artefact.plan.kernel.sources, "common/driver.cpp": "0" * 64},
    )
    findings = check_artefact(replace(artefact, plan=replace(artefact.plan, kernel=kernel)), toolchain)
    assert codes(findings) == ["process-exit"]


def test_an_old_kernel_with_its_module_one_folder_deeper_is_read(tmp_path: Path) -> None:
    path = write_variant(tmp_path, files={"rmsnorm/__init__.py": INIT}, own=False)
    (path / "__init__.py").unlink()
    findings = check_variant(path, imports=False)
    assert "public-api" not in codes(findings)
