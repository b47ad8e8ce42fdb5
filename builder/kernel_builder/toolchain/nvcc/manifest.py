"""A release manifest of redistributable archives: which archive of which component has which bytes."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from kernel_builder.errors import ToolchainError, UsageError
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Iterable

_PLATFORM = "linux-x86_64"
_NAME = re.compile(r"(?:.*/)?redistrib_(?P<version>\d+\.\d+)(?:\.\d+)*\.json")
_HASH = re.compile(r"[0-9a-f]{64}")
# Component → whether nvcc is of no use without it. Releases before 13 have crt and nvvm inside cuda_nvcc, and torch's
# headers include those of the mathematical libraries.
_COMPONENTS = {
    "cuda_nvcc": True,
    "cuda_cudart": True,
    "cuda_cccl": True,
    "cuda_crt": False,
    "libnvvm": False,
    "cuda_nvrtc": False,
    "cuda_nvtx": False,
    "cuda_profiler_api": False,
    "libcublas": False,
    "libcusparse": False,
    "libcusolver": False,
    "libcurand": False,
    "libcufft": False,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """One entry of KERNEL_BUILDER_REDIST: ``location`` is a path or URL, ``sha256`` what follows ``#sha256=``."""

    version: MajorMinor
    location: str
    sha256: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    """One archive: ``path`` is relative to the manifest, ``size`` in bytes."""

    component: str
    version: str
    path: str
    sha256: str
    size: int


def parse_releases(entries: Iterable[str]) -> dict[MajorMinor, Release]:
    """Manifests by CUDA version, which their names tell; of two for one version the first counts.

    Raises:
        UsageError: An entry has another name, or its hash is none.
    """
    found: dict[MajorMinor, Release] = {}
    for entry in entries:
        location, _, fragment = entry.partition("#")
        match = _NAME.fullmatch(location)
        sha256 = fragment.removeprefix("sha256=")
        if match is None or (fragment and not _HASH.fullmatch(sha256)):
            raise UsageError(
                f"{entry!r} names no release manifest.",
                where="environment: KERNEL_BUILDER_REDIST",
                hint="write paths or URLs of redistrib_<release>.json, with or without #sha256=<64 hex digits>",
            )
        version = MajorMinor.parse(match["version"])
        found.setdefault(version, Release(version=version, location=location, sha256=sha256 or None))
    return found


def parse_manifest(data: bytes, where: str) -> tuple[Archive, ...]:
    """Archives that make up an nvcc on x86_64 Linux, in the order of their components.

    Raises:
        ToolchainError: It is no such manifest, or it lacks a component.
    """
    try:
        content = json.loads(data)
        present = [name for name, needed in _COMPONENTS.items() if needed or _PLATFORM in content.get(name, {})]
        return tuple(_archive(name, content[name]) for name in present)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ToolchainError(
            f"The release manifest cannot be read: {error!r}.",
            where=where,
            hint=f"it must list {', '.join(name for name, needed in _COMPONENTS.items() if needed)} for {_PLATFORM}",
        ) from error


def _archive(component: str, row: dict[str, Any]) -> Archive:
    platform = row[_PLATFORM]
    archive = Archive(
        component=component,
        version=str(row["version"]),
        path=platform["relative_path"],
        sha256=platform["sha256"],
        size=int(platform["size"]),
    )
    path = PurePosixPath(archive.path)
    if path.is_absolute() or ".." in path.parts or ":" in archive.path or not _HASH.fullmatch(archive.sha256):
        raise ValueError(f"{component} has the path {archive.path!r} and the SHA-256 {archive.sha256!r}")
    return archive
