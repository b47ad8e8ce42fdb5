"""nvcc's programs out of a Debian package, without root and without installing it.

No wheel has an nvcc of CUDA 12. Debian's package does: apt fetches it into folders of ours, from the mirror and
with the keys that apt on this machine is configured for, and its programs complete the folder of the CUDA 12 wheels.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kernel_builder.errors import DigestError, ToolchainError
from kernel_builder.files import sha256_of
from kernel_builder.processes import find_program, run
from kernel_builder.toolchain.nvcc.apt_sources import read_mirrors

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel_builder.processes import Completed
    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.lock import LockedPackage
    from kernel_builder.toolchain.nvcc.apt_sources import Mirror

HOME = "nvidia/cuda_nvcc"
_LIBRARY = "usr/lib/nvidia-cuda-toolkit"
# File of the package → its place below HOME, laid out as nvcc looks for it.
_TAKEN = {
    **{f"usr/bin/{name}": f"bin/{name}" for name in ("bin2c", "cudafe++", "fatbinary", "nvlink", "ptxas")},
    f"{_LIBRARY}/bin/nvcc": "bin/nvcc",
    f"{_LIBRARY}/bin/crt/link.stub": "bin/crt/link.stub",
    f"{_LIBRARY}/bin/crt/prelink.stub": "bin/crt/prelink.stub",
    f"{_LIBRARY}/bin/cicc": "nvvm/bin/cicc",
    f"{_LIBRARY}/libdevice/libdevice.10.bc": "nvvm/libdevice/libdevice.10.bc",
}
# The package's own names folders of an installed system; this one only what lies beside it.
_PROFILE = """\
TOP = $(_HERE_)/..
CICC_PATH = $(TOP)/nvvm/bin
NVVMIR_LIBRARY_DIR = $(TOP)/nvvm/libdevice
PATH += $(CICC_PATH):$(_HERE_):
INCLUDES += "-I$(TOP)/include" "-I$(TOP)/../cuda_runtime/include" $(_SPACE_)
SYSTEM_INCLUDES += "-isystem" "$(TOP)/../cuda_cccl/include" $(_SPACE_)
LIBRARIES =+ $(_SPACE_) "-L$(TOP)/../cuda_runtime/lib"
"""
_APT_CONFIG = """\
#clear APT::Update::Pre-Invoke;
#clear APT::Update::Post-Invoke;
#clear APT::Update::Post-Invoke-Success;
Dir::State "{root}/state";
Dir::State::status "{root}/status";
Dir::Cache "{root}/cache";
Dir::Etc::sourcelist "{root}/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "-";
Dir::Etc::preferencesparts "-";
APT::Architecture "amd64";
APT::Sandbox::User "root";
Acquire::Languages "none";
Acquire::Retries "3";
"""
_CANDIDATE = re.compile(r"^  Candidate: (?P<version>[0-9]\S*)$", re.MULTILINE)
_APT_FOLDER = Path("/etc/apt")
_UPDATE_SECONDS, _DOWNLOAD_SECONDS = 300, 1800
_OTHER_WAYS = (
    "for CUDA 13, nvcc comes from pip wheels anywhere: --cuda 13.0; for CUDA 12, run on Debian, or install a toolkit "
    "(apt install nvidia-cuda-toolkit) and take it with --toolkit system, or name NVIDIA's release manifest in "
    "KERNEL_BUILDER_REDIST and take its archives with --toolkit archive"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class _Tools:
    apt_get: str
    apt_cache: str
    dpkg_deb: str


def unpack(package: LockedPackage, folder: Path, settings: Settings, reporter: Reporter) -> dict[str, str]:
    """Put the package's programs and a profile of ours below ``folder``; returns path → hex SHA-256.

    Raises:
        ToolchainError: This is no Debian, no mirror answers, or the mirrors have another version than the locked one.
        DigestError: The package's bytes are not the locked ones.
    """
    tools = find_tools(package, settings.path)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".apt-") as scratch:
        apt = _Apt(tools, Path(scratch), package)
        apt.update(reporter)
        archive = apt.download(package.version, reporter)
        if sha256_of(archive) != package.sha256:
            raise DigestError(
                f"The package {package.name} {package.version} of this mirror is not the one that the lock names.",
                where=archive.name,
                hint="a mirror serves other bytes: check apt's sources",
            )
        return _take(archive, Path(scratch) / "tree", folder, tools)


def pin(package: LockedPackage, settings: Settings, reporter: Reporter) -> tuple[LockedPackage, dict[str, str]]:
    """The newest package of its suite, pinned, and path → hex SHA-256 of what is taken from it.

    Raises:
        ToolchainError: This is no Debian, or no mirror answers.
    """
    tools = find_tools(package, settings.path)
    with tempfile.TemporaryDirectory() as scratch:
        apt = _Apt(tools, Path(scratch), package)
        apt.update(reporter)
        version = apt.candidate()
        if version.split(".")[:2] != package.version.split(".")[:2]:
            raise ToolchainError(
                f"{package.suite} has {package.name} {version}, which is another CUDA version.", where=package.version
            )
        archive = apt.download(version, reporter)
        files = _take(archive, Path(scratch) / "tree", Path(scratch) / "taken", tools)
        return replace(package, version=version, sha256=sha256_of(archive), size=archive.stat().st_size), files


def find_tools(package: LockedPackage, path: str) -> _Tools:
    """The programs that unpacking a Debian package takes.

    Raises:
        ToolchainError: ``path`` lacks one: this is no Debian.
    """
    found = {name: find_program(name, path) for name in ("apt-get", "apt-cache", "dpkg-deb")}
    missing = [name for name, program in found.items() if program is None]
    if missing:
        raise ToolchainError(
            f"nvcc of this CUDA version comes from the Debian package {package.name}, and {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} not on PATH.",
            where=f"PATH: {', '.join(missing)}",
            hint=_OTHER_WAYS,
        )
    apt_get, apt_cache, dpkg_deb = (program or name for name, program in found.items())
    return _Tools(apt_get=apt_get, apt_cache=apt_cache, dpkg_deb=dpkg_deb)


class _Apt:
    """apt with lists, cache and sources of its own below ``root``."""

    def __init__(self, tools: _Tools, root: Path, package: LockedPackage) -> None:
        self._tools, self._root, self._package = tools, root, package
        self._config = root / "apt.conf"
        for name in ("state/lists/partial", "cache/archives/partial"):
            (root / name).mkdir(parents=True, exist_ok=True)
        (root / "status").touch()
        self._config.write_text(_APT_CONFIG.format(root=root), encoding="utf-8")

    def update(self, reporter: Reporter) -> None:
        """Read the package list of the first mirror that has the suite, signed by a key that apt trusts."""
        failures = []
        for mirror in read_mirrors(_APT_FOLDER):
            (self._root / "sources.list").write_text(self._source(mirror), encoding="utf-8")
            done = self._run(
                self._tools.apt_get, "-o", "APT::Update::Error-Mode=any", "update", seconds=_UPDATE_SECONDS
            )
            if done.status == 0:
                return
            host = urlsplit(mirror.uri).hostname or mirror.uri
            reporter.note(f"apt's mirror {host} has no usable {self._place}")
            failures.append(f"{host}: {done.stderr.strip()}")
        raise ToolchainError(
            f"No mirror that apt is configured for has the suite {self._place}."
            if failures
            else "apt is configured for no mirror of a distribution.",
            where=str(_APT_FOLDER),
            detail="\n".join(failures),
            hint=_OTHER_WAYS,
        )

    def candidate(self) -> str:
        """The version that the mirror offers."""
        done = self._run(self._tools.apt_cache, "policy", self._package.name, seconds=60)
        match = _CANDIDATE.search(done.stdout)
        if match is None:
            raise ToolchainError(
                f"The mirror has no package {self._package.name} in {self._place}.", hint=_OTHER_WAYS, where="apt"
            )
        return match["version"]

    def download(self, version: str, reporter: Reporter) -> Path:
        """The package's file in exactly this version."""
        wanted = f"{self._package.name}={version}"
        reporter.note(f"downloading the Debian package {self._package.name} {version}")
        done = self._run(self._tools.apt_get, "download", wanted, seconds=_DOWNLOAD_SECONDS)
        archive = next(self._root.glob("*.deb"), None)
        if done.status == 0 and archive is not None:
            return archive
        offered = self.candidate()
        if offered != version:
            raise ToolchainError(
                f"The mirror has {self._package.name} {offered}; the lock names {version}.",
                where=f"apt: {self._place}",
                hint="pin the new one: kernel-builder toolchain lock nvcc-" + ".".join(version.split(".")[:2]),
            )
        raise ToolchainError(
            f"apt-get cannot download {wanted}.", where=self._place, detail=done.stderr.strip(), hint=_OTHER_WAYS
        )

    @property
    def _place(self) -> str:
        return f"{self._package.suite}/{self._package.component}"

    def _source(self, mirror: Mirror) -> str:
        keyring = f" signed-by={mirror.keyring}" if mirror.keyring else ""
        return f"deb [arch=amd64{keyring}] {mirror.uri} {self._package.suite} {self._package.component}\n"

    def _run(self, program: str, *arguments: str, seconds: int) -> Completed:
        return _run([program, "-c", str(self._config), *arguments], self._root, seconds)


def _run(command: Sequence[str], folder: Path, seconds: int) -> Completed:
    try:
        return run(command, cwd=folder, env={"LC_ALL": "C"}, timeout=seconds)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ToolchainError(f"{Path(command[0]).name} did not finish: {error}.", where=command[0]) from error


def _take(archive: Path, tree: Path, folder: Path, tools: _Tools) -> dict[str, str]:
    tree.mkdir()
    done = _run([tools.dpkg_deb, "-x", str(archive), str(tree)], tree, 600)
    if done.status != 0:
        raise ToolchainError("dpkg-deb cannot unpack the package.", where=archive.name, detail=done.stderr.strip())
    taken = {}
    for name, place in _TAKEN.items():
        source, target = tree / name, folder / HOME / place
        if source.is_symlink() or not source.is_file():
            raise ToolchainError(f"The package holds no file {name}.", where=archive.name, hint=_OTHER_WAYS)
        target.parent.mkdir(parents=True, exist_ok=True)
        source.rename(target)
        taken[f"{HOME}/{place}"] = sha256_of(target)
    profile = folder / HOME / "bin/nvcc.profile"
    profile.write_text(_PROFILE, encoding="ascii")
    return taken | {f"{HOME}/bin/nvcc.profile": sha256_of(profile)}
