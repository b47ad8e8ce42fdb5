"""Public names of a Python package with their signatures, by reading it: nothing of it runs."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

INIT = "__init__.py"
# Consumers take it off the module by this name, whether or not __all__ has it.
_LAYERS = "layers"
_SPECIAL = ("__init__", "__new__", "__call__")
_Function = (ast.FunctionDef, ast.AsyncFunctionDef)
_Definitions = dict[str, ast.AST]


class PythonPackage:
    """Follows names through the modules of a package: imports, star imports, branches, base classes.

    Args:
        modules: Path inside the package → its syntax tree.
    """

    def __init__(self, modules: Mapping[str, ast.Module]) -> None:
        self._modules = modules
        self._scopes: dict[str, _Definitions] = {}

    def names(self, module: str = INIT, prefix: str = "", within: frozenset[str] = frozenset()) -> dict[str, str]:
        """Dotted public name → signature, ``""`` for what cannot be called; of submodules and classes too."""
        if module not in self._modules or module in within:
            return {}
        found: dict[str, str] = {}
        for name in self._public(module):
            found |= self._describe(name, module, f"{prefix}{name}", within | {module})
        return found

    def _public(self, module: str) -> list[str]:
        listed = _all(self._modules[module])
        if listed is None:
            # A plain module imports for its own use; a package's __init__ imports to offer.
            offers = module.endswith(INIT)
            scope = self._names_of(module)
            listed = [
                n for n, node in scope.items() if n[0] != "_" and (offers or not isinstance(node, ast.ImportFrom))
            ]
        layers = module == INIT and _LAYERS not in listed and self._file([_LAYERS]) is not None
        return [*listed, *([_LAYERS] if layers else [])]

    def _describe(self, name: str, module: str, public: str, within: frozenset[str]) -> dict[str, str]:
        home, node = self._resolve(name, module, frozenset())
        if node is None and home:
            return {public: "", **self.names(home, f"{public}.", within)}
        if isinstance(node, _Function):
            return {public: _signature(node)}
        if isinstance(node, ast.ClassDef):
            members = self._members(node, home, frozenset())
            return {public: "", **{f"{public}.{member}": members[member] for member in members}}
        return {public: ""}

    def _resolve(self, name: str, module: str, seen: frozenset[tuple[str, str]]) -> tuple[str, ast.AST | None]:
        """The module that defines a name and its definition; a submodule has none; ``""`` where the trace ends."""
        node = self._names_of(module).get(name)
        if not isinstance(node, ast.ImportFrom):
            submodule = None if node is not None or module != INIT else self._file([name])
            return (submodule, None) if submodule else (module if node else "", node)
        original = next((alias.name for alias in node.names if (alias.asname or alias.name) == name), name)
        path = _target(module, node)
        submodule, source = self._file([*path, original]), self._file(path)
        followed = source is not None and source != module and (module, name) not in seen
        if source is not None and followed and (submodule is None or original in self._names_of(source)):
            return self._resolve(original, source, seen | {(module, name)})
        return (submodule or "", None)

    def _members(self, node: ast.ClassDef, home: str, seen: frozenset[str]) -> dict[str, str]:
        """Public methods and attributes, inherited ones of the package's own classes among them."""
        found: dict[str, str] = {}
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id != node.name and f"{home}:{base.id}" not in seen:
                where, above = self._resolve(base.id, home, frozenset())
                if isinstance(above, ast.ClassDef):
                    found = {**self._members(above, where, seen | {f"{home}:{base.id}"}), **found}
        record = any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)
        for name, member in _definitions(node.body).items():
            if name[0] == "_" and name not in _SPECIAL:
                continue
            found[name] = _signature(member) if isinstance(member, _Function) else _field(member) if record else ""
        return found

    def _names_of(self, module: str) -> _Definitions:
        if module not in self._scopes:
            self._scopes[module] = self._scope(module, frozenset())
        return self._scopes[module]

    def _scope(self, module: str, seen: frozenset[str]) -> _Definitions:
        """What a module's names are bound to, star imports spelled out."""
        found: _Definitions = {}
        for name, node in _definitions(self._modules[module].body).items():
            source = self._file(_target(module, node)) if isinstance(node, ast.ImportFrom) else None
            if name[0] != "*":
                found[name] = node
            elif source is not None and source not in seen | {module} and isinstance(node, ast.ImportFrom):
                offered = self._scope(source, seen | {module})
                for star in _all(self._modules[source]) or [n for n in offered if n[0] != "_"]:
                    found[star] = ast.ImportFrom(node.module, [ast.alias(star)], node.level)
        return found

    def _file(self, path: Sequence[str]) -> str | None:
        names = ("/".join(path) + ".py", "/".join([*path, INIT]))
        return next((name for name in names if name in self._modules), None)


def _target(module: str, node: ast.ImportFrom) -> list[str]:
    """Folders and module that a relative import means."""
    folder = module.split("/")[:-1]
    return [*folder[: len(folder) - (node.level - 1)], *(node.module.split(".") if node.module else [])]


def _definitions(body: Iterable[ast.stmt]) -> _Definitions:
    """Name → what binds it. A later statement wins, as at run time; of branches, the first that binds the name."""
    found: _Definitions = {}
    for node in body:
        if isinstance(node, (*_Function, ast.ClassDef)):
            found[node.name] = node
        elif isinstance(node, ast.ImportFrom) and node.level:
            stars = {f"*{node.lineno}": node for alias in node.names if alias.name == "*"}
            found |= stars or {alias.asname or alias.name: node for alias in node.names}
        elif isinstance(node, (ast.Assign, ast.AnnAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            found |= {target.id: node for target in targets if isinstance(target, ast.Name)}
        elif isinstance(node, (ast.If, ast.Try, ast.With)):
            branches: _Definitions = {}
            for branch in _branches(node):
                branches = {**_definitions(branch), **branches}
            found |= branches
    return found


def _branches(node: ast.If | ast.Try | ast.With) -> Iterator[list[ast.stmt]]:
    yield node.body
    if isinstance(node, ast.Try):
        yield from (handler.body for handler in node.handlers)
        yield node.finalbody
    if not isinstance(node, ast.With):
        yield node.orelse


def _all(tree: ast.Module) -> list[str] | None:
    """``__all__``, grown or not, as far as it is spelled out; None without one."""
    found: list[str] | None = None
    for node in tree.body:
        if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if any(getattr(target, "id", "") == "__all__" for target in targets):
                more = _texts(node.value) if node.value is not None else []
                found = [*(found or []), *more] if isinstance(node, ast.AugAssign) else more
    return None if found is None else list(dict.fromkeys(found))


def _texts(value: ast.AST) -> list[str]:
    """Names that a list, or a sum of lists, spells out; some packages list the functions instead of their names."""
    names = [node.id for node in getattr(value, "elts", ()) if isinstance(node, ast.Name)]
    nodes = [node for node in ast.walk(value) if isinstance(node, ast.Constant)]
    return names + [node.value for node in nodes if isinstance(node.value, str)]


def _signature(node: ast.AST) -> str:
    """Parameters and defaults, without annotations: those bind no caller. A property has none, it is read."""
    if not isinstance(node, _Function) or any("property" in ast.unparse(d) for d in node.decorator_list):
        return ""
    for argument in ast.walk(node.args):
        if isinstance(argument, ast.arg):
            argument.annotation = None
    return f"({ast.unparse(node.args)})"


def _field(node: ast.AST) -> str:
    """The default of a dataclass's field, which is one of its constructor."""
    value = node.value if isinstance(node, ast.AnnAssign) else None
    return "" if value is None else f" = {ast.unparse(value)}"
