"""A source and an environment → the variant that fits, on this machine and verified."""

from __future__ import annotations

import hashlib
import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_loader.advice import no_variant_error
from kernel_loader.cache import Cache
from kernel_loader.environment import BACKENDS
from kernel_loader.errors import DigestMismatch, IncompleteFolder, UsageError
from kernel_loader.fetch import fetch
from kernel_loader.format.digest import METADATA
from kernel_loader.format.versions import branch_of
from kernel_loader.integrity import read_regular
from kernel_loader.select import Decision, Selection, refine, select
from kernel_loader.sources import CachedSource, HubSource, LocalSource, Source, metadata_of, tree_digest
from kernel_loader.verify import Verified, verify_folder

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_loader.environment import Environment
    from kernel_loader.format.digest import Digest
    from kernel_loader.format.metadata import Metadata
    from kernel_loader.settings import Settings

_log = logging.getLogger("kernel_loader")


@dataclass(frozen=True, kw_only=True, slots=True)
class Wish:
    """What the caller asks for beyond the kernel itself.

    Attributes:
        backend: Backend to use instead of torch's own.
        strict: Hash all files even if nothing suggests that they changed.
        check_arch: Refuse a variant without code for the visible GPUs.
    """

    backend: str | None = None
    strict: bool = False
    check_arch: bool = True


@dataclass(frozen=True, kw_only=True, slots=True)
class Installed:
    """A verified variant."""

    variant: str
    metadata: Metadata
    verified: Verified


def choose(source: Source, env: Environment, wish: Wish) -> Selection:
    """Decide about every variant of a source, by name and then by metadata.

    Raises:
        UsageError: The wished backend is neither ``cpu`` nor the environment's.
        InvalidKernel: The metadata of the variant that would be chosen cannot be read.
    """
    if wish.backend is not None and wish.backend not in ("cpu", env.backend):
        known = wish.backend in BACKENDS
        raise UsageError(
            f"The backend {wish.backend!r} {'is not that of this torch' if known else 'is unknown'}.",
            hint=f"use backend='cpu' or leave it out, which means {env.backend!r} here",
        )
    if isinstance(source, LocalSource) and source.single:
        decision = Decision(name=source.single, variant=None, accepted=True)
        selection = Selection(best=decision, decisions=(decision,))
    else:
        selection = select(source.variants(), env, wish.backend)
    return refine(selection, lambda name: metadata_of(source, name), env, check_arch=wish.check_arch)


def install(source: Source, env: Environment, wish: Wish, settings: Settings) -> Installed:
    """Choose, fetch and verify a variant.

    Raises:
        NoCompatibleVariant: None fits.
        DigestMismatch: What lies there is not what was published.
        NotFoundError: The hub lacks a file.
    """
    selection = choose(source, env, wish)
    if selection.best is None:
        newer = _other_version(source, env, wish)
        raise no_variant_error(selection, env, where=source.label, backend=wish.backend, newer=newer)
    variant = selection.best.name
    cache = Cache(settings.cache)
    if not isinstance(source, HubSource):
        return verify_variant(source, variant, source.folder(variant), cache, strict=wish.strict)
    cached = cache.repo(source.repo.repo)
    try:
        return verify_variant(source, variant, fetch(source, variant, cached), cache, strict=wish.strict)
    except IncompleteFolder as e:
        _log.warning("%s: fetched again: %s", source.label, e.message)
        return verify_variant(source, variant, fetch(source, variant, cached, again=True), cache, strict=wish.strict)


def verify_variant(source: Source, variant: str, folder: Path, cache: Cache, *, strict: bool) -> Installed:
    """Check a variant's folder against its own digest and, where there is one, its commit.

    Raises:
        DigestMismatch: See ``verify_folder``.
        InvalidKernel: Its metadata cannot be read.
    """
    metadata, data = metadata_of(source, variant), source.metadata_json(variant)
    expected = [metadata.digest] if metadata.digest else []
    if isinstance(source, (HubSource, CachedSource)) and source.tree is not None:
        _check_metadata(source, variant, folder)
        expected.append(_tree_digest(source, variant, metadata))
    if not expected:
        _log.info("%s: %s carries no digest, so its files are taken as they are", source.label, variant)
    verified = verify_folder(folder, data, expected, cache.stamps, strict=strict)
    return Installed(variant=variant, metadata=metadata, verified=verified)


def _tree_digest(source: HubSource | CachedSource, variant: str, metadata: Metadata) -> Digest:
    assert source.tree is not None
    digest = tree_digest(source.tree, variant)
    if metadata.digest and metadata.digest.algorithm == digest.algorithm and metadata.digest != digest:
        message = f"The digest in {variant}/{METADATA} and the commit disagree about the files."
        raise DigestMismatch(message, where=source.label, hint="publish the version again")
    return digest


def _check_metadata(source: HubSource | CachedSource, variant: str, folder: Path) -> None:
    """metadata.json cannot be part of its own digest; the commit names its hash."""
    assert source.tree is not None
    entry = source.tree[f"build/{variant}/{METADATA}"]
    try:
        data = read_regular(folder / METADATA, limit=entry.size)
    except FileNotFoundError as e:
        raise IncompleteFolder(f"The kernel is incomplete: {METADATA} is missing.", where=str(folder)) from e
    if hashlib.sha256(data).hexdigest() != entry.sha256:
        raise DigestMismatch(f"{METADATA} is not what the commit says.", where=str(folder))


def _other_version(source: Source, env: Environment, wish: Wish) -> str:
    if not isinstance(source, HubSource):
        return ""
    others = [version for version in reversed(source.repo.versions()) if branch_of(version) != source.revision]
    for version in others:
        if select(HubSource.open(source.repo, branch_of(version)).variants(), env, wish.backend).best:
            return f"version {version}"
    return ""
