"""Reads TOML with the standard library, or with what came before it."""

from __future__ import annotations

import sys
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def parse_toml(text: str) -> dict[str, Any]:
    """The tables of a TOML document.

    Raises:
        ValueError: It is not TOML; the text ends with ``(at line N, column M)``.
    """
    tables: dict[str, Any] = tomllib.loads(text)
    return tables
