"""One definition per key serves the reader and the documentation; a table with unknown or missing keys is a fault."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from kernel_builder.spec.faults import nearest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.spec.faults import Place
    from kernel_builder.spec.kinds import Kind

T = TypeVar("T")


@dataclass(frozen=True, kw_only=True)
class Key(Generic[T]):
    """A key of a table.

    Attributes:
        default: Value when the key is absent; for a required key, the stand-in while further faults are collected.
        doc: One sentence for the documentation.
    """

    name: str
    kind: Kind[T]
    default: T
    doc: str
    required: bool = False


@dataclass(frozen=True, kw_only=True)
class Section:
    """A kind of table: the file and TOML path it stands at, and its keys."""

    file: str
    title: str
    keys: tuple[Key[Any], ...]


class Table:
    """A table checked against its section; ``table[KEY]`` is the typed value or the key's default."""

    def __init__(self, raw: Mapping[str, object], section: Section, at: Place) -> None:
        self.at = at
        self._values: dict[str, object] = {}
        known = {key.name: key for key in section.keys}
        for name in raw:
            if name not in known:
                at.key(name).fault(f"unknown key {name!r}", nearest(name, known))
        for name, key in known.items():
            if name in raw:
                self._values[name] = key.kind.check(raw[name], at.key(name))
            elif key.required:
                at.fault(f"the key {name} is missing", f"it is a {key.kind.label}")

    def __getitem__(self, key: Key[T]) -> T:
        value = self._values.get(key.name)
        return key.default if value is None else cast("T", value)
