"""Which host compilers a CUDA toolkit works with, as its own header says, and one of this machine that does."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from itertools import takewhile
from typing import TYPE_CHECKING

from kernel_builder.errors import ToolchainError
from kernel_builder.processes import find_program
from kernel_builder.toolchain.host import OLDEST, examine_compiler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kernel_builder.reporting import Reporter
    from kernel_builder.toolchain.model import HostCompiler

_NEWEST = re.compile(r"#\s*if\s+__GNUC__\s*>\s*(?P<major>\d+)\s+#\s*error", re.MULTILINE)
_HEADER = "crt/host_config.h"


@dataclass(frozen=True, kw_only=True, slots=True)
class HostRange:
    """Major versions of GCC that nvcc ``release`` compiles with; ``newest`` is None when its header sets no bound."""

    release: str
    newest: int | None

    def __contains__(self, major: int) -> bool:
        return major >= OLDEST[0] and (self.newest is None or major <= self.newest)

    def __str__(self) -> str:
        return f"GCC {OLDEST[0]} or newer" if self.newest is None else f"GCC {OLDEST[0]} to {self.newest}"


def read_host_range(release: str, header: Path) -> HostRange:
    """The range that a toolkit's ``crt/host_config.h`` enforces.

    Raises:
        ToolchainError: The header cannot be read.
    """
    try:
        match = _NEWEST.search(header.read_text(encoding="utf-8", errors="replace"))
    except OSError as error:
        raise ToolchainError(
            f"The headers of nvcc {release} are not complete: {error.strerror}.", where=str(header)
        ) from error
    return HostRange(release=release, newest=int(match["major"]) if match else None)


def find_header(folders: tuple[Path, ...]) -> Path:
    """``crt/host_config.h`` in the first folder that has it; in the first folder when none has."""
    return next((folder / _HEADER for folder in folders if (folder / _HEADER).is_file()), folders[0] / _HEADER)


def choose_host(supported: HostRange, host: HostCompiler, path: str, reporter: Reporter) -> HostCompiler:
    """The host compiler itself when nvcc takes it, else the newest ``g++-N`` on ``path`` that it takes.

    The result's command has no launcher such as ccache.

    Raises:
        ToolchainError: None of them is in the range.
    """
    own = without_launcher(host)
    if own.version[0] in supported:
        return own
    for command in _others(supported, path):
        try:
            other = examine_compiler([command])
        except ToolchainError:
            continue
        if other.version[0] in supported:
            reporter.note(
                f"nvcc {supported.release} takes {supported}: it runs {other.cxx}, not {own.cxx} "
                f"({'.'.join(map(str, own.version))})"
            )
            return other
    newest = supported.newest or OLDEST[0]
    raise ToolchainError(
        f"nvcc {supported.release} works with {supported}, and {own.cxx} is GCC {'.'.join(map(str, own.version))}.",
        where=f"PATH: g++-{OLDEST[0]} … g++-{newest}",
        hint=f"install one (Debian, Ubuntu: apt install g++-{newest}; Fedora, RHEL: dnf install gcc-toolset-{newest}), "
        "or set CXX to one",
    )


def _others(supported: HostRange, path: str) -> Iterator[str]:
    newest = supported.newest or OLDEST[0]
    names = [
        f"{prefix}g++-{major}" for major in range(newest, OLDEST[0] - 1, -1) for prefix in ("", "x86_64-linux-gnu-")
    ]
    for name in (*names, "g++", "c++"):
        program = find_program(name, path)
        if program:
            yield program


def without_launcher(host: HostCompiler) -> HostCompiler:
    """The compiler that ``ccache g++`` runs, with its options: nvcc wants the compiler's own path."""
    words = shlex.split(host.cxx)
    programs = len(list(takewhile(lambda word: not word.startswith("-"), words)))
    return examine_compiler(words[programs - 1 :]) if programs > 1 else host
