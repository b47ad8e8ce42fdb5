"""Faults of a spec are collected, each with its TOML path, and raised together."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from typing import TYPE_CHECKING

from kernel_builder.errors import SpecError

if TYPE_CHECKING:
    from collections.abc import Iterable

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class Fault:
    """One thing that is wrong: ``where`` is the file and TOML path, ``hint`` the way out, perhaps empty."""

    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        return f"{self.where}: {self.message}{f' ({self.hint})' if self.hint else ''}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Place:
    """A position in a TOML file that collects the faults found there and below.

    Attributes:
        file: Path of the file, as the user may open it.
        path: TOML path such as ``kernel.rmsnorm.src[2]``; empty at the top.
        faults: Shared by all places of one reading.
    """

    file: str
    path: str = ""
    faults: list[Fault] = field(default_factory=list)

    def key(self, name: str) -> Place:
        """The place of a key of this table."""
        shown = name if _BARE_KEY.fullmatch(name) and name.isascii() else repr(name)
        return replace(self, path=f"{self.path}.{shown}" if self.path else shown)

    def item(self, index: int) -> Place:
        """The place of an element of this list."""
        return replace(self, path=f"{self.path}[{index}]")

    def fault(self, message: str, hint: str = "") -> None:
        """Note a fault here and go on."""
        where = f"{self.file}: {self.path}" if self.path else self.file
        self.faults.append(Fault(where=where, message=message, hint=hint))

    def raise_faults(self) -> None:
        """Raise everything that was noted.

        Raises:
            SpecError: At least one fault was noted; ``detail`` lists all of them in order.
        """
        if not self.faults:
            return
        first, count = self.faults[0], len(self.faults)
        raise SpecError(
            first.message if count == 1 else f"The spec of this kernel has {count} faults; the first: {first.message}",
            where=first.where,
            hint=first.hint,
            detail="\n".join(str(fault) for fault in self.faults),
        )


def nearest(word: str, known: Iterable[str]) -> str:
    """Hint that names the closest known word, or all of them when none is close."""
    names = list(known)
    close = get_close_matches(word, names, n=1)
    return f"did you mean {close[0]!r}?" if close else f"known are {', '.join(names)}" if names else ""
