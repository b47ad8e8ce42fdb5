"""Installed toolkits are taken only when asked for, each version its own, and a miss names them all."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_nvcc import make_toolkit
from test_toolchain_host import program

from kernel_builder.errors import ToolchainError
from kernel_builder.settings import Settings
from kernel_builder.toolchain.host import find_host_compiler
from kernel_builder.toolchain.nvcc import system
from kernel_builder.toolchain.nvcc.provide import offered, provide_nvcc
from kernel_builder.toolchain.supply import Supply
from kernel_loader.format.versions import MajorMinor

V11, V12, V13 = MajorMinor(11, 8), MajorMinor(12, 8), MajorMinor(13, 0)


@pytest.fixture
def machine(tmp_path, monkeypatch) -> Settings:
    """nvcc 11.8 first on PATH, 12.8 below /usr/local, 13.0 in a Python environment."""
    program(tmp_path / "bin", "g++")
    make_toolkit(tmp_path / "old", "11.8.89")
    make_toolkit(tmp_path / "local/cuda-12.8", "12.8.93")
    make_toolkit(tmp_path / "site/nvidia/cu13", "13.0.88", newest=15)
    monkeypatch.setattr(system, "_LOCAL", tmp_path / "local")
    monkeypatch.setattr(system.site, "getsitepackages", lambda: [str(tmp_path / "site")])
    return Settings(store=tmp_path / "store", path=f"{tmp_path / 'old/bin'}:{tmp_path / 'bin'}")


def provide(version, settings, recorder):
    host = find_host_compiler(settings)
    return provide_nvcc(version, "system", host, settings, Supply(settings, recorder), recorder)


def test_every_version_gets_its_own_toolkit(machine, recorder, tmp_path) -> None:
    assert offered("system", machine) == (V11, V12, V13)
    twelve, thirteen = (provide(version, machine, recorder) for version in (V12, V13))
    assert (twelve.nvcc, twelve.release) == (tmp_path / "local/cuda-12.8/bin/nvcc", "12.8.93")
    assert (thirteen.nvcc, thirteen.release) == (tmp_path / "site/nvidia/cu13/bin/nvcc", "13.0.88")
    assert twelve.include == (tmp_path / "local/cuda-12.8/include",)
    assert thirteen.cudart == tmp_path / "site/nvidia/cu13/lib/libcudart.so.13"
    assert twelve.source == "system"
    assert twelve.digest != thirteen.digest


def test_none_fits_names_every_candidate_with_path_and_version(machine, recorder, tmp_path) -> None:
    gone = replace(machine, cuda_home=tmp_path / "gone")
    with pytest.raises(ToolchainError, match=r"No installed nvcc is of CUDA 12\.6") as caught:
        provide(MajorMinor(12, 6), gone, recorder)
    assert caught.value.detail.splitlines() == [
        f"{tmp_path}/gone/bin/nvcc (CUDA_HOME): does not exist",
        f"{tmp_path}/old/bin/nvcc (PATH): nvcc 11.8.89",
        f"{tmp_path}/local/cuda-12.8/bin/nvcc ({tmp_path}/local): nvcc 12.8.93",
        f"{tmp_path}/site/nvidia/cu13/bin/nvcc (Python package): nvcc 13.0.88",
    ]
    assert "set CUDA_HOME" in caught.value.hint


def test_cuda_home_wins_over_what_else_is_found(machine, recorder, tmp_path) -> None:
    make_toolkit(tmp_path / "mine", "12.8.61")
    assert provide(V12, replace(machine, cuda_home=tmp_path / "mine"), recorder).release == "12.8.61"
    assert provide(V12, replace(machine, cuda_path=tmp_path / "mine"), recorder).release == "12.8.61"


def test_a_script_on_path_leads_to_the_toolkit_that_it_runs(machine, recorder, tmp_path) -> None:
    real = make_toolkit(tmp_path / "opt/cuda-12.9", "12.9.86")
    script = tmp_path / "bin/nvcc"
    script.write_text(f'#!/bin/sh\nexec {real} "$@"\n')
    script.chmod(0o755)
    found = provide(MajorMinor(12, 9), machine, recorder)
    assert (found.root, found.nvcc) == (tmp_path / "opt/cuda-12.9", real)
    assert found.origin == f"PATH: {script}"


@pytest.mark.parametrize(
    ("name", "content"), [("bin/ptxas", b"patched"), ("include/crt/host_config.h", b"// any\n"), ("include/new.h", b"")]
)
def test_a_changed_toolkit_is_another_toolkit(name, content, machine, recorder, tmp_path) -> None:
    before = provide(V12, machine, recorder).digest
    assert provide(V12, machine, recorder).digest == before
    (tmp_path / "local/cuda-12.8" / name).write_bytes(content)
    assert provide(V12, machine, recorder).digest != before


def test_a_toolkit_without_its_run_time_library_says_so(machine, recorder, tmp_path) -> None:
    (tmp_path / "local/cuda-12.8/lib/libcudart.so.12").unlink()
    with pytest.raises(ToolchainError, match=r"CUDA 12\.8 has no libcudart\.so\.12"):
        provide(V12, machine, recorder)


def test_an_nvcc_that_cannot_run_or_answer_is_listed_and_not_used(machine, recorder, tmp_path) -> None:
    (tmp_path / "old/bin/nvcc").write_text("#!/bin/sh\nexit 3\n")
    (tmp_path / "local/cuda-12.8/bin/nvcc").chmod(0o644)
    assert offered("system", machine) == (V13,)
    with pytest.raises(ToolchainError) as caught:
        provide(V11, machine, recorder)
    assert "old/bin/nvcc (PATH): does not say its version" in caught.value.detail
    assert "cannot be run" in caught.value.detail
