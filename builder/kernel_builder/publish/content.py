"""What a dist folder has for publishing: variants, the one state of the sources they were built from, their API."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.errors import DigestError, PublishError
from kernel_builder.package.read import SOURCE_ARCHIVE, packaged_variants
from kernel_builder.publish.api import PublicApi, public_api
from kernel_builder.publish.archive import digest_of_sources, unpacked
from kernel_builder.publish.stage import variant_files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kernel_builder.package.model import PackagedVariant
    from kernel_loader.format.metadata import Metadata


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """A packaged kernel.

    Attributes:
        variants: At least one, by name.
        archive: Bytes of ``source.tar.gz``.
        digest: Source digest of every variant.
        api: What callers can rely on.
    """

    variants: tuple[PackagedVariant, ...]
    archive: bytes
    digest: str
    api: PublicApi


def read_content(root: Path, *, version: int) -> Content:
    """Read ``dist/<kernel>``.

    Args:
        root: The folder.
        version: Major version that the variants must have.

    Raises:
        UsageError: There is no variant.
        PublishError: The variants are of another version, of several states of the sources, or the sources are missing.
        DigestError: Variants or sources are damaged, or do not belong together.
    """
    variants = packaged_variants(root)
    digest = _one_state(variants, root, version)
    archive = root / SOURCE_ARCHIVE
    if not archive.is_file():
        raise PublishError("The sources are not there.", where=str(archive), hint="build again")
    data = archive.read_bytes()
    sources = unpacked(data)
    if digest_of_sources(sources, variants[0].metadata.name) != digest:
        raise DigestError(
            "These are not the sources that the variants beside them were built from.",
            where=str(archive),
            hint="build again with --prune",
        )
    return Content(variants=variants, archive=data, digest=digest, api=public_api(inside(variants[0]), sources))


def inside(variant: PackagedVariant) -> dict[str, bytes]:
    """Path inside a packaged variant → content, of the files that will be published."""
    return {path.split("/", 2)[2]: data for path, data in variant_files(variant).items()}


def source_digest_of(metadata: Metadata) -> str:
    """Digest over the sources that a variant was built from, ``""`` when it does not say."""
    return str(metadata.builder.get("source-digest", ""))


def _one_state(variants: Sequence[PackagedVariant], root: Path, version: int) -> str:
    for variant in variants:
        if variant.metadata.version != version:
            message = f"It is of version {variant.metadata.version}, not {version}."
            raise PublishError(message, where=str(variant.path), hint="build again")
    digests = {source_digest_of(variant.metadata) for variant in variants}
    if len(digests) > 1:
        raise PublishError(
            f"The packaged variants were built from {len(digests)} states of the sources.",
            where=str(root),
            hint="build all of them again with --prune",
        )
    return digests.pop()
