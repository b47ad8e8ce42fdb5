"""Ops registered from Python lie in the variant's own namespace, so that two kernels can live in one process."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel_builder.check.model import Finding
    from kernel_builder.check.python_files import PythonFile

_REGISTER = frozenset({
    "Library", "custom_op", "define", "impl", "impl_abstract", "register_autocast", "register_autograd",
    "register_fake", "register_kernel", "register_torch_dispatch", "register_vmap", "triton_op",
})  # fmt: skip
# What those functions call their first parameter.
_KEYWORDS = frozenset({"name", "op", "op_name", "qualname", "ns"})


def check_registrations(file: PythonFile) -> Iterator[Finding]:
    """The first argument of torch.library's functions is ``add_op_namespace_prefix(…)`` (``literal-namespace``)."""
    known = _from_library(file.tree)
    constants = _constants(file.tree)
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call) and _registers(node.func, known):
            first = _first(node)
            name = _literal(first, constants)
            # Without a namespace it is relative to the object that a variable called library holds.
            relative = isinstance(first, ast.Constant) and "::" not in str(name) and not _names(node.func, "Library")
            if name is not None and not relative:
                yield file.finding(
                    "literal-namespace",
                    node.lineno,
                    f"registers {name!r}: the second kernel or version with this name cannot be loaded.",
                    hint=f'from ._ops import add_op_namespace_prefix, then add_op_namespace_prefix("{_op(name)}")',
                )


def _from_library(tree: ast.Module) -> frozenset[str]:
    """Names that ``from torch.library import …`` brought in."""
    return frozenset(
        alias.asname or alias.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "torch.library"
        for alias in node.names
        if alias.name in _REGISTER
    )


def _registers(func: ast.expr, known: frozenset[str]) -> bool:
    """``torch.library.custom_op``, ``library.custom_op``, or an imported name; methods of an op are relative to it."""
    if isinstance(func, ast.Name):
        return func.id in known
    if not isinstance(func, ast.Attribute) or func.attr not in _REGISTER:
        return False
    owner = func.value
    return (owner.attr if isinstance(owner, ast.Attribute) else getattr(owner, "id", "")) == "library"


def _names(func: ast.expr, name: str) -> bool:
    return (func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")) == name


def _first(call: ast.Call) -> ast.expr | None:
    if call.args:
        return call.args[0]
    return next((k.value for k in call.keywords if k.arg in _KEYWORDS), None)


def _constants(tree: ast.Module) -> dict[str, str]:
    """Module-level ``NAME = "text"``."""
    return {
        target.id: node.value.value
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


def _literal(value: ast.expr | None, constants: dict[str, str]) -> str | None:
    """The text an argument begins with, None when it is computed."""
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        return value.value
    if isinstance(value, ast.Name):
        return constants.get(value.id)
    if isinstance(value, ast.JoinedStr) and value.values:
        head = value.values[0]
        return _literal(head.value if isinstance(head, ast.FormattedValue) else head, constants)
    if isinstance(value, ast.BinOp):
        return _literal(value.left, constants)
    return None


def _op(name: str) -> str:
    return name.rpartition("::")[2] or "op"
