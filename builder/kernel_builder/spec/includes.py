"""Finds the project files that a C++ or CUDA source can include: the input side of digests and of unit keys.

Conditionals are ignored, so the result is a superset. A name that no project folder holds belongs to a toolkit, torch
or the system, and the compiler says so if it belongs to nobody.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from kernel_builder.errors import SpecError
from kernel_builder.spec.paths import exists, is_inside

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

HEADER_SUFFIXES = frozenset({".h", ".hh", ".hpp", ".hxx", ".h++", ".cuh", ".inl", ".inc", ".ipp", ".tpp", ".def"})

_SPLICE = re.compile(r"\\[ \t]*\r?\n")
# Literals are matched, and kept, so that a comment sign inside them does not hide the includes that follow.
_LEXEME = re.compile(
    r"""(?P<header>(?:\#|%:)[ \t]*(?:include_next|include|import|embed)[ \t]*<[^>\n]*>)
    |(?P<raw>(?<![A-Za-z0-9_])(?:u8|u|U|L)?R"(?P<mark>[^ ()\\\t\v\f\n]{0,16})\(.*?\)(?P=mark)")
    |(?P<text>"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z_])'(?:\\.|[^'\\\n])*')
    |(?P<comment>//[^\n]*|/\*.*?(?:\*/|\Z))""",
    re.DOTALL | re.VERBOSE,
)
_DIRECTIVE = re.compile(
    r"^[ \t]*(?:\#|%:|\?\?=)[ \t]*(?:include_next|include|import|embed)\b[ \t]*(?P<rest>[^\n]*)", re.MULTILINE
)
_TESTED = re.compile(r"\b__has_(?:include(?:_next)?|embed)[ \t]*\([ \t]*(?P<rest>[<\"][^>\"\n]*[>\"])")
_NAME = re.compile(r"<(?P<angled>[^>\n\0]+)>|\"(?P<quoted>[^\"\n\0]+)\"")


@dataclass(frozen=True, slots=True)
class Directive:
    """An include as it is written; ``name`` is None when a macro names the file."""

    name: str | None
    quoted: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class Known:
    """What was found so far, so that a header of many sources is read and looked up once.

    Attributes:
        directives: File → its includes.
        targets: File and include folders → the project files that it includes.
    """

    directives: dict[Path, tuple[Directive, ...]] = field(default_factory=dict)
    targets: dict[tuple[Path, tuple[Path, ...]], tuple[Path, ...]] = field(default_factory=dict)


def directives(text: str) -> tuple[Directive, ...]:
    """Every include of a source text, in order, without those in comments."""
    spliced = _SPLICE.sub("", text)
    bare = _LEXEME.sub(lambda found: found[0] if found["comment"] is None else " ", spliced)
    rests = [found["rest"] for pattern in (_DIRECTIVE, _TESTED) for found in pattern.finditer(bare)]
    names = [_NAME.match(rest) for rest in rests]
    return tuple(
        Directive(None, quoted=False)
        if name is None
        else Directive(name["angled"] or name["quoted"], bool(name["quoted"]))
        for name in names
    )


def reachable(
    source: Path,
    include_dirs: Sequence[Path],
    root: Path,
    common: Path | None,
    *,
    known: Known | None = None,
) -> tuple[Path, ...]:
    """The source and every project file it can include, absolute and sorted.

    Args:
        source: The file to begin with; whatever its suffix.
        root: Folder of the kernel.
        common: Folder of the shared headers.
        include_dirs: Include folders inside ``root`` or ``common``, in search order. Not those of toolkits or torch.
        known: What calls before this one found; share one while the files stay as they are.

    Raises:
        SpecError: An include names a file outside ``root`` and ``common``.
    """
    known, folders = known or Known(), tuple(include_dirs)
    found: set[Path] = set()
    waiting = [_normal(source)]
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found.add(path)
        if path not in known.directives:
            known.directives[path] = directives(_read(path))
        if (path, folders) not in known.targets:
            each = (_targets(directive, path, folders, root, common) for directive in known.directives[path])
            known.targets[path, folders] = tuple(target for targets in each for target in targets)
        waiting.extend(known.targets[path, folders])
    return tuple(sorted(found))


def headers(*folders: Path | None) -> Iterator[Path]:
    """Every header below the folders; links that leave them are passed over."""
    for folder in folders:
        for path in sorted(folder.rglob("*")) if folder is not None else ():
            if path.suffix in HEADER_SUFFIXES and path.is_file() and is_inside(path, *folders):
                yield path


def _targets(
    directive: Directive, path: Path, include_dirs: Sequence[Path], root: Path, common: Path | None
) -> list[Path]:
    if directive.name is None:
        return list(headers(root, common))
    bases = ([path.parent] if directive.quoted else []) + list(include_dirs)
    candidates = [_normal(base / directive.name) for base in bases]
    # All matches count, not the first alone: include_next passes over it.
    existing = [candidate for candidate in candidates if exists(candidate) and candidate.is_file()]
    outside = [target for target in existing if not is_inside(target, root, common)]
    if not existing and not any(_is_below(candidate, root, common) for candidate in candidates):
        outside = candidates
    if outside:
        _refuse(directive, path, "leaves the kernel folder", "move the header into the kernel folder")
    if any(exists(candidate.with_name(candidate.name + ".gch")) for candidate in candidates):
        _refuse(
            directive, path, "has a precompiled header, which the compiler would load instead", "remove the .gch file"
        )
    return existing


def _refuse(directive: Directive, path: Path, why: str, hint: str) -> NoReturn:
    raise SpecError(f"The include of {directive.name!r} {why}.", where=str(path), hint=hint)


def _is_below(path: Path, root: Path, common: Path | None) -> bool:
    return path.is_relative_to(root) or (common is not None and path.is_relative_to(common))


def _normal(path: Path) -> Path:
    """Absolute, without ``..``: two spellings of one file are one file. Links stay, includes are relative to them."""
    plain = Path(os.path.normpath(path.absolute()))
    # After a linked folder, ".." is the parent of what the link points to.
    through_link = ".." in path.parts and exists(path) and path.resolve() != plain.resolve()
    return path.resolve() if through_link else plain


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise SpecError(f"{path.name} cannot be read: {error.strerror}.", where=str(path)) from error
