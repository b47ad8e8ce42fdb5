"""Qualified names of C++ symbols, for people: ``_ZN2at5emptyEN3c108ArrayRefIlEE`` → ``at::empty``.

Only the name is read, not the argument types: that is what a reader needs to find the call.
"""

from __future__ import annotations

import re

_SPECIAL = {
    "TI": "typeinfo for ",
    "TS": "typeinfo name for ",
    "TV": "vtable for ",
    "TT": "VTT for ",
    "GV": "guard for ",
}
_STD = {
    "t": "std", "a": "std::allocator", "b": "std::basic_string", "s": "std::string",
    "i": "std::istream", "o": "std::ostream", "d": "std::iostream",
}  # fmt: skip
_LENGTH = re.compile(r"(\d+)")
# The head of a nested name: qualifiers that say nothing about where it is declared.
_QUALIFIERS = "rVKRO"


def demangle(symbol: str) -> str:
    """The qualified name, or the symbol itself where it is not C++ or too intricate; template arguments are dropped."""
    if not symbol.startswith("_Z"):
        return symbol
    rest = symbol[2:]
    prefix = _SPECIAL.get(rest[:2], "")
    name = _name(rest[2:] if prefix else rest)
    return prefix + name if name else symbol


def _name(text: str) -> str:
    nested = text.startswith("N")
    if nested:
        text = text[1:].lstrip(_QUALIFIERS)
    parts: list[str] = []
    while text:
        part, text = _part(text)
        if not part:
            break
        parts.append(part)
        if not nested and part not in _STD.values():
            break
    return "::".join(parts)


def _part(text: str) -> tuple[str, str]:
    """The next component and what follows; an empty component ends the name."""
    if text.startswith("S") and text[1:2] in _STD:
        return _STD[text[1]], text[2:]
    length = _LENGTH.match(text)
    if not length:
        return "", text
    end = length.end() + int(length[1])
    part = text[length.end() : end]
    return ("(anonymous namespace)" if part.startswith("_GLOBAL__N") else part), text[end:]
