"""What the binary checks look at: one library of one variant, read once."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel_builder.check.elf import NotAnElfError, undefined_symbols
from kernel_builder.check.model import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernel_builder.check.elf import Elf
    from kernel_builder.toolchain.model import TorchSymbols
    from kernel_loader.format.variants import ArchVariant


@dataclass(frozen=True, kw_only=True, slots=True)
class Library:
    """A shared object inside, or on its way into, a variant.

    Attributes:
        label: Variant label for findings.
        filename: Its name inside the variant.
        own: Whether this toolchain built it and its stricter promises hold (one export, one launch path).
        objects: Object files that were linked, label → path; empty when unknown.
        symbols: Names that its torch exports, for a variant with the full ABI; None when they are not at hand.
    """

    label: str
    filename: str
    path: Path
    elf: Elf
    variant: ArchVariant
    own: bool
    objects: Mapping[str, Path] = field(default_factory=dict)
    symbols: TorchSymbols | None = None

    def finding(self, code: str, message: str, *, severity: Severity = "error", hint: str = "") -> Finding:
        """A finding at this library."""
        return Finding(code=code, severity=severity, where=f"{self.label}: {self.filename}", message=message, hint=hint)

    def importers(self, symbol: str) -> str:
        """`` (imported by a.o and b.o)``, or nothing when no object file is known to import the symbol."""
        names = [label for label, path in self.objects.items() if _imports(path, symbol)]
        return f" (imported by {' and '.join(names)})" if names else ""


def _imports(path: Path, symbol: str) -> bool:
    try:
        return symbol in undefined_symbols(path)
    except NotAnElfError:
        return False


def listed(names: list[str], most: int = 8) -> str:
    """``a, b, c`` of at most ``most`` names, then how many more."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
