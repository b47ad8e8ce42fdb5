"""A compile step as a value: what it reads, what it runs, and the key that names its result.

Arguments are written with placeholders (``@kernel@/csrc``), so that a key never depends on where folders lie;
``places`` says what they stand for on this machine.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.compile.sources import SourceFile

Kind = Literal["device", "fatbin", "images", "binding", "component", "nvcc", "support", "identity", "link"]

_FORMAT = "1"  # part of every key: raise it when the meaning of a unit changes
_PLACEHOLDER = re.compile(r"@(\w+)@")


@dataclass(frozen=True, kw_only=True, slots=True)
class Unit:
    """One compile step.

    Attributes:
        label: What people call it; the same from build to build, unique within a plan.
        output: Name of the one file it makes.
        argv: Command with placeholders: those of ``places``, ``@out@``, ``@source@`` (the generated source) and
            ``@in0@`` … (results of ``inputs``).
        places: Placeholder → path on this machine; not part of the key.
        tools: What compiles → its identity, e.g. ``host compiler`` → version line.
        files: Name → file, for every file of the kernel and of the common code that the step can read.
        inputs: Units whose results it reads.
        template: Template of its generated source, "" for none; ``context`` fills it.
        memory: Peak memory in GiB.
        key: Hex SHA-256 over all of the above but label, places and memory.
    """

    kind: Kind
    label: str
    output: str
    argv: tuple[str, ...]
    places: Mapping[str, str]
    tools: Mapping[str, str]
    files: Mapping[str, SourceFile]
    inputs: tuple[Unit, ...] = ()
    template: str = ""
    context: Mapping[str, Any] = field(default_factory=dict)
    memory: float = 0.25
    key: str = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "key", hashlib.sha256(json.dumps([_FORMAT, self.kind, self.facts()]).encode()).hexdigest()
        )

    def facts(self) -> dict[str, str]:
        """What the key is made of, by name; two of them tell why a unit runs again."""
        return {
            **{f"tool {name}": identity for name, identity in sorted(self.tools.items())},
            "output": self.output,
            "flags": "\n".join(self.argv),
            "generated source": json.dumps(self.context, sort_keys=True) if self.template else "",
            **{f"file {name}": file.sha256 for name, file in sorted(self.files.items())},
            **{f"unit {index} {unit.label}": unit.key for index, unit in enumerate(self.inputs)},
        }


def expand(argument: str, places: Mapping[str, str]) -> str:
    """Fill in the placeholders that ``places`` knows; anything else between two ``@`` stays."""
    return _PLACEHOLDER.sub(lambda match: places.get(match[1], match[0]), argument)


def closure(roots: tuple[Unit, ...]) -> tuple[Unit, ...]:
    """The units and all that they are made of, inputs first, each key once."""
    found: dict[str, Unit] = {}

    def visit(unit: Unit) -> None:
        if unit.key in found:
            return
        for upstream in unit.inputs:
            visit(upstream)
        found[unit.key] = unit

    for root in roots:
        visit(root)
    return tuple(found.values())
