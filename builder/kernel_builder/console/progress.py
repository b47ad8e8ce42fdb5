"""Reporters for people: bars on a terminal, plain lines elsewhere."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

from kernel_builder.console.text import size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress, TaskID

    from kernel_builder.console.output import Output
    from kernel_builder.reporting import Reporter


@contextlib.contextmanager
def reporting(output: Output) -> Iterator[Reporter]:
    """The Reporter that fits stderr; bars are closed at the end."""
    if output.quiet or not sys.stderr.isatty():
        yield PlainReporter(output)
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(bar_width=30),
        TextColumn("{task.fields[amount]}"),
        TimeElapsedColumn(),
    )
    console = Console(stderr=True, no_color=not output.color)
    with Progress(*columns, console=console) as bars:
        yield BarReporter(bars)


class PlainReporter:
    """One line when a step begins and one when it ends, for logs and pipes."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._open: set[str] = set()

    def note(self, text: str) -> None:
        """Print it."""
        self._output.note(text)

    def warn(self, text: str) -> None:
        """Print it."""
        self._output.warn(text)

    def progress(self, label: str, done: int, total: int, detail: str = "") -> None:
        """Say when a label begins and how much it was in the end."""
        if done >= total:
            self._open.discard(label)
            self._output.note(f"{label}: {amount(done, total, detail)}")
        elif label not in self._open:
            self._open.add(label)
            self._output.note(f"{label} …")


class BarReporter:
    """A bar per label."""

    def __init__(self, bars: Progress) -> None:
        self._bars = bars
        self._tasks: dict[str, TaskID] = {}

    def note(self, text: str) -> None:
        """Print it above the bars."""
        self._bars.console.print(text, highlight=False, markup=False)

    def warn(self, text: str) -> None:
        """Print it above the bars, in yellow."""
        self._bars.console.print(f"warning: {text}", style="yellow", highlight=False, markup=False)

    def progress(self, label: str, done: int, total: int, detail: str = "") -> None:
        """Move the label's bar."""
        text = amount(done, total, detail)
        if label not in self._tasks:
            self._tasks[label] = self._bars.add_task(label, total=total, amount=text)
        self._bars.update(self._tasks[label], completed=done, total=total, amount=text)


def amount(done: int, total: int, detail: str) -> str:
    """``3/12 attention.cu``, or ``1.2 MB/4.0 MB`` when the detail says that the numbers are bytes."""
    return f"{size(done)}/{size(total)}" if detail == "bytes" else f"{done}/{total} {detail}".rstrip()
