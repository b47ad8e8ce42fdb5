"""Kernels are found by name or path."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from spec_samples import replaced

from kernel_builder.errors import SpecError, UsageError
from kernel_builder.spec.read import find_kernels

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def kernels(kernel_folder) -> Path:
    """A folder with the kernels ``alpha`` and ``beta``, and a folder that is none."""
    for name in ("beta", "alpha"):
        build = replaced('"demo-op"', f'"{name}"')
        kernel_folder(name=name, build=build, files={f"torch-ext/{name}/__init__.py": ""})
    folder = kernel_folder().parent
    (folder / "notes").mkdir()
    return folder


def names(kernels) -> list[str]:
    return [kernel.name for kernel in kernels]


def test_no_name_means_all_sorted(kernels):
    assert names(find_kernels((), kernels)) == ["alpha", "beta", "demo-op"]


def test_names_and_paths_keep_their_order_and_count_once(kernels):
    asked = ["beta", str(kernels / "alpha"), "beta", str(kernels / "beta")]
    assert names(find_kernels(asked, kernels)) == ["beta", "alpha"]


def test_relative_paths_work(kernels, monkeypatch):
    monkeypatch.chdir(kernels / "alpha")
    assert names(find_kernels(["."], kernels)) == ["alpha"]


@pytest.mark.parametrize(
    ("name", "hint"), [("alhpa", "did you mean 'alpha'?"), ("zzz", "known are alpha, beta, demo-op")]
)
def test_an_unknown_name_gets_a_hint(kernels, name, hint):
    with pytest.raises(UsageError, match=f"no kernel '{name}'") as caught:
        find_kernels([name], kernels)
    assert (caught.value.hint, caught.value.exit_code) == (hint, 2)


def test_a_folder_without_kernels(tmp_path):
    with pytest.raises(UsageError, match="No kernel folder"):
        find_kernels((), tmp_path)


def test_two_kernels_of_one_name_are_refused(kernels, kernel_folder):
    kernel_folder(name="gamma")
    with pytest.raises(SpecError, match="Two kernels are called demo-op"):
        find_kernels((), kernels)
