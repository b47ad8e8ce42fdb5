"""Publishes a packaged kernel: its version branch moves to the whole new state in one step, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from kernel_builder.errors import PublishError
from kernel_builder.package.provenance import builder_version
from kernel_builder.package.read import SOURCE_ARCHIVE, packaged_variants
from kernel_builder.publish.api import differences, public_api
from kernel_builder.publish.branch import Branch, source_digest_of, unpacked
from kernel_builder.publish.folder import Repository, changed, entry_of
from kernel_builder.publish.gates import check_gates
from kernel_builder.publish.manifest import MANIFEST, manifest
from kernel_builder.publish.model import Outcome
from kernel_builder.publish.operations import next_tree, operations
from kernel_builder.publish.stage import variant_files
from kernel_builder.test.receipts import receipt_path
from kernel_loader.format.hubstore import Commit, repo_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from kernel_builder.check.model import Finding
    from kernel_builder.package.model import PackagedVariant
    from kernel_builder.publish.api import PublicApi
    from kernel_loader.format.hubstore import RepoId, TreeEntry

_ATTEMPTS = 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Release:
    """What is to be published, and where.

    Attributes:
        root: ``dist/<kernel>``.
        version: Major version of the kernel; packaged variants of another are refused.
        add_missing: Add variants that the branch lacks, and touch nothing else.
        allowed: Gates that the user overrides, see ``gates.FLAGS``.
        check: Gives what ``check`` finds in a packaged variant.
    """

    root: Path
    repo_id: RepoId
    branch: str
    version: int
    add_missing: bool = False
    allowed: frozenset[str] = frozenset()
    check: Callable[[PackagedVariant], Sequence[Finding]] = field(default=lambda _: ())


@dataclass(frozen=True, kw_only=True, slots=True)
class _Content:
    """The packaged kernel: its variants, the one state of sources they were built from, and what callers rely on."""

    variants: tuple[PackagedVariant, ...]
    source: bytes
    digest: str
    api: PublicApi


def publish(release: Release, hub: Path, *, dry_run: bool = False) -> Outcome:
    """Move the version branch of a folder hub; publishing the same again is a no-op.

    Args:
        release: What is published.
        hub: The hub's folder.
        dry_run: Only say what would be done.

    Raises:
        PublishError: A gate refuses, or other writers won every attempt.
        CheckError: A variant does not keep its promises.
        DigestError: The hub, or the dist tree, is damaged.
    """
    repository = Repository(hub.absolute() / repo_folder(release.repo_id))
    content = _read(release)
    for _ in range(_ATTEMPTS):
        branch = Branch(repository, repository.head(release.branch))
        outcome = _attempt(release, content, branch, dry_run=dry_run)
        if outcome is not None:
            return outcome
    raise PublishError(
        f"Other writers moved the branch {_ATTEMPTS} times meanwhile.",
        where=f"{repository.root}@{release.branch}",
        hint="publish again",
    )


def _attempt(release: Release, content: _Content, branch: Branch, *, dry_run: bool) -> Outcome | None:
    """Publish on top of one head; None when another writer was first."""
    chosen = _chosen(release, content, branch)
    untested: tuple[str, ...] = ()
    files: dict[str, bytes] = {}
    if chosen:
        _check_api(release, content, branch)
        _check_fewer(release, content, branch)
        untested = check_gates(chosen, release.allowed, release.check, proven=branch.proven())
        files = _files(release, content, branch, chosen)
    tree = _tree(release, content, branch, files)
    done = operations(branch.tree, tree)
    second = content.digest if _is_second(release, content, branch) and chosen else ""
    commit = branch.head.commit_id or ""
    if done and not dry_run:
        moved = _move(release, content, branch, files, tree, chosen)
        if moved is None:
            return None
        commit = moved
    added, removed, kept = changed(branch.tree, tree)
    return Outcome(
        status="no-changes" if not done else "dry-run" if dry_run else "committed",
        repo=str(release.repo_id),
        branch=release.branch,
        commit=commit,
        added=added,
        removed=removed,
        kept=kept,
        untested=untested,
        dirty=any(variant.metadata.dirty for variant in chosen) or None,
        operations=done,
        second_group=second,
    )


def _read(release: Release) -> _Content:
    variants = packaged_variants(release.root)
    other = [variant for variant in variants if variant.metadata.version != release.version]
    if other:
        raise PublishError(
            f"It is of version {other[0].metadata.version}, not {release.version}.",
            where=str(other[0].path),
            hint="build again",
        )
    digests = sorted({source_digest_of(variant.metadata) for variant in variants})
    if len(digests) > 1:
        raise PublishError(
            f"The packaged variants were built from {len(digests)} states of the sources.",
            where=str(release.root),
            hint="build all of them again with --prune",
        )
    source = (release.root / SOURCE_ARCHIVE).read_bytes()
    python = {p.relative_to(variants[0].path).as_posix(): p.read_bytes() for p in variants[0].path.rglob("*.py")}
    return _Content(variants=variants, source=source, digest=digests[0], api=public_api(python, unpacked(source)))


def _chosen(release: Release, content: _Content, branch: Branch) -> list[PackagedVariant]:
    there = branch.variants if release.add_missing else ()
    return [variant for variant in content.variants if variant.name not in there]


def _is_second(release: Release, content: _Content, branch: Branch) -> bool:
    """Whether variants from these sources stand beside others of the branch."""
    return release.add_missing and bool(branch.variants) and content.digest != branch.current


def _check_api(release: Release, content: _Content, branch: Branch) -> None:
    """The API of a released version does not change, and variants that are added have the API of the others."""
    released = bool(branch.manifest.get("released"))
    before = branch.api()
    if before is None or not (released or release.add_missing):
        return
    lines = differences(before, content.api)
    if not lines or ("api-change" in release.allowed and not release.add_missing):
        return
    raise PublishError(
        f"The public API differs from that of {release.repo_id}@{release.branch}.",
        where=str(release.root),
        hint=f"set version = {release.version + 1} in build.toml"
        + ("" if release.add_missing else ", or --allow-api-change"),
        detail="\n".join(lines),
    )


def _check_fewer(release: Release, content: _Content, branch: Branch) -> None:
    """A new state of the sources replaces every variant, so none may be forgotten."""
    if release.add_missing or content.digest == branch.current or "fewer" in release.allowed:
        return
    lost = sorted(set(branch.variants) - {variant.name for variant in content.variants})
    if lost and branch.manifest.get("released"):
        raise PublishError(
            f"The branch would lose {', '.join(lost)}, which these sources were not built for.",
            where=f"{release.repo_id}@{release.branch}",
            hint="build them too, or --allow-fewer; --add-missing only adds",
        )


def _files(release: Release, content: _Content, branch: Branch, chosen: Sequence[PackagedVariant]) -> dict[str, bytes]:
    """What the variants bring into the branch, by path."""
    files = {path: data for variant in chosen for path, data in variant_files(variant).items()}
    receipts = {f"receipts/{variant.digest}.json": receipt_path(variant) for variant in chosen}
    files |= {path: receipt.read_bytes() for path, receipt in receipts.items() if receipt.is_file()}
    second = _is_second(release, content, branch)
    files[f"source-{content.digest[:12]}.tar.gz" if second else SOURCE_ARCHIVE] = content.source
    return files


def _tree(release: Release, content: _Content, branch: Branch, files: dict[str, bytes]) -> dict[str, TreeEntry]:
    if not files:
        return dict(branch.tree)
    old = branch.tree
    if not release.add_missing and content.digest != branch.current:
        # Another state of the sources: nothing of the old one stays.
        old = {p: e for p, e in old.items() if not p.startswith(("build/", "receipts/", "source-"))}
    tree = next_tree(old, {path: entry_of(data) for path, data in files.items()})
    text = _manifest(release, content, branch, files, tree)
    return {**tree, MANIFEST: entry_of(text)}


def _manifest(
    release: Release, content: _Content, branch: Branch, files: dict[str, bytes], tree: dict[str, TreeEntry]
) -> bytes:
    new = {entry_of(data).sha256: data for data in files.values()}
    current = branch.current if _is_second(release, content, branch) else content.digest
    return manifest(
        {path: entry for path, entry in tree.items() if path != MANIFEST},
        lambda entry: new[entry.sha256] if entry.sha256 in new else branch.repository.read(entry),
        current=current,
        released=True,
        api=content.api.to_json(),
    )


def _move(
    release: Release,
    content: _Content,
    branch: Branch,
    files: dict[str, bytes],
    tree: dict[str, TreeEntry],
    chosen: Sequence[PackagedVariant],
) -> str | None:
    branch.repository.add({**files, MANIFEST: _manifest(release, content, branch, files, tree)})
    verb = "Add" if release.add_missing else "Publish"
    return branch.repository.advance(
        release.branch,
        branch.head,
        Commit(
            tree=tree,
            parent=branch.head.commit_id,
            author=f"kernel-builder {builder_version()}",
            message=f"{verb} {len(chosen)} variants of {release.repo_id} {release.branch}",
        ),
    )
