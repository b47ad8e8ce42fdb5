"""Sources that real compilers refuse: what the user sees, and what is built all the same."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from compile_trio import Bench

from kernel_builder.errors import CompileError

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain


def test_an_error_of_the_device_compiler_names_the_file_of_the_author(tmp_path: Path) -> None:
    bench = Bench.make(tmp_path)
    bench.edit("csrc/index.cuh", "blockIdx.x", "blokIdx.x")
    with pytest.raises(CompileError) as caught:
        bench.build(only=["*cu130*"])
    error = caught.value
    assert error.exit_code == 5
    assert error.where.endswith(", CUDA 13.0]")
    header = bench.folder / "csrc" / "index.cuh"
    assert f'{header}(3): error: identifier "blokIdx" is undefined' in error.detail
    assert "--gpu-architecture=" in error.detail
    assert list(tmp_path.glob("store/logs/*.log"))


def test_a_toolkit_that_fails_does_not_take_the_other_variants_with_it(tmp_path: Path) -> None:
    bench = Bench.make(tmp_path)
    broken = "  if (const long long i = index_of_thread(); i < n) y[i] = x[i] + 1;"
    bench.edit("csrc/plus.cu", broken, f"#if __CUDACC_VER_MAJOR__ == 13\n  syntax error\n#endif\n{broken}")
    result = bench.build(keep_going=True, only=["*stable*"])
    failed = "trio/torch-stable-abi210-cu130-x86_64-linux"
    assert {str(artefact.plan.variant.backend) for artefact in result.artefacts} == {"cpu", "cu128"}
    assert list(result.failed) == [failed]
    assert result.failed[failed].startswith("A compile step failed: trio: csrc/plus.cu ")
    assert len(bench.notes.warnings) == 3, "one for each architecture"
    again = bench.build(keep_going=True, only=["*stable*"])
    assert again.compiled == ()
    assert list(again.failed) == [failed]


def test_an_error_of_the_host_compiler_is_shown(tmp_path: Path) -> None:
    bench = Bench.make(tmp_path)
    bench.edit("csrc/step_cpu.cpp", "y[i] =", "z[i] =")
    with pytest.raises(CompileError) as caught:
        bench.build(only=["*stable*cpu*"])
    assert "error: 'z' was not declared in this scope" in caught.value.detail
    assert caught.value.where == "trio: csrc/step_cpu.cpp [trio_cpu]"
