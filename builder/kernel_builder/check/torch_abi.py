"""A stable-ABI variant imports nothing of torch but its C shim, in functions its oldest torch has."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.check.shims import allowed
from kernel_builder.check.subject import listed
from kernel_builder.check.symbols import is_torch
from kernel_loader.demangle import demangle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel_builder.check.model import Finding
    from kernel_builder.check.subject import Library


def check_torch_abi(library: Library) -> Iterator[Finding]:
    """Imports from torch: outside the stable ABI or newer than the target (``torch-abi``), or unproven (a note)."""
    names = sorted(i.name for i in library.elf.unversioned if is_torch(i.name))
    if library.variant.framework.kind == "torch-stable-abi":
        yield from _stable(library, names)
    elif library.variant.framework.kind == "torch" and names:
        yield library.finding(
            "torch-symbols-unproven",
            f"{len(names)} imports from torch {library.variant.framework.version} were not looked up in its libraries.",
            severity="note",
        )


def _stable(library: Library, names: list[str]) -> Iterator[Finding]:
    target, shims = library.variant.framework.version, allowed(library.include)
    outside = [n for n in names if n not in shims]
    if outside:
        yield library.finding(
            "torch-abi",
            f"It claims the stable ABI but imports {listed([demangle(n) + library.importers(n) for n in outside])}, "
            "which change with every torch.",
            hint="include only torch/csrc/stable/* and torch/headeronly/*",
        )
    # A weak import of a newer function is how one asks whether it is there.
    weak = {i.name for i in library.elf.unversioned if i.weak}
    newer = [n for n in names if n in shims and shims[n] > target and n not in weak]
    if newer:
        texts = [f"{n} (torch {shims[n]}){library.importers(n)}" for n in newer]
        yield library.finding(
            "torch-abi",
            f"It claims to run from torch {target} on but imports {listed(texts)}.",
            hint=f"compile with TORCH_TARGET_VERSION of {target}, or raise the stable ABI's version in build.toml",
        )
