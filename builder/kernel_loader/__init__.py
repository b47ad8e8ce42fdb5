"""Loads compute kernels: ``get_kernel("org/name", version=1, hub="/path/to/hub")`` returns the module that fits here.

Every name is imported on first use, so that importing this package costs next to nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kernel_loader.api import (
        get_kernel,
        get_kernel_variants,
        get_loaded_kernels,
        get_local_kernel,
        has_kernel,
        install_kernel,
    )
    from kernel_loader.errors import (
        DependencyMissing,
        DigestMismatch,
        IncompleteFolder,
        KernelConflict,
        LoaderError,
        LoadFailed,
        NoCompatibleVariant,
        NotFoundError,
        UsageError,
    )
    from kernel_loader.format.metadata import Metadata
    from kernel_loader.importing import LoadedKernel, RepoInfo
    from kernel_loader.select import Decision

__all__ = [
    "Decision",
    "DependencyMissing",
    "DigestMismatch",
    "IncompleteFolder",
    "KernelConflict",
    "LoadFailed",
    "LoadedKernel",
    "LoaderError",
    "Metadata",
    "NoCompatibleVariant",
    "NotFoundError",
    "RepoInfo",
    "UsageError",
    "get_kernel",
    "get_kernel_variants",
    "get_loaded_kernels",
    "get_local_kernel",
    "has_kernel",
    "install_kernel",
]

_HOMES = {
    "Decision": "select",
    "LoadedKernel": "importing",
    "Metadata": "format.metadata",
    "RepoInfo": "importing",
    **dict.fromkeys([name for name in __all__ if name[0].islower()], "api"),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f"{__name__}.{_HOMES.get(name, 'errors')}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
