"""Whether an nvcc knows a flag, asked of the nvcc itself: flags come and go with its releases."""

from __future__ import annotations

import shlex
import subprocess
from typing import TYPE_CHECKING

from kernel_builder.errors import ToolchainError
from kernel_builder.processes import run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kernel_builder.toolchain.model import Nvcc


def unsupported_flags(nvcc: Nvcc, flags: Sequence[str]) -> tuple[str, ...]:
    """Those of ``flags`` that this nvcc refuses; a flag whose value is a word of its own is named with it.

    Raises:
        ToolchainError: The nvcc cannot be run.
    """
    if not flags or accepts(nvcc, *flags):
        return ()
    return tuple(" ".join(group) for group in _groups(flags) if not accepts(nvcc, *group))


def accepts(nvcc: Nvcc, *words: str) -> bool:
    """Whether this nvcc takes a flag (with its value, when that is a word of its own); nothing is compiled.

    Raises:
        ToolchainError: The nvcc cannot be run.
    """
    compiler, *options = shlex.split(nvcc.host)
    host = ["-ccbin", compiler, *(word for option in options for word in ("-Xcompiler", option))]
    try:
        done = run(
            [str(nvcc.nvcc), "--dryrun", *host, *words, "-x", "cu", "-c", "/dev/null", "-o", "/dev/null"], timeout=60
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"nvcc cannot be run: {error}.", where=str(nvcc.nvcc)) from error
    return done.status == 0


def _groups(flags: Sequence[str]) -> Iterator[list[str]]:
    """Flags with the words that follow them and begin with no dash."""
    group: list[str] = []
    for flag in flags:
        if flag.startswith("-") and group:
            yield group
            group = []
        group.append(flag)
    if group:
        yield group
