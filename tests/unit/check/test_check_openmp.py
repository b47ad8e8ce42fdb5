"""OpenMP and SLEEF come from torch: what its libraries bring need not be linked, anything else must."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from elf_writer import SharedObject
from variant_writer import CPU, FULL, STABLE, codes, write_variant

from kernel_builder.check.check import check_variant

if TYPE_CHECKING:
    from pathlib import Path

TORCH = ["libtorch.so", "libtorch_cpu.so", "libc10.so", "libc.so.6"]


def found(folder: Path, name: str, *imports: str, needed: list[str] = TORCH) -> list[str]:
    library = SharedObject(imports=[*STABLE, *imports] if name == CPU else [*imports], needed=needed)
    return codes(check_variant(write_variant(folder, name, library=library.write()), imports=False))


@pytest.mark.parametrize("function", ["GOMP_parallel", "omp_get_thread_num", "GOMP_loop_nonmonotonic_dynamic_next"])
def test_openmp_of_torchs_own_run_time_is_no_fault(tmp_path: Path, function: str) -> None:
    assert "unversioned-import" not in found(tmp_path, CPU, function)


def test_openmp_without_torch_to_bring_it_is_a_fault(tmp_path: Path) -> None:
    assert "unversioned-import" in found(tmp_path, CPU, "GOMP_parallel", needed=["libc.so.6"])


def test_openmp_newer_than_the_oldest_run_time_is_a_fault(tmp_path: Path) -> None:
    assert "unversioned-import" in found(tmp_path, CPU, "GOMP_teams4")


def test_sleef_is_torchs_for_the_full_abi_and_no_part_of_the_stable_one(tmp_path: Path) -> None:
    assert found(tmp_path / "full", FULL, "Sleef_expf16_u10") == []
    assert found(tmp_path / "stable", CPU, "Sleef_expf16_u10") == ["torch-abi"]
