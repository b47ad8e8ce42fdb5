"""Stages a distribution into a folder hub, under the development profile: no gate but the checks already passed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.errors import DigestError, PublishError, SpecError
from kernel_builder.package.provenance import builder_version
from kernel_builder.package.read import SOURCE_ARCHIVE
from kernel_builder.publish.branch import Branch
from kernel_builder.publish.folder import Repository, changed, entry_of
from kernel_builder.publish.manifest import MANIFEST, manifest
from kernel_builder.publish.model import Outcome
from kernel_builder.publish.operations import next_tree
from kernel_builder.test.receipts import level_of, receipt_path
from kernel_loader.format.digest import METADATA, Digest, compare, digest_of, variant_digest
from kernel_loader.format.hubstore import Commit, HubStoreError, RepoId, ref_folder, repo_folder
from kernel_loader.format.versions import branch_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernel_builder.package.model import Distribution, PackagedVariant
    from kernel_builder.spec.model import Kernel

_ATTEMPTS = 20


def stage(distribution: Distribution, hub: Path) -> Outcome:
    """Move the kernel's version branch to a state that holds this distribution; a second time is a no-op.

    Raises:
        SpecError: build.toml names no usable repository.
        PublishError: There is nothing to stage, the branch is a release, or other writers won every attempt.
        DigestError: The hub, or the dist tree, is damaged.
    """
    kernel = distribution.kernel
    repo_id, branch = target_of(kernel)
    if not distribution.variants:
        raise PublishError("There is no variant to stage.", where=str(repo_id), hint="see what check found")
    for variant in distribution.variants:
        if variant.metadata.builder.get("dev"):
            raise PublishError("It was built with --dev.", where=str(variant.path), hint="build it without")
    repository = Repository(hub.absolute() / repo_folder(repo_id))
    staged = {path: data for variant in distribution.variants for path, data in variant_files(variant).items()}
    staged |= _receipts(distribution)
    staged[SOURCE_ARCHIVE] = (distribution.root / SOURCE_ARCHIVE).read_bytes()
    message = f"Stage {kernel.name} {branch}: {len(distribution.variants)} variants"
    moved, commit, (added, removed, kept) = _advance(
        repository, branch, staged, message, current=distribution.source_digest
    )
    _stage_card(repository, distribution)
    return Outcome(
        status="committed" if moved else "no-changes",
        repo=str(repo_id),
        branch=branch,
        commit=commit,
        added=added,
        removed=removed,
        kept=kept,
        untested=_untested(distribution),
        dirty=distribution.dirty,
    )


def target_of(kernel: Kernel) -> tuple[RepoId, str]:
    """Repository and branch that a kernel is staged to, from its build.toml.

    Raises:
        SpecError: It names none, or one that a hub cannot hold.
    """
    where = f"{kernel.root / 'build.toml'}: general.hub"
    if kernel.hub.repo_id is None:
        hint = f'add [general.hub] with repo-id = "your-org/{kernel.name}"'
        raise SpecError("The kernel names no repository to stage into.", where=f"{where}.repo-id", hint=hint)
    try:
        repo_id, branch = RepoId.parse(kernel.hub.repo_id), kernel.hub.branch or branch_of(kernel.version)
        ref_folder(branch)
    except HubStoreError as e:
        raise SpecError(f"The kernel names a repository that a hub cannot hold: {e}.", where=where) from e
    return repo_id, branch


def variant_files(variant: PackagedVariant) -> Mapping[str, bytes]:
    """Files of one variant by their path in the branch: exactly those that its metadata lists."""
    data = (variant.path / METADATA).read_bytes()
    if variant_digest(data) != variant.digest:
        raise DigestError("The variant changed after it was packaged.", where=str(variant.path), hint="build again")
    listed = variant.metadata.digest or Digest()
    files = {name: path.read_bytes() for name in listed.files if (path := variant.path / name).is_file()}
    violations = compare(listed, digest_of(files, listed.algorithm))
    if violations:
        raise DigestError(
            f"The packaged variant is damaged: {violations[0]}.", where=str(variant.path), hint="build again"
        )
    return {f"build/{variant.name}/{name}": content for name, content in {**files, METADATA: data}.items()}


def _receipts(distribution: Distribution) -> dict[str, bytes]:
    """Receipts of the staged variants by their path in the branch."""
    paths = [receipt_path(variant) for variant in distribution.variants]
    return {f"receipts/{path.name}": path.read_bytes() for path in paths if path.is_file()}


def _untested(distribution: Distribution) -> tuple[str, ...]:
    proven = ("A", "B")
    return tuple(v.name for v in distribution.variants if level_of(receipt_path(v)) not in proven)


def _advance(
    repository: Repository, branch: str, files: Mapping[str, bytes], message: str, *, current: str | None
) -> tuple[bool, str, tuple[int, int, int]]:
    """Move a branch; returns whether it moved, its head, and the numbers of added, removed and kept files."""
    staged = {path: entry_of(data) for path, data in files.items()}
    for _ in range(_ATTEMPTS):
        head = repository.head(branch)
        tree = next_tree(head.commit.tree, staged)
        if current is not None and Branch(repository, head).released:
            if tree.items() <= head.commit.tree.items():
                return False, str(head.commit_id), changed(head.commit.tree, head.commit.tree)
            raise PublishError(
                "The branch is a release, which staging must not change.",
                where=f"{repository.root}@{branch}",
                hint="stage into another folder, or kernel-builder publish",
            )
        repository.add(files)
        if current is not None:
            tree |= repository.add({MANIFEST: manifest(tree, repository.read, current=current)})
        counts = changed(head.commit.tree, tree)
        if head.commit_id is not None and tree == head.commit.tree:
            return False, head.commit_id, counts
        author = f"kernel-builder {builder_version()}"
        commit = Commit(tree=tree, parent=head.commit_id, author=author, message=message)
        moved = repository.advance(branch, head, commit)
        if moved is not None:
            return True, moved, counts
    raise PublishError(
        f"Other writers moved the branch {_ATTEMPTS} times meanwhile.",
        where=f"{repository.root}@{branch}",
        hint="stage again",
    )


def _stage_card(repository: Repository, distribution: Distribution) -> None:
    """README.md on ``main`` is the card of the highest version."""
    card = distribution.root / "README.md"
    if card.is_file() and distribution.kernel.version >= max(repository.versions(), default=0):
        _advance(
            repository, "main", {"README.md": card.read_bytes()}, f"Card of {distribution.kernel.name}", current=None
        )
