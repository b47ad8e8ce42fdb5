"""Step 5: a built library, or any packaged variant, against what it promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.check.cpp_files import check_cpp
from kernel_builder.check.cubins import check_declared_archs, check_planned_archs, check_regions
from kernel_builder.check.device_code import name_images, read_images
from kernel_builder.check.elf import NotAnElfError, read_elf
from kernel_builder.check.fatbin import FatbinError
from kernel_builder.check.floor import check_floor
from kernel_builder.check.model import Finding
from kernel_builder.check.needed import check_exports, check_machine, check_needed, check_rpath, check_stack
from kernel_builder.check.package_files import (
    Package,
    check_digest,
    check_libraries,
    check_names,
    read_package,
)
from kernel_builder.check.python_abi import check_filename, check_python_abi
from kernel_builder.check.python_files import check_python
from kernel_builder.check.report import errors
from kernel_builder.check.resources import check_resources
from kernel_builder.check.smoke import check_import
from kernel_builder.check.subject import Library
from kernel_builder.check.torch_abi import check_torch_abi
from kernel_builder.spec.sources import python_folder, source_name, source_path
from kernel_loader.format.variants import ArchVariant

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from kernel_builder.compile.model import Artefact
    from kernel_builder.spec.model import Kernel
    from kernel_builder.toolchain.model import Toolchain, TorchSymbols
    from kernel_loader.format.versions import MajorMinor

LIBRARY_CHECKS: tuple[Callable[[Library], Iterator[Finding]], ...] = (
    check_machine,
    check_floor,
    check_needed,
    check_rpath,
    check_exports,
    check_stack,
    check_python_abi,
    check_torch_abi,
)
PACKAGE_CHECKS: tuple[Callable[[Package], Iterator[Finding]], ...] = (check_names, check_libraries, check_digest)


def check_artefact(artefact: Artefact, toolchain: Toolchain) -> tuple[Finding, ...]:
    """Everything that can be said about a library before it is packaged; sources included.

    Args:
        artefact: The library and what it was linked from.
        toolchain: Has the names that torch exports, for variants with the full ABI.
    """
    return tuple(_artefact_findings(artefact, toolchain))


def check_variant(
    path: Path, *, imports: bool = True, symbols: Mapping[MajorMinor, TorchSymbols] | None = None
) -> tuple[Finding, ...]:
    """Everything that can be said about a packaged variant, ours or another builder's, from its folder alone.

    Args:
        path: The variant folder, ``…/build/torch-stable-abi210-cu128-x86_64-linux``.
        imports: Also import it in a fresh interpreter, which runs its code; False for folders nobody vouches for.
        symbols: Names that torch releases export, as far as they are at hand.
    """
    package = read_package(path.resolve())
    if isinstance(package, Finding):
        return (package,)
    findings = tuple(_package_findings(package, symbols or {}))
    if errors(findings):
        return findings
    if not imports:
        reason = "Importing it was not asked for."
        return (*findings, package.finding("not-imported", reason, file=".", severity="note"))
    return (*findings, *check_import(package))


def _artefact_findings(artefact: Artefact, toolchain: Toolchain) -> Iterator[Finding]:
    plan = artefact.plan
    yield from _source_findings(plan.kernel, plan.label, plan.backend)
    try:
        elf = read_elf(artefact.library)
    except NotAnElfError as error:
        yield _not_an_elf(plan.label, artefact.filename, error)
        return
    library = Library(
        label=plan.label,
        filename=artefact.filename,
        path=artefact.library,
        elf=elf,
        variant=plan.variant,
        own=True,
        objects=artefact.objects,
        symbols=toolchain.symbols.get(plan.sdk),
    )
    for check in (check_filename, *LIBRARY_CHECKS):
        yield from check(library)
    try:
        images = name_images(read_images(artefact.library, elf), artefact)
    except (FatbinError, OSError) as error:
        yield library.finding("fatbin", f"The GPU code inside cannot be read: {error}.")
        return
    yield from check_planned_archs(library, images, plan.archs)
    yield from check_regions(library, images)
    yield from check_resources(library, images, {d.name: d.dynamic_shared_bytes for d in plan.kernel.devices})


def _source_findings(kernel: Kernel, label: str, backend: str) -> Iterator[Finding]:
    folder = f"{source_name(python_folder(kernel), kernel)}/"
    files = {}
    for name in kernel.sources:
        path = source_path(name, kernel)
        try:
            files[name] = path.read_bytes()
        except OSError as error:
            where = f"{label}: {name}"
            yield Finding(code="sources", severity="error", where=where, message=f"It cannot be read: {error}.")
    yield from check_cpp(files, label=label)
    yield from check_python(
        {name.removeprefix(folder): data for name, data in files.items() if name.startswith(folder)},
        label=label,
        own_name=kernel.python_name,
        python_depends=(*kernel.python_depends, *kernel.backend_python_depends.get(backend, ())),
        own=True,
    )


def _package_findings(package: Package, symbols: Mapping[MajorMinor, TorchSymbols]) -> Iterator[Finding]:
    for check in PACKAGE_CHECKS:
        yield from check(package)
    metadata, files = package.metadata, package.python()
    if "__init__.py" not in files and not package.own:
        # Before the layout was flattened, the module lay one folder deeper.
        folder = f"{metadata.python_name}/"
        files = {name.removeprefix(folder): data for name, data in files.items() if name.startswith(folder)}
    yield from check_python(
        files,
        label=package.label,
        own_name=metadata.python_name,
        python_depends=metadata.python_depends,
        own=package.own,
    )
    if isinstance(package.variant, ArchVariant):
        for name in package.libraries():
            yield from _library_findings(package, package.variant, name, symbols.get(package.variant.framework.version))


def _library_findings(
    package: Package, variant: ArchVariant, name: str, symbols: TorchSymbols | None
) -> Iterator[Finding]:
    if variant.os != "linux":
        yield package.finding("not-checked", f"Libraries for {variant.os} are not read.", file=name, severity="note")
        return
    path = package.files[name]
    try:
        elf = read_elf(path)
    except NotAnElfError as error:
        yield _not_an_elf(package.label, name, error)
        return
    library = Library(
        label=package.label, filename=name, path=path, elf=elf, variant=variant, own=package.own, symbols=symbols
    )
    for check in LIBRARY_CHECKS:
        yield from check(library)
    if variant.backend.name not in ("cpu", "cuda") or name != package.library:
        return
    try:
        images = read_images(path, elf)
    except (FatbinError, OSError) as error:
        yield library.finding("fatbin", f"The GPU code inside cannot be read: {error}.")
        return
    yield from check_declared_archs(library, images, package.metadata.archs)
    yield from check_regions(library, images)
    yield from check_resources(library, images, {})


def _not_an_elf(label: str, name: str, error: NotAnElfError) -> Finding:
    where = f"{label}: {name}"
    return Finding(code="not-an-elf", severity="error", where=where, message=f"It is no shared object: {error}.")
