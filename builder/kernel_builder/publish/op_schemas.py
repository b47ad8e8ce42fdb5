"""Schemas of torch ops, as C++ sources spell them or as a library holds them. Nothing is compiled or loaded."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_CPP = (".cpp", ".cc", ".cxx", ".cu", ".h", ".hpp", ".cuh")
_NOT_BUILT = ("tests", "benchmarks")
_TOKEN = re.compile(
    r"""//[^\n]* | /\*.*?\*/ | R"(?P<mark>[^\s()\\]{0,16})\((?P<raw>.*?)\)(?P=mark)"
    | "(?P<text>(?:[^"\\\n]|\\.)*)" | '(?:[^'\\\n]|\\.)+'""",
    re.DOTALL | re.VERBOSE,
)
_DEFINES = re.compile(r"\bdef\s*\(\s*$")
_SCHEMA = re.compile(
    r"(?:[A-Za-z_]\w*::)?(?P<plain>[A-Za-z_]\w*(?:\.\w+)?\s*\([\w\s,\[\]?!()|*=.:+\-'\"]*\)\s*->\s*"
    r"(?:\(.*\)|[A-Za-z_][\w\[\]?!()| ]*))",
    re.DOTALL,
)
_LONGEST = 4096  # bytes of a schema


def schemas_in_sources(sources: Mapping[str, bytes]) -> frozenset[str]:
    """Ops that the C++ files of a source archive define: schemas, and bare names where torch infers the schema."""
    return frozenset(
        schema
        for name, data in sources.items()
        if name.endswith(_CPP) and not set(name.split("/")[1:2]).intersection(_NOT_BUILT)
        for schema in _in_source(data.decode("utf-8", "replace"))
    )


def schemas_in_library(data: bytes) -> frozenset[str]:
    """Ops that a shared object defines, as far as their schemas lie in it as one text.

    Compilers build short texts of full-ABI libraries in registers, so an op that is not found may still be there.
    """
    found = set()
    at = data.find(b"->")
    while at >= 0:
        start = data.rfind(b"\0", max(0, at - _LONGEST), at) + 1
        end = data.find(b"\0", at, at + _LONGEST)
        if start and end > 0 and (schema := _schema(data[start:end].decode("latin-1"))):
            found.add(schema)
        at = data.find(b"->", max(at + 2, end))
    return frozenset(found)


def _in_source(text: str) -> Iterator[str]:
    for before, literal in _literals(text):
        schema = _schema(literal)
        if schema is None and _DEFINES.search(before):
            schema = _normal(literal)
        if schema:
            yield schema


def _literals(text: str) -> Iterator[tuple[str, str]]:
    """Strings of C++ source, adjacent pieces joined as the compiler does, and the code before each."""
    before, end = "", 0
    pieces: list[str] = []
    for token in _TOKEN.finditer(text):
        code, end = text[end : token.start()], token.end()
        if pieces and code.strip():
            yield before, "".join(pieces)
            before, pieces = "", []
        before += "" if pieces else code
        if token["raw"] is not None:
            pieces.append(token["raw"])
        elif token["text"] is not None:
            pieces.append(re.sub(r"\\(.)", lambda c: {"n": "\n", "t": "\t"}.get(c[1], c[1]), token["text"]))
    if pieces:
        yield before, "".join(pieces)


def _schema(text: str) -> str | None:
    """A schema in its one spelling, None for any other text. The namespace is the variant's own, so it is left out."""
    found = _SCHEMA.fullmatch(text.strip())
    return _normal(found["plain"]) if found else None


def _normal(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
