"""A unit as plain data: what another machine needs to make a unit of the same key from it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_builder.compile.sources import Sources
from kernel_builder.compile.units import Unit
from kernel_builder.errors import CompileError
from kernel_builder.resources import templates

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.compile.sources import SourceFile

# How a worker finds what a placeholder stands for: its host compiler, its interpreter, files that travel with the
# order, or a folder of its store that the lock names.
COMPILER, PYTHON, SOURCES, LOCKED = "host compiler", "python", "sources", "locked"
_COMPILERS = {"cxx": "command", "ccbin": "program"}  # of the host compiler; a program is run by nvcc
_PROJECT = ("kernel", "common")
_PLAIN = ("kind", "label", "output", "template", "memory", "key")


def order_of(unit: Unit, store: Path, version: str) -> dict[str, Any] | None:
    """The unit as JSON-able data; None when only this machine has what it needs.

    Args:
        unit: Must have no inputs.
        store: The store that toolkits and SDKs lie in.
        version: Of this program; only workers of the same version carry the order out.
    """
    places = {name: _place(name, path, unit, store) for name, path in unit.places.items()}
    files = {name: {"sha256": file.sha256, "at": _at(file, unit.places)} for name, file in unit.files.items()}
    own = [name for name, file in files.items() if file["at"] is None]
    if None in places.values() or own != [_template_file(unit.template)] * bool(unit.template):
        return None
    return {
        "version": version,
        **{name: getattr(unit, name) for name in _PLAIN},
        "argv": list(unit.argv),
        "tools": dict(unit.tools),
        "context": dict(unit.context),
        "places": places,
        "files": files,
    }


def content_of(unit: Unit) -> dict[str, bytes]:
    """Hex SHA-256 → bytes of the files that travel with the unit's order.

    Raises:
        CompileError: One of them is not what it was when the unit was made.
    """
    content = {}
    for name, file in unit.files.items():
        try:
            data = file.path.read_bytes()
        except OSError as error:
            raise CompileError(f"A source cannot be read: {error.strerror}.", where=str(file.path)) from error
        if not file.untouched():
            raise CompileError(f"{name} was changed while it was compiled; run the build again.", where=unit.label)
        if name != _template_file(unit.template):
            content[file.sha256] = data
    return content


def unpack(order: Mapping[str, Any], content: Mapping[str, bytes], folder: Path) -> None:
    """Write the files of an order below ``folder``.

    Raises:
        CompileError: A name leaves the folder, or a file is missing.
    """
    for name, file in order["files"].items():
        if file["at"] is None:
            continue
        target = folder.joinpath(*file["at"])
        if ".." in target.parts or not target.is_relative_to(folder) or file["sha256"] not in content:
            raise CompileError(f"The order does not hold {name}.", where=order["label"])
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content[file["sha256"]])


def unit_of(order: Mapping[str, Any], places: Mapping[str, str], folder: Path) -> Unit:
    """The unit, with ``places`` of this machine and the files that were unpacked into ``folder``.

    Raises:
        CompileError: A file or the key is not the one that was ordered.
    """
    template, sources = order["template"], Sources()
    if Path(template).name != template or Path(order["output"]).name != order["output"]:
        raise CompileError("The order names files outside its folder.", where=order["label"])
    own = templates() / "build" / template
    unit = Unit(
        kind=order["kind"],
        label=order["label"],
        output=order["output"],
        argv=tuple(order["argv"]),
        places=places,
        tools=order["tools"],
        files={
            name: sources.file(own if file["at"] is None else folder.joinpath(*file["at"]))
            for name, file in order["files"].items()
        },
        template=template,
        context=order["context"],
        memory=order["memory"],
    )
    if unit.key != order["key"]:
        differing = [name for name, file in order["files"].items() if unit.files[name].sha256 != file["sha256"]]
        raise CompileError(f"{', '.join(differing) or 'What the step does'} is not what was ordered.", where=unit.label)
    return unit


def _place(name: str, path: str, unit: Unit, store: Path) -> dict[str, str] | None:
    if name in _COMPILERS:
        return {"is": COMPILER, "as": _COMPILERS[name]}
    if path == sys.executable:
        return {"is": PYTHON}
    if any(file.path == Path(path) for file in unit.files.values()):
        return {"is": SOURCES, "path": f"{name}/{Path(path).name}"}
    if name in _PROJECT or any(file.path.is_relative_to(path) for file in unit.files.values()):
        return {"is": SOURCES, "path": name}
    if Path(path).is_relative_to(store):
        return {"is": LOCKED, "path": Path(path).relative_to(store).as_posix()}
    return None


def _at(file: SourceFile, places: Mapping[str, str]) -> list[str] | None:
    """Place and path below it, of the innermost place that has the file."""
    for name, path in sorted(places.items(), key=lambda place: len(Path(place[1]).parts), reverse=True):
        if file.path.is_relative_to(path):
            below = file.path.relative_to(path).as_posix()
            return [name, file.path.name if below == "." else below]
    return None


def _template_file(template: str) -> str:
    return f"template {template}"
