"""A variant of a hub commit → a folder in the cache: blobs hashed while they are written, then one rename."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_loader.sources import files_of

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_loader.cache import CachedRepo
    from kernel_loader.sources import HubSource


def fetch(source: HubSource, variant: str, cached: CachedRepo, *, again: bool = False) -> Path:
    """The cached folder of a variant, copied from the hub unless it is there. Of many processes one copies.

    Args:
        source: The commit.
        variant: Name of the variant.
        cached: The repository's part of the cache.
        again: Replace a folder that is there, because it is incomplete.

    Raises:
        NotFoundError: The hub lacks a blob.
        DigestMismatch: A blob is not what its hash says.
        CacheError: The cache cannot be written.
    """
    target = cached.variant(source.commit, variant)
    if target.is_dir() and not again and _remembered(source, cached):
        return target
    with cached.writing() as scratch:
        if again or not target.is_dir():
            _copy(source, variant, scratch / "copy")
            _move(scratch / "copy", target, scratch / "old")
        cached.write_commit(source.commit, source.commit_json, scratch)
        if source.revision != source.commit:
            cached.write_head(source.revision, source.commit, scratch)
    return target


def _remembered(source: HubSource, cached: CachedRepo) -> bool:
    known_head = source.revision == source.commit or cached.head(source.revision) == source.commit
    return known_head and cached.commit(source.commit) == source.commit_json


def _copy(source: HubSource, variant: str, folder: Path) -> None:
    for path, entry in files_of(source.tree, variant).items():
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        with file.open("xb") as out:
            for chunk in source.repo.chunks(path, entry):
                out.write(chunk)


def _move(folder: Path, target: Path, aside: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if target.exists():
        target.rename(aside)
    folder.rename(target)
