"""Every module of a variant loads in every Python from 3.9 on, as ``.abi3.so`` promises."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.check.policy import limited_api
from kernel_builder.check.subject import listed
from kernel_builder.check.symbols import is_python

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel_builder.check.model import Finding
    from kernel_builder.check.subject import Library


def check_filename(library: Library) -> Iterator[Finding]:
    """The file name says abi3 (``python-abi``)."""
    if not library.filename.endswith(".abi3.so"):
        yield library.finding(
            "python-abi",
            "The file name does not end in .abi3.so, so other Pythons than the one it was built for cannot load it.",
            hint="build it against the limited API and name it *.abi3.so",
        )


def check_python_abi(library: Library) -> Iterator[Finding]:
    """Imports from Python are in its limited API of 3.9 (``python-abi``)."""
    names = (i.name for i in library.elf.imports if is_python(i.name))
    outside = sorted(n for n in names if n not in limited_api())
    if outside:
        yield library.finding(
            "python-abi",
            f"{listed([n + library.importers(n) for n in outside])}: not in Python's limited API of version 3.9.",
            hint="compile with -DPy_LIMITED_API=0x03090000",
        )
