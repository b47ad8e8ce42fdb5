"""How stages speak while they work: they are handed a Reporter; printing is the console's business."""

from __future__ import annotations

from typing import Protocol


class Reporter(Protocol):
    """Receives progress and notes. Implementations must be cheap and never raise."""

    def note(self, text: str) -> None:
        """Say something worth keeping on stderr, such as a decision or a fallback."""

    def warn(self, text: str) -> None:
        """Say something the user should act on."""

    def progress(self, label: str, done: int, total: int, detail: str = "") -> None:
        """Move the bar ``label`` to ``done`` of ``total`` (units or bytes); the last call has done == total."""


class SilentReporter:
    """A Reporter that drops everything; the default of library calls."""

    def note(self, text: str) -> None:
        """Drop it."""

    def warn(self, text: str) -> None:
        """Drop it."""

    def progress(self, label: str, done: int, total: int, detail: str = "") -> None:
        """Drop it."""
