"""What a set of findings amounts to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel_builder.check.model import Finding


def errors(findings: Iterable[Finding]) -> int:
    """Number of findings that refuse their variant; 0 is a pass."""
    return sum(finding.severity == "error" for finding in findings)
