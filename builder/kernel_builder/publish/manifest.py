"""``manifest.json``: what a branch holds, in one small file, so that a reader needs one request to decide."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_builder.errors import DigestError
from kernel_loader.format.digest import METADATA, variant_digest
from kernel_loader.format.hubstore import variants_of
from kernel_loader.format.metadata import MetadataError, parse_metadata
from kernel_loader.format.tables import write_json

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from kernel_loader.format.hubstore import TreeEntry

MANIFEST = "manifest.json"
INLINE_LIMIT = 64 * 1024


def manifest(
    tree: Mapping[str, TreeEntry],
    read: Callable[[TreeEntry], bytes],
    *,
    current: str,
    released: bool = False,
    api: Mapping[str, Any] | None = None,
) -> bytes:
    """The manifest of a tree.

    Args:
        tree: The branch's files, the manifest itself apart.
        read: Gives the bytes of an entry.
        current: Source digest of the release; variants of another one were added to it.
        released: Whether it passed the gates of a release.
        api: The public API, as ``PublicApi.to_json`` gives it; left out when it was not looked at.
    """
    groups: dict[str, dict[str, Any]] = {}
    texts: dict[str, str] = {}
    for name in variants_of(tree):
        prefix = f"build/{name}/"
        files = {path.removeprefix(prefix): entry for path, entry in tree.items() if path.startswith(prefix)}
        texts.update(_texts(files, read))
        digest, group = _describe(name, files, read)
        groups.setdefault(digest, {})[name] = group
    known = {} if api is None else {"api": dict(api)}
    return write_json(
        {"version": 1, "released": released, "current": current, "groups": groups, "texts": texts, **known}
    )


def _describe(
    name: str, files: Mapping[str, TreeEntry], read: Callable[[TreeEntry], bytes]
) -> tuple[str, dict[str, Any]]:
    """Source digest (``""`` when unknown) and manifest entry of one variant."""
    row: dict[str, Any] = {"files": {path: [entry.sha256, entry.size] for path, entry in sorted(files.items())}}
    if METADATA not in files:
        return "", row
    data = read(files[METADATA])
    try:
        metadata = parse_metadata(data, where=f"build/{name}/{METADATA}")
    except MetadataError as e:
        raise DigestError("A variant of the hub has no readable metadata.", where=name, detail=str(e)) from e
    row |= {"digest": variant_digest(data), "id": metadata.id, "dirty": metadata.dirty}
    return str(metadata.builder.get("source-digest", "")), row


def _texts(files: Mapping[str, TreeEntry], read: Callable[[TreeEntry], bytes]) -> dict[str, str]:
    """Small text files by hash, so that a file shared by all variants is held once."""
    texts = {}
    for entry in files.values():
        if entry.size <= INLINE_LIMIT:
            data = read(entry)
            try:
                texts[entry.sha256] = data.decode("utf-8")
            except UnicodeDecodeError:
                continue
    return texts
