"""Finds the machine's C++ compiler and says which one it is."""

from __future__ import annotations

import re
import shlex
import subprocess
from typing import TYPE_CHECKING

from kernel_builder.errors import ToolchainError
from kernel_builder.processes import find_program, run
from kernel_builder.toolchain.model import HostCompiler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel_builder.settings import Settings

OLDEST = (9, 0, 0)
_TARGET = "x86_64"
_INSTALL = "install g++ (Debian, Ubuntu: apt install g++; Fedora, RHEL: dnf install gcc-c++), or set CXX"


def find_host_compiler(settings: Settings) -> HostCompiler:
    """The C++ compiler of CXX, else ``c++``, else ``g++``, as a command in shell syntax with absolute paths.

    Only GCC is taken: the libraries that hold the floor are made for its C++ run time and tested with it.

    Raises:
        ToolchainError: There is none, it is not GCC 9 or newer, or it builds for another machine.
    """
    if settings.cxx:
        return examine_compiler(_command(settings.cxx, settings.path))
    problem = ToolchainError("No C++ compiler was found on PATH.", where="PATH: c++, g++", hint=_INSTALL)
    for name in ("c++", "g++"):
        program = find_program(name, settings.path)
        if program is None:
            continue
        try:
            return examine_compiler([program])
        except ToolchainError as error:
            problem = error
    raise problem


def _command(value: str, path: str) -> list[str]:
    """Split ``ccache g++`` and resolve each leading program; options stay as they are."""
    try:
        words = shlex.split(value)
    except ValueError as error:
        raise ToolchainError(f"CXX={value!r} cannot be split into words: {error}.", where="CXX") from error
    resolved = []
    for place, word in enumerate(words):
        program = None if word.startswith("-") else find_program(word, path)
        if place == 0 and program is None:
            raise ToolchainError(f"CXX names {word!r}, which is not on PATH.", where="CXX", hint=_INSTALL)
        resolved.append(program or word)
    return resolved


def examine_compiler(command: Sequence[str]) -> HostCompiler:
    """What a compiler says of itself, called by ``command``.

    Raises:
        ToolchainError: It is not GCC 9 or newer, or it builds for another machine.
    """
    about = _ask(command, "--version")
    banner = about.splitlines()[0].strip()
    if "clang" in banner.lower() or "Free Software Foundation" not in about:
        raise ToolchainError(f"The C++ compiler is not GCC: {banner}.", where=command[0], hint=_INSTALL)
    version = _numbers(_ask(command, "-dumpfullversion", "-dumpversion"))
    machine = _ask(command, "-dumpmachine").strip()
    if version < OLDEST:
        raise ToolchainError(
            f"GCC {'.'.join(map(str, version))} is too old: C++17 as kernels use it needs GCC 9 or newer.",
            where=command[0],
            hint=_INSTALL,
        )
    if not machine.startswith(f"{_TARGET}-") or "linux" not in machine:
        raise ToolchainError(
            f"The C++ compiler builds for {machine}; only x86_64 Linux is supported so far.", where=command[0]
        )
    # The first word of the banner is the name the compiler was called by, which says nothing about the compiler.
    options = [word for word in command[1:] if word.startswith("-")]
    identity = " ".join(["gcc", banner.partition(" ")[2], machine, *options])
    return HostCompiler(cxx=shlex.join(command), version=version, identity=identity)


def _ask(command: Sequence[str], *options: str) -> str:
    try:
        done = run([*command, *options], timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"The C++ compiler cannot be run: {error}.", where=command[0], hint=_INSTALL) from error
    if done.status != 0 or not done.stdout.strip():
        raise ToolchainError(
            f"The C++ compiler does not answer {options[0]}.",
            where=command[0],
            detail=done.stderr.strip(),
            hint=_INSTALL,
        )
    return done.stdout


def _numbers(text: str) -> tuple[int, int, int]:
    match = re.match(r"(\d+)(?:\.(\d+))?(?:\.(\d+))?", text.strip())
    if not match:
        raise ToolchainError(f"The C++ compiler's version cannot be read: {text.strip()!r}.", hint=_INSTALL)
    major, minor, patch = (int(number or 0) for number in match.groups())
    return major, minor, patch
