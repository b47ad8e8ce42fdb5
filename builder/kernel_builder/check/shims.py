"""The C functions that a torch stable-ABI module may import, read from torch's headers or from the shipped table."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

TABLE = Path(__file__).with_name("policies") / "torch_shims.txt"
# The headers that torch/csrc/stable includes, and the ones they are kept beside.
_HEADERS = (
    "torch/csrc/stable/c/shim*.h",
    "torch/csrc/inductor/aoti_torch/c/shim*.h",
    "torch/csrc/inductor/aoti_torch/generated/c_shim_aten.h",
)
_FIRST = MajorMinor(2, 7)
_DIRECTIVE = re.compile(r"#\s*(if|ifdef|ifndef|else|elif|endif)\b(.*)")
_GUARD = re.compile(r"TORCH_FEATURE_VERSION\s*>=\s*TORCH_VERSION_(\d+)_(\d+)_\d+")
_DECLARATION = re.compile(r"AOTI_TORCH_EXPORT\b[^(;{]*?\b(\w+)\s*\(")
_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)


def read_headers(include: Path) -> dict[str, MajorMinor]:
    """Functions declared below an include folder → the oldest target that declares them (2.7 when unguarded)."""
    found: dict[str, MajorMinor] = {}
    for header in sorted(p for pattern in _HEADERS for p in include.glob(pattern)):
        for name, since in _declarations(header.read_text("utf-8", "replace")):
            found[name] = min(since, found.get(name, since))
    return found


def make_table(includes: Mapping[MajorMinor, Path]) -> str:
    """Text of the shipped table, made from the headers of several torch versions.

    A function's version is the first one whose headers declare it, or its guard if that is newer. Functions that the
    newest headers no longer declare are left out: a stable module runs in every later torch.
    """
    versions = sorted(includes)
    declared = {version: read_headers(includes[version]) for version in versions}
    lines = []
    for name in sorted(declared[versions[-1]]):
        first = next(v for v in versions if name in declared[v])
        lines.append(f"{name} {max(first, declared[first][name])}")
    head = (
        "# C shim functions of torch's stable ABI and the torch version that has them first.\n"
        f"# Read by kernel_builder.check.shims.make_table from the headers of torch {', '.join(map(str, versions))}:\n"
        + "".join(f"#   {pattern}\n" for pattern in _HEADERS)
    )
    return head + "\n".join(lines) + "\n"


@cache
def shipped() -> Mapping[str, MajorMinor]:
    """The shipped table: function → first torch version."""
    rows = (line.split() for line in TABLE.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {row[0]: MajorMinor.parse(row[1]) for row in rows if row}


def allowed(include: tuple[Path, ...] = ()) -> Mapping[str, MajorMinor]:
    """Function → first torch version; headers of an SDK add what is newer than the shipped table."""
    known = dict(shipped())
    for folder in include:
        for name, since in read_headers(folder).items():
            known.setdefault(name, since)
    return known


def _declarations(text: str) -> Iterator[tuple[str, MajorMinor]]:
    """Each exported function with the newest version guard around it."""
    guards: list[MajorMinor] = []
    plain: list[str] = []
    for line in _COMMENT.sub("", text).splitlines():
        directive = _DIRECTIVE.match(line.strip())
        if directive is None:
            if not line.lstrip().startswith("#"):
                plain.append(line)
            continue
        yield from _exports(plain, guards)
        plain = []
        _enter(guards, directive)
    yield from _exports(plain, guards)


def _enter(guards: list[MajorMinor], directive: re.Match[str]) -> None:
    if directive[1].startswith("if"):
        guard = _GUARD.search(directive[2])
        guards.append(MajorMinor(int(guard[1]), int(guard[2])) if guard else _FIRST)
    elif directive[1] == "endif" and guards:
        guards.pop()
    elif guards:
        guards[-1] = _FIRST


def _exports(lines: list[str], guards: list[MajorMinor]) -> Iterator[tuple[str, MajorMinor]]:
    since = max([_FIRST, *guards])
    return ((match[1], since) for match in _DECLARATION.finditer("\n".join(lines)))
