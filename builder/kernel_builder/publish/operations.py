"""The new tree of a branch from its old tree and what is staged. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.publish.manifest import MANIFEST
from kernel_loader.format.digest import METADATA
from kernel_loader.format.hubstore import variants_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_loader.format.hubstore import TreeEntry


def next_tree(old: Mapping[str, TreeEntry], staged: Mapping[str, TreeEntry]) -> dict[str, TreeEntry]:
    """Replace the staged variants whole, keep the others, drop receipts of variants that are gone.

    The manifest is left out: it is made from the result.
    """
    replaced = tuple(f"build/{name}/" for name in variants_of(staged))
    tree = {path: entry for path, entry in old.items() if path != MANIFEST and not path.startswith(replaced)}
    tree |= staged
    digests = {tree[f"build/{name}/{METADATA}"].sha256 for name in variants_of(tree) if _has_metadata(tree, name)}
    wanted = {f"receipts/{digest}.json" for digest in digests}
    return {path: tree[path] for path in sorted(tree) if not path.startswith("receipts/") or path in wanted}


def _has_metadata(tree: Mapping[str, TreeEntry], name: str) -> bool:
    return f"build/{name}/{METADATA}" in tree


def operations(old: Mapping[str, TreeEntry], new: Mapping[str, TreeEntry]) -> tuple[tuple[str, str], ...]:
    """What turns one tree into another: ``add``, ``replace`` or ``remove``, and the path; by path."""
    done = {path: "replace" if path in old else "add" for path, entry in new.items() if old.get(path) != entry}
    done |= dict.fromkeys(old.keys() - new.keys(), "remove")
    return tuple((done[path], path) for path in sorted(done))
