"""First-party C++ and CUDA sources: no fixed op namespace, no way to end the process."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kernel_builder.check.model import Finding, Severity

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SUFFIXES = (".c", ".cc", ".cpp", ".cu", ".cuh", ".cxx", ".h", ".hpp", ".hxx")
# Comments and literals become blanks of the same number of lines; raw strings first, as they may hold quotes.
_NOT_CODE = re.compile(r"//[^\n]*|/\*.*?\*/|\bR\"(\w*)\(.*?\)\1\"|\"(?:\\.|[^\"\\\n])*\"|'(?:\\.|[^'\\\n])'", re.DOTALL)
_LIBRARY = re.compile(r"\b((?:STABLE_)?TORCH_LIBRARY(?:_FRAGMENT|_IMPL)?)\s*\(\s*(\w+)")
_EXIT = re.compile(r"(?<![\w.>])(?:std::|::)?(_?exit|_Exit|quick_exit|abort|terminate)\s*\(")


def check_cpp(files: Mapping[str, bytes], *, label: str) -> Iterator[Finding]:
    """Registration under a fixed name (``literal-namespace``) and process exits (``process-exit``, a warning)."""
    for path in sorted(p for p in files if p.endswith(_SUFFIXES)):
        text = _NOT_CODE.sub(_blank, files[path].decode("utf-8", "replace"))
        directive = False
        for number, line in enumerate(text.split("\n"), 1):
            where = f"{label}: {path}:{number}"
            directive = directive or line.lstrip().startswith("#")
            # Inside #define the name is a macro's parameter, which is how the namespace is handed through.
            if not directive:
                yield from _fixed_namespace(line, where)
            yield from _exits(line, where)
            directive = directive and line.endswith("\\")


def _fixed_namespace(line: str, where: str) -> Iterator[Finding]:
    match = _LIBRARY.search(line)
    if match:
        yield _finding(
            "literal-namespace",
            "error",
            where,
            f"{match[1]}({match[2]}, …) registers ops under a fixed name: a second kernel or version of it ends the "
            "process when it is loaded.",
            "register under kb_namespace, or through TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, …)",
        )


def _exits(line: str, where: str) -> Iterator[Finding]:
    match = _EXIT.search(line)
    if match:
        yield _finding(
            "process-exit",
            "warning",
            where,
            f"{match[1]}() would end the whole training process instead of raising an error.",
            "throw an exception",
        )


def _blank(match: re.Match[str]) -> str:
    return "\n" * match[0].count("\n") + " "


def _finding(code: str, severity: Severity, where: str, message: str, hint: str) -> Finding:
    return Finding(code=code, severity=severity, where=where, message=message, hint=hint)
