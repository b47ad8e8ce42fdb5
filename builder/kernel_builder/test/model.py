"""Proof that a variant was tested."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """What the tests ran on. ``capability`` is the GPU's, e.g. ``9.0``; None on a CPU."""

    device: str
    capability: str | None
    torch: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Counts:
    """Numbers of tests by their end; errors in set-up or collection count as failed."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Receipt:
    """What the tests said about one variant digest.

    Attributes:
        level: ``A`` = the binary itself ran on a device that it declares.
        tests_digest: Hex SHA-256 over the test sources.
        commit: Commit that the variant was built from, None when unknown.
        log: Output of the tests, for people; not part of the receipt file.
    """

    variant: str
    digest: str
    level: Literal["A"]
    machine: Machine
    counts: Counts
    tests_digest: str
    result: Literal["passed", "failed"]
    commit: str | None
    log: Path

    def to_json(self) -> dict[str, Any]:
        """The receipt as it is written."""
        machine = self.machine
        gpu = {"name": machine.device, "capability": machine.capability}
        return {
            "version": 1,
            "variant": self.variant,
            "digest": self.digest,
            "level": self.level,
            "device": "cpu" if machine.capability is None else gpu,
            "torch": machine.torch,
            "tests": {
                "passed": self.counts.passed,
                "failed": self.counts.failed,
                "skipped": self.counts.skipped,
                "digest": self.tests_digest,
            },
            "result": self.result,
            "commit": self.commit,
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class Unfit:
    """A variant that cannot run here, and why."""

    variant: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Tested:
    """Outcome of the test stage for one kernel: every variant is in one of the two."""

    receipts: tuple[Receipt, ...]
    unfit: tuple[Unfit, ...]
