"""nvcc from NVIDIA's redistributable archives, wherever a copy of them is served."""

from __future__ import annotations

import hashlib
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

from kernel_builder.errors import DigestError, ToolchainError, UsageError
from kernel_builder.files import sha256_of, tree_digest
from kernel_builder.toolchain.model import Nvcc
from kernel_builder.toolchain.nvcc.host_range import choose_host, find_header, read_host_range
from kernel_builder.toolchain.nvcc.manifest import parse_manifest, parse_releases
from kernel_builder.toolchain.nvcc.tarball import make_links, unpack_archive
from kernel_builder.toolchain.store import install

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.model import HostCompiler
    from kernel_builder.toolchain.nvcc.manifest import Archive, Release
    from kernel_builder.toolchain.supply import Supply
    from kernel_loader.format.versions import MajorMinor

_MOST = 16 << 20
_MANIFEST = "redistrib.json"
# What is taken out of each component; the libraries' own archives are large, their headers are not.
_WANTED = {"cuda_nvcc": ("bin/", "nvvm/", "include/"), "libnvvm": ("nvvm/",)}
_CUDART = ("include/", "lib/libcudart.so")


def releases(settings: Settings) -> Mapping[MajorMinor, Release]:
    """Manifests of KERNEL_BUILDER_REDIST by CUDA version.

    Raises:
        UsageError: There is none, or something else.
    """
    if not settings.redist:
        raise UsageError(
            "The toolkit source 'archive' needs a release manifest.",
            where="environment: KERNEL_BUILDER_REDIST",
            hint="set it to the path or URL of a redistrib_<release>.json whose archives lie beside it",
        )
    return parse_releases(settings.redist)


def find_release(version: MajorMinor, settings: Settings) -> Release:
    """The manifest of a CUDA version.

    Raises:
        UsageError: KERNEL_BUILDER_REDIST names no manifest.
        ToolchainError: It names none of this version.
    """
    known = releases(settings)
    if version not in known:
        raise ToolchainError(
            f"No release manifest is of CUDA {version}.",
            where="environment: KERNEL_BUILDER_REDIST",
            detail="\n".join(f"CUDA {known[found].version}: {known[found].location}" for found in sorted(known)),
            hint=f"add the path or URL of redistrib_{version}.<n>.json, separated by a blank",
        )
    return known[version]


def provide_archive(
    version: MajorMinor, host: HostCompiler, settings: Settings, supply: Supply, reporter: Reporter
) -> Nvcc:
    """Unpack the nvcc of a release manifest into the store. A manifest from the network is kept there, too.

    Raises:
        ToolchainError: Manifest or archives cannot be had, or no host compiler of this machine is in the range.
        DigestError: Bytes are not those that the manifest, or the manifest's own hash, names.
    """
    release = find_release(version, settings)
    data = _read_manifest(release, settings, supply, reporter)
    archives = parse_manifest(data, release.location)
    compiler = archives[0].version
    digest = tree_digest({archive.path: archive.sha256 for archive in archives})
    fill = partial(_fill, release, archives, supply)
    root = install(settings.store, "toolkits", f"nvcc-archive-{compiler}-{digest[:12]}", fill, reporter)
    include = tuple(folder for folder in (root / "include", root / "include/cccl") if folder.is_dir())
    chosen = choose_host(read_host_range(compiler, find_header((root / "include",))), host, settings.path, reporter)
    return Nvcc(
        version=version,
        release=compiler,
        digest=digest,
        root=root,
        nvcc=root / "bin/nvcc",
        include=include,
        cudart=root / f"lib/libcudart.so.{version.major}",
        host=chosen.cxx,
        source="archive",
        host_identity=chosen.identity,
        origin=f"{release.location.rpartition('/')[2]} {hashlib.sha256(data).hexdigest()}",
    )


def _read_manifest(release: Release, settings: Settings, supply: Supply, reporter: Reporter) -> bytes:
    local = _local(release.location)
    if local:
        data = _read_file(local)
    else:
        key = hashlib.sha256(release.location.encode()).hexdigest()[:20]
        folder = install(
            settings.store, "manifests", key, lambda scratch: _keep_manifest(release, scratch, supply), reporter
        )
        data = (folder / _MANIFEST).read_bytes()
    _check(release, data)
    return data


def _keep_manifest(release: Release, folder: Path, supply: Supply) -> None:
    from kernel_builder.toolchain.wheels import UnfitWheelError

    try:
        data = supply.transfer(release.location, _MANIFEST).read_all(_MOST)
    except UnfitWheelError as error:
        raise ToolchainError(f"The release manifest cannot be had: {error}.", where=release.location) from error
    # Before they are kept: neither other bytes nor another document may stay.
    _check(release, data)
    parse_manifest(data, release.location)
    (folder / _MANIFEST).write_bytes(data)


def _check(release: Release, data: bytes) -> None:
    if release.sha256 not in (None, hashlib.sha256(data).hexdigest()):
        raise DigestError(
            "The release manifest is not the one that KERNEL_BUILDER_REDIST names.", where=release.location
        )


def _read_file(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ToolchainError(f"The release manifest cannot be read: {error.strerror}.", where=str(path)) from error


def _fill(release: Release, archives: tuple[Archive, ...], supply: Supply, folder: Path) -> None:
    links: dict[str, str] = {}
    for archive in archives:
        path = _fetch(release, archive, folder / ".archive.tar.xz", supply)
        wanted = _CUDART if archive.component == "cuda_cudart" else _WANTED.get(archive.component, ("include/",))
        links |= unpack_archive(path, folder, lambda name, wanted=wanted: name.startswith(wanted))  # type: ignore[misc]
        (folder / ".archive.tar.xz").unlink(missing_ok=True)
    make_links(folder, links)
    lacking = [
        name for name in ("bin/nvcc", "include/cuda_runtime.h", "nvvm/bin/cicc") if not (folder / name).is_file()
    ]
    if lacking:
        raise ToolchainError(f"The archives hold no {', '.join(lacking)}.", where=release.location)


def _fetch(release: Release, archive: Archive, spool: Path, supply: Supply) -> Path:
    """The archive as a file of this machine, with the bytes that the manifest names."""
    from kernel_builder.toolchain.wheels import UnfitWheelError

    manifest = _local(release.location)
    try:
        if manifest:
            path = manifest.parent / archive.path
            found = sha256_of(path)
        else:
            path, url = spool, urljoin(release.location, archive.path)
            found = supply.transfer(url, archive.component).download(spool, archive.size)
    except (UnfitWheelError, OSError) as error:
        raise ToolchainError(f"The archive {archive.path} cannot be had: {error}.", where=release.location) from error
    if found != archive.sha256:
        raise DigestError(
            f"The archive {archive.path} is not the one that the release manifest names.", where=release.location
        )
    return path


def _local(location: str) -> Path | None:
    parts = urlsplit(location)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme in ("http", "https") else Path(location).expanduser().absolute()
