"""No import is newer than the portability floor, and none hides from it by having no version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.check.openmp import torch_openmp
from kernel_builder.check.policy import read_policy, version_numbers
from kernel_builder.check.symbols import is_system
from kernel_loader.demangle import demangle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel_builder.check.elf import Import
    from kernel_builder.check.model import Finding
    from kernel_builder.check.subject import Library

_HINT = "link through the toolchain's floor stubs, or avoid the function"


def check_floor(library: Library) -> Iterator[Finding]:
    """No import is above the floor (``glibc-floor``), no system name lacks a version (``unversioned-import``)."""
    if library.variant.cpu not in read_policy().versions:
        yield library.finding("glibc-floor", f"No floor is known for {library.variant.cpu}, so nothing was compared.")
        return
    for wanted in library.elf.versioned:
        yield from _above(library, wanted)
    openmp = torch_openmp() if "libtorch_cpu.so" in library.elf.needed else frozenset()
    for wanted in library.elf.unversioned:
        if not wanted.weak and is_system(wanted.name) and wanted.name not in openmp:
            yield library.finding(
                "unversioned-import",
                f"{demangle(wanted.name)} is imported without a version, so no library of a {read_policy().name} "
                f"system has to offer it{library.importers(wanted.name)}.",
                hint=_HINT,
            )


def _above(library: Library, wanted: Import) -> Iterator[Finding]:
    policy = read_policy()
    newest_of = policy.versions[library.variant.cpu]
    # CXXABI_FLOAT128 and CXXABI_TM_1 are names of their own, not versions of CXXABI.
    space = next(
        (s for s in sorted(newest_of, key=len, reverse=True) if f"{wanted.version}_".startswith(f"{s}_")), None
    )
    if space is None:
        # libcudart.so.12 and libtorch's nodes name a library, whose presence DT_NEEDED's check judges.
        return
    version, newest = version_numbers(wanted.version[len(space) + 1 :]), newest_of[space]
    if version is None or version > newest:
        allowed = "_".join([space, *([".".join(map(str, newest))] if newest else [])])
        yield library.finding(
            "glibc-floor",
            f"{demangle(wanted.name)} needs {wanted.version} of {wanted.library}; {policy.name} has at most "
            f"{allowed}{library.importers(wanted.name)}.",
            hint=_HINT,
        )
