"""What lies inside a variant folder and inside the source archive: path → bytes."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from kernel_builder.errors import SpecError
from kernel_builder.rendering import render_file
from kernel_builder.resources import templates
from kernel_builder.spec.sources import python_files, python_folder, source_path

if TYPE_CHECKING:
    from pathlib import Path, PurePosixPath

    from kernel_builder.compile.model import Artefact
    from kernel_builder.spec.model import Kernel

OPS_MODULE = "_ops.py"
# Beside the build's own inputs: what a person needs to rebuild, test and read the kernel.
_DOCUMENTS = ("build.toml", "kernel-builder.toml", "CARD.md", "reference.py")
_FOLDERS = ("tests", "benchmarks")


def variant_files(artefact: Artefact) -> dict[str, bytes]:
    """Every file of a variant but metadata.json.

    Raises:
        SpecError: A source changed since it was read, or the kernel brings its own ``_ops.py``.
    """
    kernel = artefact.plan.kernel
    files = _python_files(kernel)
    if OPS_MODULE in files:
        raise SpecError(
            f"{OPS_MODULE} is generated, so the kernel cannot bring its own.",
            where=str(python_folder(kernel) / OPS_MODULE),
            hint="rename the file",
        )
    files[OPS_MODULE] = render_file(templates() / "package" / f"{OPS_MODULE}.j2", op_id=artefact.plan.op_id).encode()
    files[artefact.filename] = artefact.library.read_bytes()
    return files


def _python_files(kernel: Kernel) -> dict[str, bytes]:
    folder = python_folder(kernel)
    return {
        path.relative_to(folder).as_posix(): read_source(kernel, path.relative_to(kernel.root).as_posix())
        for path in python_files(kernel)
    }


def read_source(kernel: Kernel, name: str) -> bytes:
    """Bytes of one source, which must still be those that the kernel was read with."""
    path = source_path(name, kernel)
    data = path.read_bytes()
    if hashlib.sha256(data).hexdigest() != kernel.sources.get(name):
        raise SpecError("The file changed while the kernel was being built.", where=str(path), hint="build again")
    return data


def archive_files(kernel: Kernel) -> dict[str, bytes]:
    """Content of ``source.tar.gz``: the kernel's folder and ``common/``, side by side as they are built."""
    files = {}
    for name in kernel.sources:
        shared = source_path(name, kernel) != kernel.root / name
        files[name if shared else f"{kernel.name}/{name}"] = read_source(kernel, name)
    extras = [kernel.root / name for name in _DOCUMENTS]
    extras += [path for folder in _FOLDERS for path in (kernel.root / folder).rglob("*.*")]
    for path in extras:
        if path.is_file() and not path.is_symlink() and not is_clutter(path.relative_to(kernel.root)):
            files.setdefault(f"{kernel.name}/{path.relative_to(kernel.root).as_posix()}", path.read_bytes())
    return files


def is_clutter(path: PurePosixPath | Path) -> bool:
    """Whether a path is a cache or hidden file that no archive should hold."""
    return path.suffix == ".pyc" or any(part.startswith(".") or part == "__pycache__" for part in path.parts)
