"""Writes a new kernel folder that builds, checks and tests as it is: an op on two backends, to be replaced."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.errors import UsageError
from kernel_builder.rendering import render_file
from kernel_builder.resources import templates
from kernel_loader.format.metadata import NAME

if TYPE_CHECKING:
    from pathlib import Path

# Template → file in the new folder.
_FILES = {
    "README.md.j2": "README.md",
    "CARD.md.j2": "CARD.md",
    "build.toml.j2": "build.toml",
    "kernel-builder.toml.j2": "kernel-builder.toml",
    "args.h.j2": "csrc/{python_name}_args.h",
    "op.h.j2": "csrc/{python_name}.h",
    "device.cu.j2": "csrc/{python_name}.cu",
    "cuda.cpp.j2": "csrc/{python_name}_cuda.cpp",
    "cpu.cpp.j2": "csrc/{python_name}_cpu.cpp",
    "torch_binding.cpp.j2": "torch-ext/torch_binding.cpp",
    "__init__.py.j2": "torch-ext/{python_name}/__init__.py",
    "conftest.py.j2": "tests/conftest.py",
    "test_op.py.j2": "tests/test_{python_name}.py",
}


def scaffold(folder: Path, *, repo_id: str = "") -> tuple[Path, ...]:
    """Fill a new folder, whose name becomes the kernel's; returns the files.

    Args:
        folder: Must not exist, or be empty.
        repo_id: ``org/name`` that the kernel will be published to; "" = none yet.

    Raises:
        UsageError: The folder holds something, or its name cannot be a kernel's.
    """
    name = folder.name
    if not NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be a kernel's name.",
            hint="lower-case letters, digits and dashes, beginning with a letter, at least two characters",
        )
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError("The folder is not empty.", where=str(folder), hint="choose another name")
    python_name = name.replace("-", "_")
    type_name = "".join(part.capitalize() for part in name.split("-"))
    texts = {
        folder / path.format(python_name=python_name): render_file(
            templates() / "init" / template,
            name=name,
            python_name=python_name,
            type_name=type_name,
            repo_id=repo_id,
            folder=folder,
        )
        for template, path in _FILES.items()
    }
    for path, text in texts.items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tuple(texts)
