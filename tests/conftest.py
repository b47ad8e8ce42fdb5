"""Shared rules: unit and property tests may open no socket but loopback."""

from __future__ import annotations

from pathlib import Path

import pytest

OFFLINE = ("unit", "property")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Forbid sockets to every test of the offline folders."""
    here = Path(__file__).parent
    for item in items:
        parts = item.path.relative_to(here).parts if item.path.is_relative_to(here) else ()
        if parts and parts[0] in OFFLINE:
            item.add_marker(pytest.mark.allow_hosts(["127.0.0.1", "localhost"]))
