"""Reads the source archive of a kernel."""

from __future__ import annotations

import io
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.errors import DigestError, SpecError
from kernel_builder.package.read import SOURCE_ARCHIVE
from kernel_builder.spec.identity import source_digest
from kernel_builder.spec.read import read_kernel
from kernel_loader.format.paths import check_path

if TYPE_CHECKING:
    from collections.abc import Mapping


def unpacked(archive: bytes) -> dict[str, bytes]:
    """Files of a source archive by name.

    Raises:
        DigestError: It is damaged, or names a file outside of it.
    """
    files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(archive)) as tar:
            for entry in tar:
                content = tar.extractfile(entry) if entry.isfile() else None
                if content is not None:
                    files[check_path(entry.name)] = content.read()
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise DigestError(f"A source archive cannot be read: {error}.", where=SOURCE_ARCHIVE) from error
    return files


def digest_of_sources(files: Mapping[str, bytes], kernel: str) -> str:
    """Source digest of the kernel in an unpacked archive, ``""`` when there is none that could be built."""
    with tempfile.TemporaryDirectory(prefix="kernel-sources-") as scratch:
        for name, data in files.items():
            path = Path(scratch) / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        try:
            return source_digest(read_kernel(Path(scratch) / kernel))
        except SpecError:
            return ""
