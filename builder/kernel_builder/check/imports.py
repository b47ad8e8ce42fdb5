"""Imports of shipped Python files: relative to the kernel, or declared."""

from __future__ import annotations

import ast
import re
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kernel_builder.check.model import Finding
    from kernel_builder.check.python_files import PythonFile

# torch brings triton where it can be used.
_PROVIDED = frozenset({"torch", "triton", *sys.stdlib_module_names})
# Distributions whose import name is another one.
_IMPORT_NAMES = {"nvidia-cutlass-dsl": "cutlass", "apache-tvm-ffi": "tvm_ffi", "onednn-devel": ""}
_DISTRIBUTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_OPTIONAL = frozenset({"ImportError", "ModuleNotFoundError", "Exception", "BaseException"})
_IMPORTERS = frozenset({"import_module", "__import__"})


def check_imports(file: PythonFile, *, own_name: str, python_depends: Sequence[str]) -> Iterator[Finding]:
    """No absolute import of the kernel (``own-name-import``) or of an undeclared package (``undeclared-import``)."""
    declared = {name for text in python_depends for name in _import_names(text)}
    for name, line, optional in _imported(file.tree):
        top = name.partition(".")[0]
        if top == own_name:
            yield file.finding(
                "own-name-import",
                line,
                f"imports {name}: a loaded kernel has another name, so this fails as soon as the line runs.",
                hint="import it relatively, as in 'from .config import …'",
            )
        elif top and not optional and top not in _PROVIDED and top not in declared:
            yield file.finding(
                "undeclared-import",
                line,
                f"imports {top}, which is neither part of Python or torch nor among python-depends.",
                hint=f'add "{top}" to python-depends in build.toml, or guard the import with except ImportError',
            )


def _import_names(requirement: str) -> tuple[str, ...]:
    match = _DISTRIBUTION.match(requirement.strip())
    name = match[0].lower() if match else ""
    return (_IMPORT_NAMES.get(name, re.sub(r"[-.]", "_", name)), name.replace("-", "_"))


def _imported(tree: ast.AST, *, optional: bool = False) -> Iterator[tuple[str, int, bool]]:
    """Each absolutely imported module, its line, and whether its absence is caught; not those for type checkers."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and _type_checking(node.test):
            for other in node.orelse:
                yield from _imported(ast.Module(body=[other], type_ignores=[]), optional=optional)
            continue
        if isinstance(node, ast.Try):
            yield from _imported_in_try(node, optional=optional)
            continue
        yield from ((name, node.lineno, optional) for name in _names(node))  # type: ignore[attr-defined]
        yield from _imported(node, optional=optional)


def _imported_in_try(node: ast.Try, *, optional: bool) -> Iterator[tuple[str, int, bool]]:
    caught = {name for handler in node.handlers for name in _caught(handler)}
    yield from _imported(ast.Module(body=node.body, type_ignores=[]), optional=optional or bool(caught & _OPTIONAL))
    rest: list[ast.stmt] = [*node.orelse, *node.finalbody, *(s for h in node.handlers for s in h.body)]
    yield from _imported(ast.Module(body=rest, type_ignores=[]), optional=optional)


def _names(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module] if node.module and not node.level else []
    if isinstance(node, ast.Call) and _called(node.func) in _IMPORTERS and node.args:
        first = node.args[0]
        literal = first.value if isinstance(first, ast.Constant) else None
        return [literal] if isinstance(literal, str) and not literal.startswith(".") else []
    return []


def _called(func: ast.expr) -> str:
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _caught(handler: ast.ExceptHandler) -> list[str]:
    if handler.type is None:
        return ["BaseException"]
    types = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return [_called(t) for t in types]


def _type_checking(test: ast.expr) -> bool:
    return _called(test) == "TYPE_CHECKING"
