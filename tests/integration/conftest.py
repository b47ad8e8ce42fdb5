"""Real builds for tests: provisioned stores that share downloads but no compiled unit."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, kw_only=True)
class Ran:
    """One run of the command line in a process of its own."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> dict:
        return json.loads(self.stdout)


def kernel_builder(*arguments: object, env: dict[str, str] | None = None, cwd: Path | None = None, umask: int = -1) -> Ran:
    """Run ``kernel-builder`` as a user would."""
    done = subprocess.run(
        [sys.executable, "-m", "kernel_builder", *map(str, arguments)],
        cwd=cwd or ROOT,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        umask=umask,
        check=False,
    )
    return Ran(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


@pytest.fixture(scope="session")
def provisioned() -> Path:
    """The store that ``make build-matrix`` filled; provisioned here when it is not there yet."""
    built = kernel_builder("build", "rmsnorm", "--out", os.devnull + "-unused", "--json") if not _store().is_dir() else None
    assert built is None or built.status == 0, built.stderr
    return _store()


def _store() -> Path:
    from kernel_builder.settings import Settings

    return Settings.from_environment().store


@pytest.fixture
def empty_store(provisioned: Path, tmp_path: Path) -> Path:
    """A store with toolkits and SDKs, but without any compiled unit, stub library or record."""
    return copy_downloads(provisioned, tmp_path / "store")


def copy_downloads(provisioned: Path, target: Path) -> Path:
    """Hard links of what was downloaded; nothing that was compiled."""
    for name in ("toolkits", "sdks"):
        shutil.copytree(provisioned / name, target / name, copy_function=_link)
    return target
