"""The public API of a packaged kernel, read without importing it: Python signatures, and schemas of its torch ops."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel_builder.errors import CheckError
from kernel_builder.publish.op_schemas import schemas_in_library, schemas_in_sources
from kernel_builder.publish.python_api import PythonPackage

if TYPE_CHECKING:
    from collections.abc import Mapping

# Changes whenever the same files would be described in another way, so that two descriptions are comparable.
_RULES = 1


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
        return {"rules": _RULES, "python": dict(self.python), "ops": list(self.ops)}

    @classmethod
    def from_json(cls, data: object) -> PublicApi | None:
        """Inverse of ``to_json``; None for anything else, and for what was read by other rules than today's."""
        if not isinstance(data, dict) or data.get("rules") != _RULES:
            return None
        python, ops = data.get("python"), data.get("ops")
        if not isinstance(python, dict) or not isinstance(ops, list):
            return None
        if not all(isinstance(text, str) for text in (*python, *python.values(), *ops)):
            return None
        return cls(python=python, ops=tuple(ops))

    def lines(self) -> list[str]:
        """One line per promise."""
        return [*(f"{name}{signature}" for name, signature in self.python.items()), *(f"op {op}" for op in self.ops)]


def public_api(files: Mapping[str, bytes], sources: Mapping[str, bytes]) -> PublicApi:
    """Read the API of a variant.

    Args:
        files: Path inside the variant → content; its Python files are read.
        sources: Name → content of the kernel's sources, whose C++ files define ops, those of every backend. Without
            any, the ops are those whose schemas the variant's libraries show.

    Raises:
        CheckError: A Python file cannot be parsed.
    """
    modules = {name: _parse(name, data) for name, data in files.items() if name.endswith(".py")}
    libraries = [data for name, data in files.items() if name.endswith(".so")]
    ops = schemas_in_sources(sources) if sources else frozenset().union(*map(schemas_in_library, libraries))
    return PublicApi(python=dict(sorted(PythonPackage(modules).names().items())), ops=tuple(sorted(ops)))


def differences(old: PublicApi, new: PublicApi) -> list[str]:
    """Lines that say what went (``-``) and what came (``+``); empty when the APIs are the same."""
    before, after = old.lines(), new.lines()
    gone = [f"- {line}" for line in before if line not in after]
    return gone + [f"+ {line}" for line in after if line not in before]


def where_both_show(old: PublicApi, new: PublicApi) -> tuple[PublicApi, PublicApi]:
    """The APIs with the ops that both name: libraries do not show all of theirs."""
    both = set(map(_op_name, old.ops)) & set(map(_op_name, new.ops))
    kept = (tuple(op for op in api.ops if _op_name(op) in both) for api in (old, new))
    return PublicApi(python=old.python, ops=next(kept)), PublicApi(python=new.python, ops=next(kept))


def _op_name(op: str) -> str:
    return op.partition("(")[0].strip()


def _parse(name: str, data: bytes) -> ast.Module:
    try:
        return ast.parse(data, filename=name)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise CheckError(f"{name} cannot be parsed: {error}.", where=name) from error
