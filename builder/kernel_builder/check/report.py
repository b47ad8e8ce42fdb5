"""What a set of findings amounts to."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel_builder.check.model import Finding, Severity

SEVERITIES: tuple[Severity, ...] = ("error", "warning", "note")


def errors(findings: Iterable[Finding]) -> int:
    """Number of findings that refuse their variant; 0 is a pass."""
    return sum(finding.severity == "error" for finding in findings)


def grouped(findings: Iterable[Finding]) -> dict[str, tuple[Finding, ...]]:
    """Variant label → its findings, errors first; labels and equal severities keep their order."""
    groups: dict[str, list[Finding]] = {}
    for finding in findings:
        groups.setdefault(finding.where.partition(": ")[0], []).append(finding)
    return {label: tuple(sorted(group, key=lambda f: SEVERITIES.index(f.severity))) for label, group in groups.items()}


def verdict(findings: Iterable[Finding]) -> str:
    """``1 error, 2 warnings``, or ``no findings``."""
    found = list(findings)
    counts = [(severity, sum(f.severity == severity for f in found)) for severity in SEVERITIES]
    return ", ".join(f"{n} {severity}{'s' if n > 1 else ''}" for severity, n in counts if n) or "no findings"
