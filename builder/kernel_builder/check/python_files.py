"""Shipped Python files, parsed once, and the rules about them."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.check.imports import check_imports
from kernel_builder.check.model import Finding, Severity
from kernel_builder.check.registrations import check_registrations

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence


@dataclass(frozen=True, kw_only=True, slots=True)
class PythonFile:
    """One parsed file; ``path`` is relative to the folder that becomes the module."""

    label: str
    path: str
    tree: ast.Module

    def finding(self, code: str, line: int, message: str, *, severity: Severity = "error", hint: str = "") -> Finding:
        """A finding at one line."""
        where = f"{self.label}: {self.path}:{line}"
        return Finding(code=code, severity=severity, where=where, message=f"Line {line} {message}", hint=hint)


def check_python(
    files: Mapping[str, bytes], *, label: str, own_name: str, python_depends: Sequence[str], own: bool
) -> Iterator[Finding]:
    """Every rule about Python sources.

    Args:
        files: Path relative to the module's folder → content.
        label: Variant label for findings.
        own_name: The kernel's import name.
        python_depends: Requirements that the kernel declares.
        own: Whether this toolchain builds it; others' kernels may lack ``__all__``.
    """
    for path in sorted(p for p in files if p.endswith(".py")):
        try:
            tree = ast.parse(files[path])
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            yield _broken(label, path, error)
            continue
        file = PythonFile(label=label, path=path, tree=tree)
        yield from check_imports(file, own_name=own_name, python_depends=python_depends)
        yield from check_registrations(file)
        if path == "__init__.py" and not _has_all(tree):
            yield file.finding(
                "public-api",
                1,
                "begins a module without __all__, so nobody can tell what its API is.",
                severity="error" if own else "warning",
                hint="list the public names in __all__",
            )
    if "__init__.py" not in files:
        where = f"{label}: __init__.py"
        yield Finding(code="public-api", severity="error", where=where, message="The module has no __init__.py.")


def _broken(label: str, path: str, error: Exception) -> Finding:
    line = getattr(error, "lineno", None)
    where = f"{label}: {path}" + (f":{line}" if line else "")
    return Finding(code="python-syntax", severity="error", where=where, message=f"Python cannot read it: {error}.")


def _has_all(tree: ast.Module) -> bool:
    targets: list[ast.expr] = []
    for node in tree.body:
        if isinstance(node, ast.Assign):
            targets += node.targets
        elif isinstance(node, (ast.AnnAssign, ast.AugAssign)):
            targets.append(node.target)
    return any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets)
