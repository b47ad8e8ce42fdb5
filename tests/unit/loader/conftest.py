from __future__ import annotations

import itertools
import sys

import pytest
from kernel_fakes import CPU

_uids = itertools.count()


@pytest.fixture
def uid():
    """A suffix that makes a kernel's id unique in this test process."""
    return f"t{next(_uids)}x"


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no hub, and no LOCAL_KERNELS, whatever the machine has."""
    for name in ("LOCAL_KERNELS", "KERNEL_LOADER_HUB", "HF_HUB_OFFLINE", "HF_HUB_CACHE", "KERNEL_BUILDER_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KERNELS_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def environment(monkeypatch):
    """Sets the environment that the loader believes to run in; a CPU build of torch unless told otherwise."""

    def become(env):
        for module in ("kernel_loader.api", "kernel_loader.__main__"):
            __import__(module)
            monkeypatch.setattr(sys.modules[module], "probe", lambda: env)

    become(CPU)
    return become


@pytest.fixture
def hub(tmp_path):
    """An empty folder hub."""
    folder = tmp_path / "hub"
    folder.mkdir()
    return folder
