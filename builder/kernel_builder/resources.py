"""Finds files that travel with the package, in the wheel or in a checkout."""

from __future__ import annotations

from pathlib import Path

from kernel_builder.errors import KernelBuilderError

_PACKAGE = Path(__file__).resolve().parent


def templates() -> Path:
    """Folder of jinja2 templates and C++ sources that every kernel is built with."""
    return _find("templates", "templates")


def common() -> Path:
    """Folder of the headers and support code that kernels with device-only sources share."""
    return _find("common", "kernels-src/common")


def _find(packaged: str, checked_out: str) -> Path:
    for folder in (_PACKAGE / packaged, _PACKAGE.parents[1] / checked_out):
        if folder.is_dir():
            return folder
    raise KernelBuilderError(
        f"The folder {packaged} is missing from this installation.", hint="reinstall kernel-builder"
    )
