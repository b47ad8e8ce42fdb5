"""Where a command's words go: results on stdout as text, ids or JSON; notes and warnings on stderr."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel_builder.console.text import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_BOLD, _RED, _YELLOW, _DIM = "1", "1;31", "33", "2"


@dataclass(frozen=True, kw_only=True, slots=True)
class Output:
    """How one command speaks.

    Attributes:
        as_json: One JSON object on stdout instead of text.
        quiet: Ids only on stdout, and on stderr only warnings and errors.
        color: Whether colour is allowed at all; it is used on terminals only.
    """

    as_json: bool = False
    quiet: bool = False
    color: bool = True

    def result(self, *, data: dict[str, Any], ids: Iterable[str], lines: Iterable[str]) -> None:
        """Print the product of a command in the form that was asked for."""
        if self.as_json:
            self.lines([json.dumps({"version": 1, **data}, indent=2)])
        else:
            self.lines(ids if self.quiet else lines)

    def lines(self, lines: Iterable[str]) -> None:
        """Print to stdout."""
        for line in lines:
            sys.stdout.write(f"{line}\n")
        sys.stdout.flush()

    def table(self, header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
        """Lines of a table whose header is bold on a terminal."""
        first, *others = table(header, rows)
        return [_paint(first, _BOLD, on=self.color and sys.stdout.isatty()), *others]

    def note(self, text: str) -> None:
        """Say something on stderr unless it should be quiet."""
        if not self.quiet:
            self._say(text)

    def warn(self, text: str) -> None:
        """Warn on stderr."""
        self._say(f"{self._colored('warning:', _YELLOW)} {text}")

    def error(self, message: str, *, where: str = "", hint: str = "", detail: str = "") -> None:
        """Report a failure: one sentence, where, what else is known, what to do."""
        self._say(f"{self._colored('error:', _RED)} {message}")
        if where:
            self._say(f"  at {where}")
        for line in detail.splitlines():
            self._say(f"  {line}")
        if hint:
            self._say(f"{self._colored('hint:', _DIM)} {hint}")

    def _say(self, text: str) -> None:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()

    def _colored(self, text: str, code: str) -> str:
        return _paint(text, code, on=self.color and sys.stderr.isatty())


def _paint(text: str, code: str, *, on: bool) -> str:
    return f"\033[{code}m{text}\033[0m" if on else text
