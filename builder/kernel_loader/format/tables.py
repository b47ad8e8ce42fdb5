"""JSON objects from elsewhere, read key by key; every error names the path of the key it belongs to."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

T = TypeVar("T")
_NAMES = {str: "a string", int: "a whole number", list: "a list", Mapping: "an object", dict: "an object"}


@dataclass(frozen=True, slots=True)
class Table:
    """One JSON object.

    Attributes:
        where: File and JSON path of the object, e.g. ``metadata.json: backend``.
        error: The exception that a wrong value raises.
    """

    data: Mapping[str, Any]
    where: str
    error: type[ValueError]

    def fail(self, key: str, message: str) -> ValueError:
        """The error for one key; the caller raises it."""
        separator = "." if ": " in self.where else ": "
        return self.error(f"{self.where}{separator}{key}: {message}")

    def need(self, key: str, kind: type[T]) -> T:
        """The value of a key that must be there."""
        value = self.data.get(key)
        # JSON's true is an int to Python.
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.fail(key, f"must be {_NAMES[kind]}{'' if key in self.data else ', but is missing'}")
        return value

    def get(self, key: str, kind: type[T]) -> T | None:
        """The value of a key, None when it is absent or null."""
        return None if self.data.get(key) is None else self.need(key, kind)

    def table(self, key: str) -> Table:
        """The object under a key that must be there."""
        self.need(key, dict)
        separator = "." if ": " in self.where else ": "
        return Table(self.data[key], f"{self.where}{separator}{key}", self.error)

    def texts(self, key: str) -> tuple[str, ...]:
        """A list of strings; absent means empty."""
        values = self.get(key, list) or []
        if not all(isinstance(value, str) for value in values):
            raise self.fail(key, "must be a list of strings")
        return tuple(values)


def read_table(data: bytes | str, *, where: str, error: type[ValueError]) -> Table:
    """Parse a JSON document whose top is an object.

    Raises:
        ValueError: As ``error``: the data is no UTF-8, no JSON, nested too deeply, or no object.
    """
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError) as e:
        raise error(f"{where}: not JSON: {e}") from e
    if not isinstance(parsed, dict):
        raise error(f"{where}: must be a JSON object")
    return Table(parsed, where, error)


def write_json(value: Mapping[str, Any]) -> bytes:
    """The one spelling of a JSON document: sorted keys, two spaces, ASCII, a final newline."""
    return (json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n").encode("ascii")
