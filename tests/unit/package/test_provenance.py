"""Commit and dirtiness of a kernel's folders."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kernel_builder.package.provenance import git_state, provenance_of

if TYPE_CHECKING:
    from pathlib import Path


def git(folder: Path, *arguments: str) -> str:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid", "-c", "init.defaultBranch=main")
    done = subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "-q")
    (tmp_path / "kernel").mkdir()
    (tmp_path / "kernel" / "build.toml").write_text("x = 1\n")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-qm", "kernel")
    return tmp_path


def test_a_clean_kernel_is_at_its_commit(repository, settings) -> None:
    state = git_state([repository / "kernel"], settings)
    assert state is not None
    assert (state.commit, state.dirty) == (git(repository, "rev-parse", "HEAD"), False)


def test_commits_elsewhere_do_not_change_what_is_packaged(repository, settings) -> None:
    before = git_state([repository / "kernel"], settings)
    (repository / "README.md").write_text("unrelated\n")
    git(repository, "add", ".")
    git(repository, "commit", "-qm", "other")
    assert git_state([repository / "kernel"], settings) == before


@pytest.mark.parametrize("name", ["build.toml", "untracked.py"])
def test_any_uncommitted_file_makes_it_dirty(repository, settings, name) -> None:
    (repository / "kernel" / name).write_text("y = 2\n")
    state = git_state([repository / "kernel"], settings)
    assert state is not None
    assert state.dirty


def test_no_repository_and_no_git_leave_the_kernel_out(tmp_path, repository, settings, monkeypatch) -> None:
    assert git_state([repository / "kernel"], replace(settings, path="")) is None
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    outside = tmp_path.parent / f"{tmp_path.name}-outside"
    outside.mkdir()
    assert git_state([outside], settings) is None
    assert "kernel" not in provenance_of(None)
