"""The only place of the builder that reads the environment."""

from __future__ import annotations

import os
import shutil
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
    "NVCC_THREADS": "architectures that one nvcc compiles at once, default 1; counts against cores and memory",
    "CUDA_HOME": "an installed CUDA toolkit, looked at with `--toolkit system` only",
    "CUDA_PATH": "like `CUDA_HOME`",
    "KERNEL_BUILDER_REDIST": "release manifests (`redistrib_<release>.json`, URLs or paths) for `--toolkit archive`",
    "CXX": "host C++ compiler, GCC 9 or newer; default: `c++`, then `g++` on PATH",
    "CMAKE_CXX_COMPILER_LAUNCHER": "starts compilers, as `ccache` does; default: `sccache` where it is on PATH",
    "TORCH_CUDA_ARCH_LIST": "narrows the architectures that kernels ask for, never adds: `9.0a;12.0+PTX`, `Hopper`",
    "SOURCE_DATE_EPOCH": "time stamp inside source archives; default 0",
    "NO_COLOR": "no colours",
    "KERNEL_BUILDER_DEBUG": "`1`: tracebacks instead of one-sentence errors",
    "PATH": "where programs are looked for; an nvcc only with `--toolkit system`",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the user's environment says; see the table in the README.

    Attributes:
        store: Folder of toolkits, SDKs and compiled units (KERNEL_BUILDER_CACHE).
        jobs: Upper bound on parallel compile steps (MAX_JOBS), None = bounded by memory.
        nvcc_threads: Architectures that one nvcc compiles at once (NVCC_THREADS).
        cxx: Host C++ compiler (CXX), None = ``c++``/``g++`` on PATH.
        launcher: Words that compilers are started with (CMAKE_CXX_COMPILER_LAUNCHER; default: sccache where there is
            one).
        cuda_archs: Raw TORCH_CUDA_ARCH_LIST, intersected with what a kernel asks for.
        cuda_home, cuda_path: Folders of installed CUDA toolkits (CUDA_HOME, CUDA_PATH).
        redist: Release manifests of redistributable archives (KERNEL_BUILDER_REDIST, separated by blanks), paths or
            URLs, which may end in ``#sha256=<hex>``.
        source_date_epoch: Time stamp of generated archives (SOURCE_DATE_EPOCH), seconds.
        color: False when NO_COLOR is set.
        debug: Tracebacks instead of one-sentence errors (KERNEL_BUILDER_DEBUG=1).
        path: PATH, for finding programs.
    """

    store: Path
    jobs: int | None = None
    nvcc_threads: int = 1
    cxx: str | None = None
    launcher: tuple[str, ...] = ()
    cuda_archs: str | None = None
    cuda_home: Path | None = None
    cuda_path: Path | None = None
    redist: tuple[str, ...] = ()
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
            nvcc_threads=_integer(env, "NVCC_THREADS", least=1) or 1,
            cxx=env.get("CXX") or None,
            launcher=_launcher(env),
            cuda_archs=env.get("TORCH_CUDA_ARCH_LIST") or None,
            cuda_home=_folder(env, "CUDA_HOME"),
            cuda_path=_folder(env, "CUDA_PATH"),
            redist=tuple(env.get("KERNEL_BUILDER_REDIST", "").split()),
            source_date_epoch=_integer(env, "SOURCE_DATE_EPOCH", least=0) or 0,
            color=not env.get("NO_COLOR"),
            debug=env.get("KERNEL_BUILDER_DEBUG") == "1",
            path=env.get("PATH", os.defpath),
        )


def _launcher(env: Mapping[str, str]) -> tuple[str, ...]:
    """CMake's list of words, or the compiler cache that is installed."""
    words = env.get("CMAKE_CXX_COMPILER_LAUNCHER")
    if words is not None:
        return tuple(word for word in words.split(";") if word)
    found = shutil.which("sccache", path=env.get("PATH", os.defpath))
    return (found,) if found else ()


def _folder(env: Mapping[str, str], name: str) -> Path | None:
    text = env.get(name, "").strip()
    return Path(text).expanduser().absolute() if text else None


def _integer(env: Mapping[str, str], name: str, *, least: int) -> int | None:
    text = env.get(name, "").strip()
    if not text:
        return None
    if not text.isdecimal() or int(text) < least:
        raise UsageError(
            f"{name} must be a whole number of at least {least}, not {text!r}.", where=f"environment: {name}"
        )
    return int(text)
