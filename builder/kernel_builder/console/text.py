"""Numbers and tables as text."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence


def size(count: float) -> str:
    """Bytes for people: ``512 B``, ``3.2 MB`` (powers of 1000, as package indexes print them)."""
    for unit in ("B", "kB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} GB"


def counted(count: int, noun: str) -> str:
    """``1 variant``, ``2 variants``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def and_more(names: Sequence[str]) -> str:
    """``a``, or ``a and 2 more``, so that what holds for forty variants is one line."""
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """Lines of a table with aligned columns; nothing is ever cut, so ids can be copied."""
    widths = [max(len(row[column]) for row in (header, *rows)) for column in range(len(header))]
    return [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in (header, *rows)
    ]
