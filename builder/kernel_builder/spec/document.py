"""Reads a TOML file of a kernel folder into plain data, or says in one sentence why not."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from kernel_builder.errors import SpecError
from kernel_builder.spec.paths import is_inside
from kernel_builder.toml import parse_toml

if TYPE_CHECKING:
    from pathlib import Path

SIZE_LIMIT = 1 << 20
_POSITION = re.compile(r"\(at line (\d+), column (\d+)\)")


def load(path: Path) -> dict[str, Any]:
    """Parse a TOML file.

    Raises:
        SpecError: It is missing, no regular file of its folder, larger than 1 MiB, not UTF-8, or not TOML.
    """
    try:
        if not path.is_file():
            raise SpecError(
                f"{path.name} does not exist.", where=str(path), hint="a kernel is a folder with a build.toml"
            )
        if not is_inside(path, path.parent):
            raise SpecError(f"{path.name} is a link that leaves the kernel folder.", where=str(path))
        with path.open("rb") as stream:
            data = stream.read(SIZE_LIMIT + 1)
    except OSError as error:
        raise SpecError(f"{path.name} cannot be read: {error.strerror}.", where=str(path)) from error
    if len(data) > SIZE_LIMIT:
        raise SpecError(f"{path.name} is larger than {SIZE_LIMIT} bytes.", where=str(path))
    return _parse(data, path)


def _parse(data: bytes, path: Path) -> dict[str, Any]:
    try:
        parsed = parse_toml(data.decode("utf-8"))
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise SpecError(f"{path.name} is not UTF-8.", where=f"{path}:{line}") from error
    except ValueError as error:
        position = _POSITION.search(str(error))
        where = f"{path}:{position[1]}:{position[2]}" if position else str(path)
        reason = _POSITION.sub("", str(error)).strip()
        raise SpecError(f"{path.name} is not valid TOML: {reason}.", where=where) from error
    except RecursionError as error:
        raise SpecError(f"{path.name} is nested too deeply.", where=str(path)) from error
    return parsed
