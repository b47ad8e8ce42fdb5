"""The only place of the builder that reads the environment."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping


VARIABLES = {
    "KERNEL_BUILDER_CACHE": "folder of toolkits, SDKs and compiled units; default `~/.cache/kernel-builder`",
    "XDG_CACHE_HOME": "used instead of `~/.cache`",
    "MAX_JOBS": "most compile steps at once; default: bounded by cores and 80 % of the memory",
    "CXX": "host C++ compiler, GCC 9 or newer; default: `c++`, then `g++` on PATH",
    "TORCH_CUDA_ARCH_LIST": "narrows the architectures that kernels ask for, never adds: `9.0a;12.0+PTX`, `Hopper`",
    "SOURCE_DATE_EPOCH": "time stamp inside source archives; default 0",
    "NO_COLOR": "no colours",
    "KERNEL_BUILDER_DEBUG": "`1`: tracebacks instead of one-sentence errors",
    "PATH": "where programs are looked for; no CUDA program is",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the user's environment says; see the table in the README.

    Attributes:
        store: Folder of toolkits, SDKs and compiled units (KERNEL_BUILDER_CACHE).
        jobs: Upper bound on parallel compile steps (MAX_JOBS), None = bounded by memory.
        cxx: Host C++ compiler (CXX), None = ``c++``/``g++`` on PATH.
        cuda_archs: Raw TORCH_CUDA_ARCH_LIST, intersected with what a kernel asks for.
        source_date_epoch: Time stamp of generated archives (SOURCE_DATE_EPOCH), seconds.
        color: False when NO_COLOR is set.
        debug: Tracebacks instead of one-sentence errors (KERNEL_BUILDER_DEBUG=1).
        path: PATH, for finding programs.
    """

    store: Path
    jobs: int | None = None
    cxx: str | None = None
    cuda_archs: str | None = None
    source_date_epoch: int = 0
    color: bool = True
    debug: bool = False
    path: str = os.defpath

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read the environment once.

        Raises:
            UsageError: A variable holds no number where one is needed.
        """
        env = os.environ if environ is None else environ
        store = env.get("KERNEL_BUILDER_CACHE") or Path(env.get("XDG_CACHE_HOME") or "~/.cache") / "kernel-builder"
        return cls(
            store=Path(store).expanduser().absolute(),
            jobs=_integer(env, "MAX_JOBS", least=1),
            cxx=env.get("CXX") or None,
            cuda_archs=env.get("TORCH_CUDA_ARCH_LIST") or None,
            source_date_epoch=_integer(env, "SOURCE_DATE_EPOCH", least=0) or 0,
            color=not env.get("NO_COLOR"),
            debug=env.get("KERNEL_BUILDER_DEBUG") == "1",
            path=env.get("PATH", os.defpath),
        )


def _integer(env: Mapping[str, str], name: str, *, least: int) -> int | None:
    text = env.get(name, "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < least:
        raise UsageError(
            f"{name} must be a whole number of at least {least}, not {text!r}.", where=f"environment: {name}"
        )
    return int(text)
