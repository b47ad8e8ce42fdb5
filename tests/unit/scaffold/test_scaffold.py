"""New kernel folders: what is written, and what is refused."""

from __future__ import annotations

import pytest

from kernel_builder.errors import UsageError
from kernel_builder.scaffold import scaffold
from kernel_builder.spec.read import read_kernel


def test_the_new_folder_is_a_valid_kernel(tmp_path):
    scaffold(tmp_path / "fast-math2", repo_id="my-org/fast-math2")
    kernel = read_kernel(tmp_path / "fast-math2")
    assert (kernel.name, kernel.version, kernel.backends) == ("fast-math2", 1, ("cpu", "cuda"))
    assert kernel.hub.repo_id == "my-org/fast-math2"
    assert [device.name for device in kernel.devices] == ["fast_math2"]
    # The headers that its sources include travel with the builder and are part of its identity.
    assert "common/include/kb/torch.h" in kernel.sources


def test_no_repository_is_made_up(tmp_path):
    scaffold(tmp_path / "mine")
    assert read_kernel(tmp_path / "mine").hub.repo_id is None


@pytest.mark.parametrize("name", ["Upper", "under_score", "1st", "x", "dash-", "sp ace"])
def test_names_that_kernels_cannot_have(tmp_path, name):
    with pytest.raises(UsageError, match="cannot be a kernel's name"):
        scaffold(tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_nothing_is_overwritten(tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("precious")
    with pytest.raises(UsageError, match="not empty"):
        scaffold(tmp_path / "mine")
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["notes.txt"]


def test_no_placeholder_is_left(tmp_path):
    for path in scaffold(tmp_path / "fast-math2"):
        if path.name != "CARD.md":  # a template itself, filled when the kernel is packaged
            assert "{{" not in path.read_text(), path
