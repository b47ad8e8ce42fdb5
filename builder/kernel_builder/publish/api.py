"""The public API of a packaged kernel, read without importing it: Python signatures, and schemas of its torch ops."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel_builder.errors import CheckError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/|(\"(?:[^\"\\\n]|\\.)*\")", re.DOTALL)
_LITERAL = r'(?:"(?:[^"\\\n]|\\.)*"|R"\((?:.*?)\)")'
# `m.def("name(Tensor x) -> Tensor", …)`, the string perhaps in pieces.
_DEFINITION = re.compile(rf"\bdef\s*\(\s*({_LITERAL}(?:\s*{_LITERAL})*)", re.DOTALL)
_CPP = (".cpp", ".cc", ".cxx", ".cu", ".h", ".hpp", ".cuh")
_INIT = "__init__.py"


@dataclass(frozen=True, kw_only=True, slots=True)
class PublicApi:
    """What callers can rely on.

    Attributes:
        python: Dotted public name → its signature, ``""`` for what is no function.
        ops: Schemas of torch ops, sorted.
    """

    python: Mapping[str, str] = field(default_factory=dict)
    ops: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The API as plain data."""
        return {"python": dict(self.python), "ops": list(self.ops)}

    def lines(self) -> list[str]:
        """One line per promise."""
        return [*(f"{name}{signature}" for name, signature in self.python.items()), *(f"op {op}" for op in self.ops)]


def public_api(files: Mapping[str, bytes], sources: Mapping[str, bytes]) -> PublicApi:
    """Read the API of a variant.

    Args:
        files: Path inside the variant → content; its Python files are read.
        sources: Name → content of the kernel's sources; the C++ ones define ops.

    Raises:
        CheckError: A Python file cannot be parsed.
    """
    modules = {name: _parse(name, data) for name, data in files.items() if name.endswith(".py")}
    ops = {op for name, data in sources.items() if name.endswith(_CPP) for op in _ops(data.decode("utf-8", "replace"))}
    return PublicApi(python=dict(sorted(_Package(modules).names(_INIT, ""))), ops=tuple(sorted(ops)))


def differences(old: PublicApi, new: PublicApi) -> list[str]:
    """Lines that say what went (``-``) and what came (``+``); empty when the APIs are the same."""
    before, after = old.lines(), new.lines()
    gone = [f"- {line}" for line in before if line not in after]
    return gone + [f"+ {line}" for line in after if line not in before]


def _ops(text: str) -> Iterator[str]:
    """Schemas, or bare names where torch infers the schema."""
    plain = _COMMENT.sub(lambda found: found[1] or " ", text)
    for found in _DEFINITION.finditer(plain):
        pieces = re.findall(_LITERAL, found[1], re.DOTALL)
        schema = "".join(piece[3:-2] if piece.startswith("R") else piece[1:-1] for piece in pieces)
        yield re.sub(r"\s+", " ", schema).strip()


def _parse(name: str, data: bytes) -> ast.Module:
    try:
        return ast.parse(data, filename=name)
    except (SyntaxError, ValueError) as error:
        raise CheckError(f"{name} cannot be parsed: {error}.", where=name) from error


class _Package:
    """Follows names through the modules of a package."""

    def __init__(self, modules: Mapping[str, ast.Module]) -> None:
        self._modules = modules

    def names(self, module: str, prefix: str) -> Iterator[tuple[str, str]]:
        """Public names of a module with their signatures, those of its submodules and classes among them."""
        tree = self._modules.get(module)
        if tree is None:
            return
        definitions = _definitions(tree)
        for name in _all(tree) or [name for name in definitions if not name.startswith("_")]:
            yield from self._describe(name, module, prefix, definitions.get(name))

    def _describe(self, name: str, module: str, prefix: str, node: ast.AST | None) -> Iterator[tuple[str, str]]:
        public = f"{prefix}{name}"
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield public, _signature(node.args)
        elif isinstance(node, ast.ClassDef):
            yield public, ""
            for method in node.body:
                own = isinstance(method, (ast.FunctionDef, ast.AsyncFunctionDef))
                if own and (method.name == "__init__" or not method.name.startswith("_")):  # type: ignore[attr-defined]
                    yield f"{public}.{method.name}", _signature(method.args)  # type: ignore[attr-defined]
        elif isinstance(node, ast.ImportFrom) and node.level:
            yield from self._imported(name, module, prefix, node)
        else:
            yield public, ""

    def _imported(self, name: str, module: str, prefix: str, node: ast.ImportFrom) -> Iterator[tuple[str, str]]:
        original = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), name)
        folder = module.split("/")[:-1]
        folder = folder[: len(folder) - (node.level - 1)]
        path = [*folder, *(node.module.split(".") if node.module else [])]
        for candidate in ("/".join([*path, f"{original}.py"]), "/".join([*path, original, _INIT])):
            if candidate in self._modules:
                yield f"{prefix}{name}", ""
                yield from self.names(candidate, f"{prefix}{name}.")
                return
        for source in ("/".join(path) + ".py", "/".join([*path, _INIT])):
            if source in self._modules and source != module:
                definition = _definitions(self._modules[source]).get(original)
                for found, signature in self._describe(original, source, prefix, definition):
                    yield f"{prefix}{name}{found.removeprefix(f'{prefix}{original}')}", signature
                return
        yield f"{prefix}{name}", ""


def _definitions(tree: ast.Module) -> dict[str, ast.AST]:
    """Top-level name → what defines it, the last definition winning as at run time."""
    found: dict[str, ast.AST] = {}
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom):
            found.update((alias.asname or alias.name, node) for alias in node.names if node.level)
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found.update((target.id, node) for target in targets if isinstance(target, ast.Name))
    return found


def _all(tree: ast.Module) -> list[str]:
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(getattr(target, "id", "") == "__all__" for target in node.targets):
            return _texts(getattr(node.value, "elts", ()))
    return []


def _texts(nodes: Iterable[ast.expr]) -> list[str]:
    return [node.value for node in nodes if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def _signature(arguments: ast.arguments) -> str:
    """Parameters and defaults, without annotations: those bind no caller."""
    for argument in ast.walk(arguments):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return f"({ast.unparse(arguments)})"
