"""Reads packaged variants back from a dist tree."""

from __future__ import annotations

import tarfile
from typing import IO, TYPE_CHECKING, cast

from kernel_builder.errors import CheckError, UsageError
from kernel_builder.package.model import PackagedVariant
from kernel_loader.format.digest import METADATA, variant_digest
from kernel_loader.format.metadata import MetadataError, parse_metadata
from kernel_loader.format.paths import check_path

if TYPE_CHECKING:
    from pathlib import Path

SOURCE_ARCHIVE = "source.tar.gz"


def packaged_variants(root: Path) -> tuple[PackagedVariant, ...]:
    """Variants of ``dist/<kernel>``, of its ``build`` folder, or of one variant folder, by name.

    Raises:
        UsageError: There is no variant.
        CheckError: A metadata.json cannot be read.
    """
    return tuple(_read(folder) for folder in variant_folders(root))


def variant_folders(root: Path) -> tuple[Path, ...]:
    """Folders that ``packaged_variants`` reads.

    Raises:
        UsageError: There is none.
    """
    build = root / "build" if (root / "build").is_dir() else root
    folders = [build] if (build / METADATA).is_file() else sorted(p.parent for p in build.glob(f"*/{METADATA}"))
    if not folders:
        raise UsageError("No packaged variant is there.", where=str(root), hint="kernel-builder build makes them")
    return tuple(folder.absolute() for folder in folders)


def unpack_sources(variant: PackagedVariant, target: Path) -> Path:
    """Unpack the source archive beside a variant; returns ``target``.

    Raises:
        UsageError: There is no such archive.
        CheckError: It is damaged or would write outside of ``target``.
    """
    archive = variant.path.parents[1] / SOURCE_ARCHIVE
    if not archive.is_file():
        raise UsageError("The kernel's sources are not there.", where=str(archive), hint="name the tests with --tests")
    try:
        with tarfile.open(archive) as tar:
            for entry in tar:
                if entry.isfile():
                    path = target / check_path(entry.name)
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_bytes(cast("IO[bytes]", tar.extractfile(entry)).read())
    except (tarfile.TarError, EOFError, OSError, ValueError) as e:
        raise CheckError(f"The source archive cannot be unpacked: {e}.", where=str(archive)) from e
    return target


def _read(folder: Path) -> PackagedVariant:
    data = (folder / METADATA).read_bytes()
    try:
        metadata = parse_metadata(data, where=str(folder / METADATA))
    except MetadataError as e:
        raise CheckError("metadata.json cannot be read.", where=str(folder / METADATA), detail=str(e)) from e
    return PackagedVariant(name=folder.name, path=folder, metadata=metadata, digest=variant_digest(data))
