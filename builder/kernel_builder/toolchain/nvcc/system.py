"""CUDA toolkits that are installed on this machine; looked at only when they are asked for (``--toolkit system``)."""

from __future__ import annotations

import re
import shlex
import site
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.errors import ToolchainError
from kernel_builder.files import sha256_of, tree_digest
from kernel_builder.processes import run
from kernel_builder.toolchain.model import Nvcc
from kernel_builder.toolchain.nvcc.host_range import choose_host, find_header, read_host_range, without_launcher
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.model import HostCompiler

_BANNER = re.compile(r"release (?P<version>\d+\.\d+), V(?P<release>[\d.]+)")
_HERE = re.compile(r"^#\$ _HERE_=(?P<folder>.+)$", re.MULTILINE)
_LOCAL = Path("/usr/local")
# Where distributions that spread CUDA over /usr have its headers; compilers look there by themselves.
_USR_INCLUDE = Path("/usr/include")
_LIBRARIES = ("lib64", "lib", "targets/x86_64-linux/lib", "../x86_64-linux-gnu", "../../lib/x86_64-linux-gnu")
_PROGRAMS = ("nvcc", "cicc", "ptxas", "cudafe++", "fatbinary", "nvcc.profile")


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """An nvcc of this machine: ``found`` says how, ``problem`` why it is of no use, if it is."""

    path: Path
    found: str
    version: MajorMinor | None = None
    release: str = ""
    problem: str = ""

    def __str__(self) -> str:
        return f"{self.path} ({self.found}): {f'nvcc {self.release}' if self.version else self.problem}"


def find_candidates(settings: Settings) -> tuple[Candidate, ...]:
    """Every nvcc of CUDA_HOME, CUDA_PATH, PATH, ``/usr/local/cuda*`` and this Python's packages, in this order.

    One file is named once, however often it is found.
    """
    seen: dict[Path, Candidate] = {}
    for path, found in _places(settings):
        if path.resolve() not in seen and (path.is_file() or found.startswith("CUDA_")):
            seen[path.resolve()] = _examine(path, found)
    return tuple(seen.values())


def provide_system(version: MajorMinor, host: HostCompiler, settings: Settings, reporter: Reporter) -> Nvcc:
    """The first installed nvcc of this CUDA version.

    Raises:
        ToolchainError: There is none, with every nvcc that was found; or it is not complete.
    """
    candidate = find_system(version, settings)
    root = _root(candidate, host)
    include = _include(root)
    header = find_header(include or (_USR_INCLUDE,))
    chosen = choose_host(read_host_range(candidate.release, header), host, settings.path, reporter)
    return Nvcc(
        version=version,
        release=candidate.release,
        digest=_identity(candidate, root, include or (header.parent,)),
        root=root,
        nvcc=root / "bin/nvcc" if (root / "bin/nvcc").is_file() else candidate.path,
        include=include,
        cudart=_cudart(version, root),
        host=chosen.cxx,
        source="system",
        host_identity=chosen.identity,
        origin=f"{candidate.found}: {candidate.path}",
    )


def find_system(version: MajorMinor, settings: Settings) -> Candidate:
    """The first installed nvcc of this CUDA version.

    Raises:
        ToolchainError: There is none; every nvcc that was found is named with its path and version.
    """
    candidates = find_candidates(settings)
    for candidate in candidates:
        if candidate.version == version:
            return candidate
    raise ToolchainError(
        f"No installed nvcc is of CUDA {version}.",
        where=f"CUDA_HOME, CUDA_PATH, PATH, {_LOCAL}/cuda*, Python packages",
        detail="\n".join(map(str, candidates)) or "no nvcc was found",
        hint=f"install CUDA {version} and set CUDA_HOME to its folder, or leave out --toolkit system",
    )


def _places(settings: Settings) -> Iterator[tuple[Path, str]]:
    for name, folder in (("CUDA_HOME", settings.cuda_home), ("CUDA_PATH", settings.cuda_path)):
        if folder:
            yield folder / "bin/nvcc", name
    for entry in filter(None, settings.path.split(":")):
        yield Path(entry) / "nvcc", "PATH"
    for folder in sorted(_LOCAL.glob("cuda*")):
        yield folder / "bin/nvcc", str(_LOCAL)
    for packages in site.getsitepackages():
        for path in sorted(Path(packages).glob("nvidia/cu*/bin/nvcc")):
            yield path, "Python package"


def _examine(path: Path, found: str) -> Candidate:
    try:
        done = run([str(path), "--version"], timeout=60)
    except (OSError, subprocess.TimeoutExpired) as error:
        reason = "does not exist" if isinstance(error, FileNotFoundError) else f"cannot be run: {error}"
        return Candidate(path=path, found=found, problem=reason)
    match = _BANNER.search(done.stdout)
    if done.status != 0 or match is None:
        return Candidate(path=path, found=found, problem="does not say its version")
    return Candidate(path=path, found=found, version=MajorMinor.parse(match["version"]), release=match["release"])


def _root(candidate: Candidate, host: HostCompiler) -> Path:
    """The toolkit's folder, asked of nvcc itself: what lies on PATH may be a script or a link."""
    command = [str(candidate.path), "--dryrun", "-x", "cu", "-c", "/dev/null", "-o", "/dev/null"]
    # It names its own folder first, even when it then finds no host compiler that it takes.
    compiler = shlex.split(without_launcher(host).cxx)[0]
    done = run([*command, "-ccbin", compiler], timeout=60)
    match = _HERE.search(done.stderr) or _HERE.search(done.stdout)
    return (Path(match["folder"]) if match else candidate.path.resolve().parent).parent


def _include(root: Path) -> tuple[Path, ...]:
    """Its folders of headers; none when they lie where compilers look anyway."""
    for folder in (root / "include", root / "targets/x86_64-linux/include"):
        if (folder / "cuda_runtime.h").is_file():
            return tuple(path for path in (folder, folder / "cccl") if path.is_dir())
    return ()


def _cudart(version: MajorMinor, root: Path) -> Path:
    name = f"libcudart.so.{version.major}"
    for folder in _LIBRARIES:
        path = root / folder / name
        if path.is_file():
            return path
    raise ToolchainError(
        f"The installed CUDA {version} has no {name}.",
        where=str(root),
        hint="install its run-time library (cuda-cudart), or name a complete toolkit with CUDA_HOME",
    )


def _identity(candidate: Candidate, root: Path, include: Sequence[Path]) -> str:
    """Digest of the release, the content of its programs, and the names and sizes of its headers.

    Hashing all headers would take longer than compiling; an installed toolkit is never what a release is built with.
    """
    rows = {"release": candidate.release}
    for name in _PROGRAMS:
        for path in (root / "bin" / name, root / "nvvm/bin" / name, Path("/usr/bin") / name):
            if path.is_file():
                rows[name] = sha256_of(path)
                break
    for folder in include:
        for path in folder.rglob("*"):
            if path.is_file():
                rows[f"include/{path.relative_to(folder).as_posix()}"] = str(path.stat().st_size)
    return tree_digest(rows)
