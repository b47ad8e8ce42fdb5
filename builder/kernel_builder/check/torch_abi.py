"""Every function that a variant imports from torch is exported by every torch that the variant is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.check.subject import listed
from kernel_builder.check.symbols import is_torch
from kernel_builder.toolchain.symbols.tables import covered, names_of, shim
from kernel_loader.demangle import demangle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel_builder.check.model import Finding
    from kernel_builder.check.subject import Library


def check_torch_abi(library: Library) -> Iterator[Finding]:
    """Imports that some torch lacks (``torch-abi``), or that nobody looked up (``torch-symbols-unproven``, a note)."""
    # A weak import is how one asks whether a function is there.
    names = sorted(i.name for i in library.elf.unversioned if is_torch(i.name) and not i.weak)
    if library.variant.framework.kind == "torch-stable-abi":
        yield from _stable(library, names)
    elif library.variant.framework.kind == "torch" and names:
        yield from _full(library, names)


def _stable(library: Library, names: list[str]) -> Iterator[Finding]:
    backend, claimed = library.variant.backend.name, library.variant.framework.version
    table, known = shim(backend), shim()
    if outside := [name for name in names if name not in known]:
        yield library.finding(
            "torch-abi",
            f"It claims the stable ABI but imports {_named(library, outside)}, which change with every torch.",
            hint="include only torch/csrc/stable/* and torch/headeronly/*",
        )
    if foreign := [name for name in names if name in known and name not in table]:
        yield library.finding(
            "torch-abi",
            f"Only torch builds for CUDA export {_named(library, foreign)}, and this is a {backend} variant.",
            hint="call it from a component of the cuda backend",
        )
    versions = [version for version in covered() if version >= claimed]
    if not versions:
        yield library.finding(
            "torch-symbols-unproven",
            f"The exports of torch {claimed} and newer are not known to this version, which knows {covered()[-1]}.",
            severity="note",
        )
        return
    spans = {name: table[name] for name in names if name in table}
    lacking = [name for name, (first, last) in spans.items() if first > versions[0] or last < versions[-1]]
    if lacking:
        texts = [f"{name} (torch {_span(*spans[name])}){library.importers(name)}" for name in lacking]
        yield library.finding(
            "torch-abi",
            f"It claims to run in torch {versions[0]} and newer but imports {listed(texts)}.",
            hint="use what older torches have too, or raise the stable ABI's version in build.toml",
        )


def _full(library: Library, names: list[str]) -> Iterator[Finding]:
    version, symbols = library.variant.framework.version, library.symbols
    if symbols is None:
        yield library.finding(
            "torch-symbols-unproven",
            f"{len(names)} imports from torch {version} were not looked up: its exports are not in the store.",
            severity="note",
            hint="`kernel-builder build` with a variant for this torch reads them",
        )
        return
    exported = names_of(symbols, library.variant.backend.name)
    if lacking := [name for name in names if name not in exported]:
        yield library.finding(
            "torch-abi",
            f"Torch {symbols.release} does not export {_named(library, lacking)}.",
            hint=f"compile against the headers of torch {version} only, and call what its libraries export",
        )


def _named(library: Library, names: list[str]) -> str:
    return listed([demangle(name) + library.importers(name) for name in names])


def _span(first: object, last: object) -> str:
    newest = covered()[-1]
    return f"{first} and newer" if last == newest else f"{first}" if first == last else f"{first} … {last}"
