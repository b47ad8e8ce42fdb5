"""Flags are asked of the nvcc that would get them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from fake_nvcc import make_toolkit

from kernel_builder.errors import ToolchainError
from kernel_builder.toolchain.model import Nvcc
from kernel_builder.toolchain.nvcc.flags import accepts, unsupported_flags
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from pathlib import Path


def nvcc(path: Path, version: MajorMinor) -> Nvcc:
    return Nvcc(
        version=version,
        release=f"{version}.1",
        digest="0",
        root=path.parent,
        nvcc=path,
        include=(),
        cudart=path,
        host="/usr/bin/g++ -march=x86-64-v3",
        source="wheels",
    )


def test_a_flag_that_only_newer_releases_know_is_named_for_the_older_one(tmp_path) -> None:
    older = nvcc(make_toolkit(tmp_path / "a", "12.4.131", refused="-compress-mode=size"), MajorMinor(12, 4))
    newer = nvcc(make_toolkit(tmp_path / "b", "12.8.93"), MajorMinor(12, 8))
    flags = ["-O3", "-compress-mode=size", "--expt-relaxed-constexpr"]
    assert unsupported_flags(older, flags) == ("-compress-mode=size",)
    assert unsupported_flags(newer, flags) == ()
    assert not accepts(older, "-compress-mode=size")


def test_a_flag_is_asked_and_named_with_its_value(tmp_path) -> None:
    driver = nvcc(make_toolkit(tmp_path, "12.4.131", refused="--fancy"), MajorMinor(12, 4))
    assert unsupported_flags(driver, ["-gencode", "arch=compute_80,code=sm_80", "--fancy", "2"]) == ("--fancy 2",)


def test_no_flags_need_no_nvcc(tmp_path) -> None:
    assert unsupported_flags(nvcc(tmp_path / "none", MajorMinor(12, 4)), []) == ()


def test_an_nvcc_that_cannot_run_is_an_error_not_a_refusal(tmp_path) -> None:
    with pytest.raises(ToolchainError, match="nvcc cannot be run"):
        accepts(nvcc(tmp_path / "none", MajorMinor(12, 4)), "-O3")
