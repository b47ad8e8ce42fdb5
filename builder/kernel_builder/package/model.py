"""Packaged variants, as they lie in the dist tree."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.spec.model import Kernel
    from kernel_loader.format.metadata import Metadata


@dataclass(frozen=True, kw_only=True, slots=True)
class PackagedVariant:
    """``path`` is the variant folder; ``digest`` is kernel_loader.format.digest.variant_digest of it."""

    name: str
    path: Path
    metadata: Metadata
    digest: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Distribution:
    """``dist/<kernel>``: ``build/<variant>/…``, ``source.tar.gz``, ``README.md``, ``receipts/``."""

    kernel: Kernel
    root: Path
    variants: tuple[PackagedVariant, ...]
    source_digest: str
    dirty: bool | None
