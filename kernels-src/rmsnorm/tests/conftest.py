"""Tests of one built variant: KERNEL_UNDER_TEST is its folder, KERNEL_TEST_DEVICE is cpu or cuda."""

from __future__ import annotations

import importlib.util
import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernel_loader import get_local_kernel

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # torch warns about packages that it would like to have
    import torch

if TYPE_CHECKING:
    from types import ModuleType

SETTINGS = {
    "KERNEL_UNDER_TEST": "the folder of a built variant, dist/rmsnorm/build/<variant>",
    "KERNEL_TEST_DEVICE": "cpu or cuda",
}


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "gpu: needs a CUDA device")
    for name, meaning in SETTINGS.items():
        if not os.environ.get(name):
            raise pytest.UsageError(f"{name} is not set: it names {meaning}")
    if os.environ["KERNEL_TEST_DEVICE"] == "cuda" and not torch.cuda.is_available():
        raise pytest.UsageError("KERNEL_TEST_DEVICE is cuda, but torch sees no CUDA device")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """On the CPU, tests marked gpu are deselected, and pytest's summary counts them."""
    if os.environ["KERNEL_TEST_DEVICE"] == "cuda":
        return
    deselected = [item for item in items if item.get_closest_marker("gpu")]
    config.hook.pytest_deselected(items=deselected)
    items[:] = [item for item in items if item not in deselected]


@pytest.fixture(scope="session")
def kernel() -> ModuleType:
    return get_local_kernel(Path(os.environ["KERNEL_UNDER_TEST"]))


@pytest.fixture(scope="session")
def device() -> torch.device:
    return torch.device(os.environ["KERNEL_TEST_DEVICE"])


@pytest.fixture(scope="session")
def reference() -> ModuleType:
    """reference.py of the kernel folder, which is no package."""
    path = Path(__file__).parents[1] / "reference.py"
    spec = importlib.util.spec_from_file_location("rmsnorm_reference", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(autouse=True)
def _same_numbers_every_time() -> None:
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _forward_only():
    with torch.no_grad():
        yield
