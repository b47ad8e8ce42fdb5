"""A pytest plugin, loaded into the process of a kernel's tests, that writes the counts as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pytest

OPTION = "--kernel-counts"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names the file."""
    parser.addoption(OPTION, required=True, help="file for the numbers of passed, failed and skipped tests")


def pytest_configure(config: pytest.Config) -> None:
    """Count from the start of the run."""
    config.pluginmanager.register(_Counter(Path(config.getoption(OPTION))), "kernel-counter")


class _Counter:
    def __init__(self, path: Path) -> None:
        self._path = path
        self._ends: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """The worst phase of a test is its end."""
        if report.failed:
            self._ends[report.nodeid] = "failed"
        elif report.skipped:
            self._ends.setdefault(report.nodeid, "skipped")
        elif report.when == "call":
            self._ends.setdefault(report.nodeid, "passed")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A module that cannot be collected is a failure, a skipped one is a skip."""
        if not report.passed:
            self._ends[report.nodeid] = "failed" if report.failed else "skipped"

    def pytest_sessionfinish(self) -> None:
        """Write the counts."""
        ends = list(self._ends.values())
        self._path.write_text(json.dumps({end: ends.count(end) for end in ("passed", "failed", "skipped")}))
