"""Why units run again: what differs between the facts of their keys, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from kernel_builder.compile.units import Unit

_FOLLOWS = "made of the above"
_NEW = "not compiled before"
_GONE = "the result in the store is gone or damaged"


def reasons(missing: Iterable[Unit], last_facts: Callable[[str], Mapping[str, str] | None]) -> tuple[str, ...]:
    """One line per reason, with the units it holds for; those that only follow others come last."""
    units: dict[str, list[str]] = {}
    for unit in missing:
        for reason in reasons_of(unit.facts(), last_facts(unit.label)):
            units.setdefault(reason, []).append(unit.label)
    ordered = sorted(units, key=lambda reason: reason == _FOLLOWS)
    return tuple(f"{reason}: {_names(units[reason])}" for reason in ordered)


def reasons_of(new: Mapping[str, str], old: Mapping[str, str] | None) -> tuple[str, ...]:
    """What changed from ``old`` to ``new`` facts; None = no record."""
    if old is None:
        return (_NEW,)
    differing = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    if not differing:
        return (_GONE,)
    own = tuple(_sentence(name, old, new) for name in differing if not name.startswith("unit "))
    return own or (_FOLLOWS,)


def _sentence(name: str, old: Mapping[str, str], new: Mapping[str, str]) -> str:
    if name == "flags":
        before, after = old["flags"].split("\n"), new["flags"].split("\n")
        changes = [f"+{flag}" for flag in after if flag not in before] + [
            f"-{flag}" for flag in before if flag not in after
        ]
        return f"flags changed ({' '.join(changes) or 'order'})"
    if name == "generated source":
        return "the sources of the kernel changed, and its id with them"
    kind, _, what = name.partition(" ")
    what = what if kind in ("file", "tool") else name
    if name not in old:
        return f"{what} is new"
    return f"{what} is gone" if name not in new else f"{what} changed"


def _names(labels: list[str], most: int = 3) -> str:
    shown = ", ".join(labels[:most])
    return shown if len(labels) <= most else f"{shown} and {len(labels) - most} more"
