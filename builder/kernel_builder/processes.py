"""The builder's only door to other programs. Argument lists, never shell strings."""

from __future__ import annotations

import os
import shutil
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    """A finished program: its exit status (negative = killed by that signal) and its output."""

    status: int
    stdout: str
    stderr: str


def find_program(name: str, path: str) -> str | None:
    """Absolute path of ``name`` on ``path``; a name with a slash is taken as it is."""
    return shutil.which(name, path=path)


def run(
    argv: Sequence[str],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float | None = None,
) -> Completed:
    """Run a program to its end. ``env`` is added to the inherited environment.

    Raises:
        OSError: The program cannot be started.
        subprocess.TimeoutExpired: It ran longer than ``timeout`` seconds and was killed.
    """
    done = subprocess.run(
        list(argv),
        cwd=cwd,
        env=None if env is None else {**os.environ, **env},
        capture_output=True,
        text=True,
        errors="replace",
        timeout=timeout,
        check=False,
    )
    return Completed(status=done.returncode, stdout=done.stdout, stderr=done.stderr)


def stream(
    argv: Sequence[str],
    on_line: Callable[[str], None],
    *,
    cwd: Path | None = None,
    env: Mapping[str, str] | None = None,
) -> int:
    """Run a program and hand over each line of its merged output as it comes; returns the exit status.

    If ``on_line`` raises, or the user interrupts, the program is terminated and waited for.
    """
    with subprocess.Popen(
        list(argv),
        cwd=cwd,
        env=None if env is None else {**os.environ, **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                on_line(line.rstrip("\n"))
        except BaseException:
            process.terminate()
            process.wait()
            raise
        return process.wait()
