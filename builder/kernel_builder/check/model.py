"""What checks return."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Severity = Literal["error", "warning", "note"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Finding:
    """One observation about one variant. ``error`` refuses the variant.

    Attributes:
        code: Stable kebab-case name, e.g. ``glibc-floor``.
        where: Variant label, then file or object.
        message: One sentence.
        hint: What to do about it, may be empty.
    """

    code: str
    severity: Severity
    where: str
    message: str
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        """The finding as plain data."""
        return {
            "code": self.code,
            "severity": self.severity,
            "where": self.where,
            "message": self.message,
            "hint": self.hint,
        }
