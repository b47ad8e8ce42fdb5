"""A version branch of a hub as publishing sees it: its variants, where they came from, and what callers rely on."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel_builder.errors import DigestError
from kernel_builder.package.read import SOURCE_ARCHIVE
from kernel_builder.publish.api import PublicApi, public_api
from kernel_builder.publish.archive import unpacked
from kernel_builder.publish.manifest import MANIFEST
from kernel_builder.test.receipts import level_in
from kernel_loader.format.digest import METADATA, variant_digest
from kernel_loader.format.hubstore import variants_of
from kernel_loader.format.metadata import Metadata, MetadataError, parse_metadata

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
        """Its manifest; empty when it has none, or one that cannot be read: then its files alone speak."""
        try:
            said = json.loads(self._read(MANIFEST)) if MANIFEST in self.tree else {}
        except (ValueError, RecursionError):
            return {}
        return said if isinstance(said, dict) else {}

    @property
    def released(self) -> bool:
        """Whether callers rely on it: all branches with variants but those that say that they were only staged."""
        return bool(self.variants) and self.manifest.get("released") is not False

    @property
    def current(self) -> str:
        """Source digest of the release itself, ``""`` when unknown."""
        return str(self.manifest.get("current", ""))

    def recorded_api(self) -> PublicApi | None:
        """What callers rely on, read from its manifest, or else its files; None without sources to read ops from."""
        known = PublicApi.from_json(self.manifest.get("api"))
        if known is not None or SOURCE_ARCHIVE not in self.tree or not self.variants:
            return known
        return public_api(self._python(self.variants[0]), unpacked(self._read(SOURCE_ARCHIVE)))

    def shown_api(self, backend: str) -> PublicApi:
        """What a variant shows without sources, of this backend if there is one."""
        same = (name for name in self.variants if self.metadata(name).backend == backend)
        return public_api(self.files(next(same, self.variants[0])), {})

    def files(self, variant: str) -> dict[str, bytes]:
        """Path inside a variant → content."""
        folder = f"build/{variant}/"
        return {path.removeprefix(folder): self._read(path) for path in self.tree if path.startswith(folder)}

    def receipts(self) -> Iterator[tuple[Metadata, str]]:
        """Variants with a receipt, and what it proves."""
        for variant in self.variants:
            receipt = f"receipts/{variant_digest(self._read(f'build/{variant}/{METADATA}'))}.json"
            if receipt in self.tree:
                yield self.metadata(variant), level_in(self._read(receipt))

    def level_at(self, receipt: str) -> str:
        """What the receipt at a path of the tree proves, ``none`` when there is none."""
        return level_in(self._read(receipt)) if receipt in self.tree else "none"

    def _python(self, variant: str) -> dict[str, bytes]:
        folder = f"build/{variant}/"
        paths = [path for path in self.tree if path.startswith(folder) and path.endswith(".py")]
        return {path.removeprefix(folder): self._read(path) for path in paths}

    def _read(self, path: str) -> bytes:
        return self.repository.read(self.tree[path])
