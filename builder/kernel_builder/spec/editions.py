"""Older editions of build.toml, brought to edition 5 in memory: the paths of their keys stay what the author wrote.

Only edition 5 has the key ``edition``. Edition 4 differs in keys that it lacks; edition 3 also lets version, licence
and the table ``torch-noarch`` be left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.errors import SpecError
from kernel_builder.spec.kinds import type_name
from kernel_builder.spec.schema import BUILD, EDITION, FRAMEWORKS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from kernel_builder.spec.faults import Place

UNKNOWN_LICENSE = "unknown"  # also the Hub's word for it
_FIRST_VERSION = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Upgraded:
    """The tables as edition 5 has them, and what was done to them, in sentences for the author."""

    tables: Mapping[str, object]
    notes: tuple[str, ...]


def upgrade(build: Mapping[str, object], path: Path, top: Place) -> Upgraded:
    """Read the tables of a build.toml of edition 3, 4 or 5 as edition 5; notes a fault for keys its edition lacks.

    Raises:
        SpecError: It has no ``general`` table, or is of another edition.
    """
    general = build.get("general")
    if not isinstance(general, dict):
        raise SpecError(
            f"{BUILD} has no table [general].",
            where=str(path),
            hint=f"begin with [general] and edition = {EDITION}",
        )
    if "edition" in general:
        _check(general["edition"], path)
        return Upgraded(tables=build, notes=())
    if "backends" not in general:
        raise SpecError(
            "general.edition and general.backends are missing: this is edition 1 or 2, or not a kernel's build.toml.",
            where=f"{path}: general",
            hint=f"name the backends and set edition = {EDITION}",
        )
    edition = _edition(build, general)
    _newer_keys(build, general, edition, top)
    return _upgraded(build, general, edition)


def _check(edition: object, path: Path) -> None:
    where = f"{path}: general.edition"
    if isinstance(edition, bool) or not isinstance(edition, int):
        raise SpecError(
            f"general.edition must be the integer {EDITION}, found {type_name(edition)}.",
            where=where,
            hint=f"set edition = {EDITION}",
        )
    if edition != EDITION:
        older = f"set edition = {EDITION}; a file of edition 3 or 4 has no such key"
        raise SpecError(
            f"general.edition is {edition}; this version reads edition {EDITION}, and files without the key.",
            where=where,
            hint="use a newer kernel-builder" if edition > EDITION else older,
        )


def _edition(build: Mapping[str, object], general: Mapping[str, object]) -> int:
    """Edition 3 is what edition 4 would refuse: no framework table, or a version or licence left out."""
    if not any(name in build for name in FRAMEWORKS):
        return 3
    newer = "torch-noarch" in build or bool({"stable-abi", "cxx-flags"} & _table(build, "torch").keys())
    return 4 if newer or {"version", "license"} <= general.keys() else 3


def _newer_keys(build: Mapping[str, object], general: Mapping[str, object], edition: int, top: Place) -> None:
    at = top.key("general")
    hint = f"set general.edition = {EDITION}"
    for name in ("kernel-depends", "tpu"):
        if name in general:
            at.key(name).fault(f"this key came with edition {EDITION}, the file is edition {edition}", hint)
    for name in general:
        if "kernel-depends" in _table(general, name):
            at.key(name).key("kernel-depends").fault(f"this key came with edition {EDITION}", hint)
    if isinstance(_table(build, "torch").get("stable-abi"), dict):
        where = top.key("torch").key("stable-abi")
        where.fault(f"a version for each backend came with edition {EDITION}", hint)


def _upgraded(build: Mapping[str, object], general: Mapping[str, object], edition: int) -> Upgraded:
    defaults = {"version": _FIRST_VERSION, "license": UNKNOWN_LICENSE} if edition == 3 else {}
    tables = {**build, "general": {**defaults, **general, "edition": EDITION}}
    if not any(name in build for name in FRAMEWORKS):
        tables["torch-noarch"] = {}
    changes = [*(_changes(build, general) if edition == 3 else ()), f"add edition = {EDITION} to [general]"]
    text = f"{BUILD} is edition {edition} and was read as edition {EDITION}; to bring it up to date, "
    return Upgraded(tables=tables, notes=(text + " and ".join(changes),))


def _changes(build: Mapping[str, object], general: Mapping[str, object]) -> Iterator[str]:
    if not any(name in build for name in FRAMEWORKS):
        yield "add the table [torch-noarch]"
    if "version" not in general:
        yield f"add version = {_FIRST_VERSION}"
    if "license" not in general:
        yield f"add the license (metadata.json says {UNKNOWN_LICENSE!r} so far)"


def _table(tables: Mapping[str, object], name: str) -> Mapping[str, object]:
    found = tables.get(name)
    return found if isinstance(found, dict) else {}
