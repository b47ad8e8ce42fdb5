"""Finds files that travel with the package, in the wheel or in a checkout."""

from __future__ import annotations

from pathlib import Path

from kernel_builder.errors import KernelBuilderError

_PACKAGE = Path(__file__).resolve().parent


def templates() -> Path:
    """Folder of jinja2 templates and C++ sources that every kernel is built with."""
    for folder in (_PACKAGE / "templates", _PACKAGE.parents[1] / "templates"):
        if folder.is_dir():
            return folder
    raise KernelBuilderError("The templates folder is missing from this installation.", hint="reinstall kernel-builder")
