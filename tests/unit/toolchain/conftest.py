from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from wheel_server import WheelServer

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass
class Recorder:
    """A Reporter that keeps what it was told."""

    notes: list[str] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)
    bars: list[tuple[str, int, int]] = field(default_factory=list)

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def progress(self, label: str, done: int, total: int, detail: str = "") -> None:
        self.bars.append((label, done, total))


@pytest.fixture
def recorder() -> Recorder:
    return Recorder()


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WheelServer]:
    monkeypatch.setenv("NO_PROXY", "*")
    server = WheelServer()
    yield server
    server.close()
