"""The inventory of a kernel: every file its build depends on, with the SHA-256 of its content."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.errors import SpecError
from kernel_builder.files import sha256_of
from kernel_builder.spec.includes import Known, reachable
from kernel_builder.spec.paths import is_inside
from kernel_builder.spec.schema import BUILD, BUILDER

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kernel_builder.spec.model import Kernel

_COMMON = "common/"


def inventory(kernel: Kernel) -> dict[str, str]:
    """Path → hex SHA-256 of every build input, sorted: TOML files, listed sources, reached headers, Python files.

    Raises:
        SpecError: A file leaves the kernel folder through a link or an include, has a name that cannot be recorded,
            or cannot be read.
    """
    files = {path for path in (kernel.root / BUILD, kernel.root / BUILDER) if path.is_file()}
    files.update(python_files(kernel))
    known = Known()
    for source, folders in _compiled(kernel):
        files.update(reachable(source, folders, kernel.root, kernel.common, known=known))
    return dict(sorted((_key(path, kernel), _digest(path)) for path in files))


def source_name(path: Path, kernel: Kernel) -> str:
    """POSIX name that does not depend on where the folders lie: ``csrc/a.cu``, ``common/include/kb/x.h``."""
    if kernel.common is not None and path.is_relative_to(kernel.common):
        return _COMMON + path.relative_to(kernel.common).as_posix()
    return path.relative_to(kernel.root).as_posix()


def source_path(name: str, kernel: Kernel) -> Path:
    """Where a source of ``Kernel.sources`` lies."""
    if kernel.common is not None and name.startswith(_COMMON):
        return kernel.common / name.removeprefix(_COMMON)
    return kernel.root / name


def python_folder(kernel: Kernel) -> Path:
    """Folder of the kernel's Python package."""
    extension = "tvm-ffi-ext" if kernel.framework == "tvm-ffi" else "torch-ext"
    return kernel.root / extension / kernel.python_name


def python_files(kernel: Kernel) -> tuple[Path, ...]:
    """Files that travel in every variant, chosen by ``pyext``; byte code never does."""
    suffixes = tuple(f".{extension}" for extension in {*kernel.torch.pyext, "py"})
    return tuple(
        path
        for path in sorted(python_folder(kernel).rglob("*"))
        if path.name.endswith(suffixes) and "__pycache__" not in path.parts and path.suffix != ".pyc" and path.is_file()
    )


def host_folders(kernel: Kernel, include: tuple[str, ...]) -> tuple[Path, ...]:
    """Include folders of a host unit, in search order: ``common/include``, the unit's own, ``csrc``."""
    return (*_shared(kernel), *(kernel.root / folder for folder in include), kernel.root / "csrc")


def device_folders(kernel: Kernel, include: tuple[str, ...]) -> tuple[Path, ...]:
    """Project include folders of a device unit, in search order: ``common/include``, the unit's own."""
    return (*_shared(kernel), *(kernel.root / folder for folder in include))


def support_sources(kernel: Kernel, backend: str) -> tuple[Path, ...]:
    """Shared C++ sources that are linked into every library of a backend."""
    return () if kernel.common is None else tuple(sorted((kernel.common / "src" / backend).glob("*.cpp")))


def _shared(kernel: Kernel) -> tuple[Path, ...]:
    return () if kernel.common is None else (kernel.common / "include",)


def _compiled(kernel: Kernel) -> Iterator[tuple[Path, tuple[Path, ...]]]:
    units = [(kernel.torch.sources, host_folders(kernel, kernel.torch.include))]
    units += [(component.sources, host_folders(kernel, component.include)) for component in kernel.components]
    units += [((device.source,), device_folders(kernel, device.include)) for device in kernel.devices]
    for sources, folders in units:
        for source in sources:
            yield kernel.root / source, folders
    for backend in kernel.backends:
        for path in support_sources(kernel, backend):
            yield path, host_folders(kernel, ())


def _key(path: Path, kernel: Kernel) -> str:
    if not is_inside(path, kernel.root, kernel.common):
        raise SpecError(f"{path.name} is a link that leaves the kernel folder.", where=str(path))
    key = source_name(path, kernel)
    if source_path(key, kernel) != path:
        raise SpecError(
            f"The kernel's own folder {_COMMON} has the name of the shared one.", where=str(path), hint="rename it"
        )
    if not key.isprintable():
        raise SpecError(f"The file name {key!r} contains characters that cannot be printed.", where=str(kernel.root))
    return key


def _digest(path: Path) -> str:
    try:
        return sha256_of(path)
    except OSError as error:
        raise SpecError(f"{path.name} cannot be read: {error.strerror}.", where=str(path)) from error
