"""Worker that compiles one device source with NVRTC; run by file path with a bare interpreter.

It sees the kernel, the common code and the toolkit through links with fixed names in an empty folder, so that no path
of this machine can reach the result. Standard library only: its start-up time is paid once per unit.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import re
import sys
import tempfile
from pathlib import Path


class Nvrtc:
    """The few calls that turn a source into a cubin or PTX."""

    def __init__(self, library: str, builtins: str) -> None:
        # NVRTC looks its built-in headers up by name: whoever is loaded first is found.
        ctypes.CDLL(builtins, mode=ctypes.RTLD_GLOBAL)
        self._library = ctypes.CDLL(library)
        self._library.nvrtcGetErrorString.restype = ctypes.c_char_p

    def compile(self, name: str, options: list[str], *, ptx: bool) -> tuple[bytes | None, str]:
        """Code, or None on an error of the source; and the compiler's log.

        Args:
            name: Path of the source relative to the working folder, as messages and ``__FILE__`` show it.
            options: NVRTC options.
            ptx: Return PTX text instead of machine code.
        """
        program = ctypes.c_void_p()
        text = ctypes.c_char_p(Path(name).read_bytes())
        self._call("nvrtcCreateProgram", ctypes.byref(program), text, name.encode(), 0, None, None)
        raw = [option.encode() for option in options]
        status = self._library.nvrtcCompileProgram(program, len(raw), (ctypes.c_char_p * len(raw))(*raw))
        log = self._get("ProgramLog", program).rstrip(b"\0\n").decode(errors="replace")
        if status != 0:
            return None, log or self._message(status)
        code = self._get("PTX" if ptx else "CUBIN", program)
        return code.rstrip(b"\0") if ptx else code, log

    def _get(self, what: str, program: ctypes.c_void_p) -> bytes:
        size = ctypes.c_size_t()
        self._call(f"nvrtcGet{what}Size", program, ctypes.byref(size))
        buffer = ctypes.create_string_buffer(size.value)
        self._call(f"nvrtcGet{what}", program, buffer)
        return buffer.raw

    def _call(self, function: str, *arguments: object) -> None:
        status = getattr(self._library, function)(*arguments)
        if status != 0:
            raise SystemExit(f"error: {function}: {self._message(status)}")

    def _message(self, status: int) -> str:
        text: bytes = self._library.nvrtcGetErrorString(status)
        return text.decode()


def main(argv: list[str]) -> int:
    """Compile as the command line says; returns the exit status."""
    parser = argparse.ArgumentParser(prog="device")
    for name in ("nvrtc", "builtins", "source", "output"):
        parser.add_argument(f"--{name}", required=True)
    parser.add_argument("--view", action="append", default=[])
    parser.add_argument("options", nargs="*")
    asked = parser.parse_args(argv)
    views = dict(view.split("=", 1) for view in asked.view)
    output = Path(asked.output).absolute()
    compiler = Nvrtc(asked.nvrtc, asked.builtins)
    with tempfile.TemporaryDirectory() as folder:
        for name, target in views.items():
            Path(folder, name).symlink_to(target)
        os.chdir(folder)
        ptx = output.suffix == ".ptx"
        code, log = compiler.compile(asked.source, asked.options, ptx=ptx)
        os.chdir(output.parent)
    if log:
        sys.stderr.write(real_paths(log, views) + "\n")
    if code is None:
        return 1
    output.write_bytes(code)
    return 0


def real_paths(log: str, views: dict[str, str]) -> str:
    """The compiler's log with the folders that the links stand for."""
    names = "|".join(map(re.escape, views))
    return re.sub(rf'(?<![^\s"(])({names})/(?=\S)', lambda found: f"{views[found[1]]}/", log)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
