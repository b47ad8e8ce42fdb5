"""Worker that packs cubins and PTX into one fatbin with nvFatbin; run by file path with a bare interpreter.

Nothing is compressed: whoever reads the library finds each cubin as it was compiled, and no driver is too old for it.
"""

from __future__ import annotations

import argparse
import ctypes
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


class Fatbin:
    """One fatbin under construction."""

    def __init__(self, library: str) -> None:
        self._library = ctypes.CDLL(library)
        self._suffix = release_suffix(Path(library))
        self._handle = ctypes.c_void_p()
        options = (ctypes.c_char_p * 2)(b"-64", b"-compress=false")
        self._call("Create", ctypes.byref(self._handle), options, 2)

    def add(self, kind: str, code: bytes, arch: str, name: str) -> None:
        """Add a ``cubin`` or ``ptx`` for an arch such as ``90a``; ``name`` is what tools show."""
        # PTX is text: nvFatbin wants its closing zero counted.
        data = code + b"\0" if kind == "ptx" else code
        arguments = [self._handle, data, ctypes.c_size_t(len(data)), arch.encode(), name.encode()]
        if kind == "ptx":
            self._call("AddPTX", *arguments, None)
        else:
            self._call("AddCubin", *arguments)

    def bytes(self) -> bytes:
        """The packed fatbin."""
        size = ctypes.c_size_t()
        self._call("Size", self._handle, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call("Get", self._handle, buffer)
        return buffer.raw

    def _call(self, function: str, *arguments: object) -> None:
        status = self._function(function)(*arguments)
        if status != 0:
            raise SystemExit(f"error: nvFatbin{function} failed with status {status}")

    def _function(self, name: str) -> Callable[..., int]:
        for symbol in (f"nvFatbin{name}", f"__nvFatbin{name}{self._suffix}"):
            if hasattr(self._library, symbol):
                function: Callable[..., int] = getattr(self._library, symbol)
                return function
        raise SystemExit(f"error: nvFatbin{name} is not in this toolkit's library")


def release_suffix(library: Path) -> str:
    """``_12_8``: the library's functions carry its release, its file name does not."""
    found = re.search(rb"__nvFatbinCreate(_\d+_\d+)\0", library.read_bytes())
    return found[1].decode() if found else ""


def main(argv: list[str]) -> int:
    """Pack what the command line names; returns the exit status."""
    parser = argparse.ArgumentParser(prog="fatbin")
    for name in ("nvfatbin", "name", "output"):
        parser.add_argument(f"--{name}", required=True)
    for kind in ("cubin", "ptx"):
        parser.add_argument(f"--{kind}", action="append", default=[])
    asked = parser.parse_args(argv)
    fatbin = Fatbin(asked.nvfatbin)
    for kind in ("cubin", "ptx"):
        for entry in getattr(asked, kind):
            arch, path = entry.split(":", 1)
            fatbin.add(kind, Path(path).read_bytes(), arch, asked.name)
    Path(asked.output).write_bytes(fatbin.bytes())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
