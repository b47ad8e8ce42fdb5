from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import pytest
from spec_samples import BUILD, BUILDER, FILES

if TYPE_CHECKING:
    from pathlib import Path


class KernelFolder(Protocol):
    def __call__(
        self, *, build: str = ..., builder: str | None = ..., files: dict[str, str] = ..., name: str = ...
    ) -> Path: ...


@pytest.fixture
def kernel_folder(tmp_path: Path) -> KernelFolder:
    """Writes a small valid kernel; ``files`` adds to its files or replaces them."""

    def write(
        *, build: str = BUILD, builder: str | None = BUILDER, files: dict[str, str] | None = None, name: str = "demo-op"
    ) -> Path:
        root = tmp_path / "kernels" / name
        contents = {**FILES, **(files or {}), "build.toml": build}
        if builder is not None:
            contents["kernel-builder.toml"] = builder
        for path, text in contents.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        return root

    return write
