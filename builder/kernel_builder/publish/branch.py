"""A version branch of a hub as publishing sees it: its variants, where they came from, and what callers rely on."""

from __future__ import annotations

import io
import json
import tarfile
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel_builder.errors import DigestError
from kernel_builder.package.read import SOURCE_ARCHIVE
from kernel_builder.publish.api import PublicApi, public_api
from kernel_builder.publish.gates import toolkit_of
from kernel_builder.publish.manifest import MANIFEST
from kernel_loader.format.digest import METADATA, variant_digest
from kernel_loader.format.hubstore import variants_of
from kernel_loader.format.metadata import Metadata, MetadataError, parse_metadata
from kernel_loader.format.paths import check_path

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.publish.folder import Head, Repository
    from kernel_loader.format.hubstore import TreeEntry


@dataclass(frozen=True, slots=True)
class Branch:
    """A branch at one of its heads."""

    repository: Repository
    head: Head

    @property
    def tree(self) -> Mapping[str, TreeEntry]:
        """Its files."""
        return self.head.commit.tree

    @property
    def variants(self) -> tuple[str, ...]:
        """Names of its variants, sorted."""
        return variants_of(self.tree)

    def metadata(self, variant: str) -> Metadata:
        """What a variant says about itself.

        Raises:
            DigestError: It has no readable metadata.
        """
        path = f"build/{variant}/{METADATA}"
        try:
            return parse_metadata(self._read(path), where=path)
        except MetadataError as error:
            raise DigestError(
                "A variant of the hub has no readable metadata.", where=path, detail=str(error)
            ) from error

    @property
    def manifest(self) -> Mapping[str, Any]:
        """Its manifest, empty when it has none."""
        return json.loads(self._read(MANIFEST)) if MANIFEST in self.tree else {}

    @property
    def current(self) -> str:
        """Source digest of the release itself, ``""`` when unknown."""
        return str(self.manifest.get("current", ""))

    @property
    def groups(self) -> frozenset[str]:
        """Source digests of its variants."""
        return frozenset(source_digest_of(self.metadata(variant)) for variant in self.variants)

    def api(self) -> PublicApi | None:
        """What callers rely on: as the manifest says, else as its files say; None when it has no variant."""
        recorded = self.manifest.get("api")
        if isinstance(recorded, dict):
            return PublicApi(python=dict(recorded["python"]), ops=tuple(recorded["ops"]))
        if not self.variants:
            return None
        folder = f"build/{self.variants[0]}/"
        python = {
            p.removeprefix(folder): self._read(p) for p in self.tree if p.startswith(folder) and p.endswith(".py")
        }
        return public_api(python, unpacked(self._read(SOURCE_ARCHIVE)) if SOURCE_ARCHIVE in self.tree else {})

    def proven(self) -> dict[str, str]:
        """Compiler of device code → ``A`` where a variant with such code passed its tests on a device."""
        found = {}
        for variant in self.variants:
            receipt = f"receipts/{variant_digest(self._read(f'build/{variant}/{METADATA}'))}.json"
            if receipt in self.tree:
                said = json.loads(self._read(receipt))
                if said.get("level") == "A" and said.get("result") == "passed":
                    found[toolkit_of(self.metadata(variant))] = "A"
        return found

    def _read(self, path: str) -> bytes:
        return self.repository.read(self.tree[path])


def source_digest_of(metadata: Metadata) -> str:
    """Digest over the sources that a variant was built from, ``""`` when it does not say."""
    return str(metadata.builder.get("source-digest", ""))


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
