"""Reads kernel folders: build.toml of editions 3 to 5, kernel-builder.toml → Kernel, or one error with every fault."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder import resources
from kernel_builder.errors import SpecError, UsageError
from kernel_builder.spec import assemble, document, rules
from kernel_builder.spec.editions import upgrade
from kernel_builder.spec.faults import Place, nearest
from kernel_builder.spec.schema import BUILD, BUILDER
from kernel_builder.spec.sources import inventory

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel_builder.spec.model import Kernel


def read_kernel(folder: Path, *, common: Path | None = None) -> Kernel:
    """Read and check a kernel folder, and hash every file its build depends on.

    Args:
        folder: Folder with a build.toml.
        common: Folder of the shared headers; default ``../common`` beside the kernel when it exists, else, for kernels
            with a kernel-builder.toml, the one that travels with this package.

    Raises:
        SpecError: The spec, or a file it names, is not valid; ``detail`` lists every fault with its TOML path.
    """
    root = folder.absolute().resolve()
    beside = root.parent / "common"
    beside_it = beside if beside.is_dir() and beside != root else None
    travelling = resources.common() if (root / BUILDER).exists() and not (root / "common").exists() else None
    shared = common.resolve() if common is not None else beside_it or travelling
    place = Place(file=str(root / BUILD))
    build = upgrade(document.load(root / BUILD), root / BUILD, place)
    builder_place = Place(file=str(root / BUILDER), faults=place.faults)
    builder = document.load(root / BUILDER) if (root / BUILDER).exists() or (root / BUILDER).is_symlink() else {}
    kernel = assemble.kernel(build.tables, place, assemble.devices(builder, builder_place), root, shared)
    rules.check(kernel, place, builder_place)
    place.raise_faults()
    return replace(kernel, sources=inventory(kernel), notes=(*build.notes, *rules.notes(kernel)))


def find_kernels(names: Sequence[str], kernels_dir: Path) -> tuple[Kernel, ...]:
    """Read kernels by name or path, in the order given; none given means every kernel of the folder, sorted.

    Args:
        names: Folder names below ``kernels_dir``, or paths of kernel folders.
        kernels_dir: Folder of kernel folders, such as ``kernels-src``.

    Raises:
        UsageError: A name is neither, or no kernel is there at all.
        SpecError: A kernel is not valid, or two have one name.
    """
    known = sorted(path.parent.name for path in kernels_dir.glob(f"*/{BUILD}"))
    if not names and not known:
        raise UsageError(f"No kernel folder in {kernels_dir}.", hint=f"a kernel is a folder with a {BUILD}")
    folders = [_folder(name, kernels_dir, known) for name in names or known]
    kernels = tuple(read_kernel(folder) for folder in dict.fromkeys(folder.resolve() for folder in folders))
    owners: dict[str, Path] = {}
    for kernel in kernels:
        other = owners.setdefault(kernel.name, kernel.root)
        if other != kernel.root:
            raise SpecError(f"Two kernels are called {kernel.name}.", where=f"{other} and {kernel.root}")
    return kernels


def _folder(name: str, kernels_dir: Path, known: list[str]) -> Path:
    if name in known:
        return kernels_dir / name
    if (Path(name) / BUILD).is_file():
        return Path(name)
    raise UsageError(f"There is no kernel {name!r}.", where=str(kernels_dir), hint=nearest(name, known))
