"""Publishes a packaged kernel: its version branch moves to the whole new state in one step, or not at all."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from kernel_builder.errors import PublishError
from kernel_builder.package.provenance import builder_version
from kernel_builder.package.read import SOURCE_ARCHIVE
from kernel_builder.publish.api import differences, public_api, where_both_show
from kernel_builder.publish.branch import Branch
from kernel_builder.publish.content import inside, read_content
from kernel_builder.publish.folder import Repository, changed, entry_of
from kernel_builder.publish.gates import check_gates
from kernel_builder.publish.manifest import MANIFEST, manifest
from kernel_builder.publish.model import Outcome
from kernel_builder.publish.operations import next_tree, operations
from kernel_builder.publish.stage import variant_files
from kernel_builder.test.receipts import level_of, receipt_path
from kernel_loader.format.hubstore import Commit, repo_folder
from kernel_loader.format.versions import version_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from kernel_builder.check.model import Finding
    from kernel_builder.package.model import PackagedVariant
    from kernel_builder.publish.content import Content
    from kernel_loader.format.hubstore import RepoId, TreeEntry

_ATTEMPTS = 20
# How much a receipt says; a failure is never covered up.
_WEIGHT = {"C": 1, "B": 2, "A": 3, "failed": 4}


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


def publish(release: Release, hub: Path, *, dry_run: bool = False) -> Outcome:
    """Move the version branch of a folder hub; publishing the same again is a no-op.

    Args:
        release: What is published.
        hub: The hub's folder.
        dry_run: Only say what would be done.

    Raises:
        UsageError: There is no packaged variant.
        PublishError: A gate refuses, the hub cannot be written, or other writers won every attempt.
        CheckError: A variant does not keep its promises.
        DigestError: The hub, or the dist tree, is damaged.
    """
    if version_of(release.branch) not in (None, release.version):
        message = f"{release.branch} is the branch of another version than {release.version}."
        raise PublishError(message, where=str(release.repo_id), hint="see version and general.hub.branch in build.toml")
    repository = Repository(hub.absolute() / repo_folder(release.repo_id))
    content = read_content(release.root, version=release.version)
    for _ in range(_ATTEMPTS):
        attempt = _Attempt(release, content, Branch(repository, repository.head(release.branch)))
        outcome = attempt.outcome() if dry_run else attempt.move()
        if outcome is not None:
            return outcome
    raise PublishError(
        f"Other writers moved the branch {_ATTEMPTS} times meanwhile.",
        where=f"{repository.root}@{release.branch}",
        hint="publish again",
    )


class _Attempt:
    """A release on top of one head of its branch: planned and past every gate when it exists."""

    def __init__(self, release: Release, content: Content, branch: Branch) -> None:
        self._release, self._content, self._branch = release, content, branch
        self._adds = release.add_missing and bool(branch.variants)
        there = branch.variants if self._adds else ()
        self._chosen = [variant for variant in content.variants if variant.name not in there]
        self._files = self._new_files() if self._chosen else {}
        self._tree = self._new_tree() if self._chosen else dict(branch.tree)
        self._operations = operations(branch.tree, self._tree)
        self._untested = self._gates() if self._operations else ()

    def outcome(self) -> Outcome:
        """What would happen, or that nothing would."""
        return self._outcome("dry-run" if self._operations else "no-changes", self._branch.head.commit_id or "")

    def move(self) -> Outcome | None:
        """Do it; None when another writer was first."""
        if not self._operations:
            return self.outcome()
        repository, head, release = self._branch.repository, self._branch.head, self._release
        commit = Commit(
            tree=self._tree,
            parent=head.commit_id,
            author=f"kernel-builder {builder_version()}",
            message=f"{'Add' if self._adds else 'Publish'} {len(self._chosen)} variants of {release.repo_id} "
            f"{release.branch}",
        )
        try:
            repository.add(self._files)
            moved = repository.advance(release.branch, head, commit)
        except OSError as error:
            raise PublishError(
                f"The hub cannot be written: {error.strerror or error}.",
                where=str(error.filename or repository.root),
                hint="the branch is as it was; publish again",
            ) from error
        return None if moved is None else self._outcome("committed", moved)

    def _outcome(self, status: Literal["no-changes", "committed", "dry-run"], commit: str) -> Outcome:
        added, removed, kept = changed(self._branch.tree, self._tree)
        return Outcome(
            status=status,
            repo=str(self._release.repo_id),
            branch=self._release.branch,
            commit=commit,
            added=added,
            removed=removed,
            kept=kept,
            untested=self._untested,
            dirty=_dirty(self._chosen),
            operations=self._operations,
            second_group=self._content.digest if self._is_second and self._chosen else "",
        )

    @property
    def _is_second(self) -> bool:
        """Whether variants from these sources will stand beside those of the release."""
        return self._adds and self._content.digest != self._branch.current

    @property
    def _replaces(self) -> bool:
        """Whether nothing of the branch stays: other sources, or variants that were only staged."""
        return not self._adds and not (self._branch.released and self._content.digest == self._branch.current)

    def _new_files(self) -> dict[str, bytes]:
        """What the chosen variants bring into the branch, by path; the manifest is still to come."""
        files = {path: data for variant in self._chosen for path, data in variant_files(variant).items()}
        for variant in self._chosen:
            receipt, path = receipt_path(variant), f"receipts/{variant.digest}.json"
            weight = _WEIGHT.get(level_of(receipt), 0)
            if weight and weight >= _WEIGHT.get(self._branch.level_at(path), 0):
                files[path] = receipt.read_bytes()
        archive = f"source-{self._content.digest[:12]}.tar.gz" if self._is_second else SOURCE_ARCHIVE
        if not (self._adds and archive in self._branch.tree):
            files[archive] = self._content.archive
        return files

    def _new_tree(self) -> dict[str, TreeEntry]:
        old: Mapping[str, TreeEntry] = self._branch.tree
        if self._replaces:
            old = {p: e for p, e in old.items() if not p.startswith(("build/", "receipts/", "source-"))}
        tree = next_tree(old, {path: entry_of(data) for path, data in self._files.items()})
        new = {entry_of(data).sha256: data for data in self._files.values()}
        self._files[MANIFEST] = manifest(
            tree,
            lambda entry: new[entry.sha256] if entry.sha256 in new else self._branch.repository.read(entry),
            current=self._branch.current if self._is_second else self._content.digest,
            # What is added beside staged variants does not make a release of them.
            released=self._branch.released or not self._adds,
            api=self._content.api.to_json(),
        )
        return {**tree, MANIFEST: entry_of(self._files[MANIFEST])}

    def _gates(self) -> tuple[str, ...]:
        self._check_api()
        self._check_fewer()
        release = self._release
        return check_gates(self._chosen, release.allowed, release.check, published=self._branch.receipts())

    def _check_api(self) -> None:
        """The API of a released version does not change, and variants that are added have the API of the others."""
        if not (self._branch.released or self._adds):
            return
        lines = self._api_differences()
        if not lines or ("api-change" in self._release.allowed and not self._adds):
            return
        override = "" if self._adds else ", or --allow-api-change"
        raise PublishError(
            f"The public API differs from that of {self._release.repo_id}@{self._release.branch}.",
            where=str(self._release.root),
            hint=f"it needs v{self._next_free}: set version = {self._next_free} in build.toml{override}",
            detail="\n".join(lines),
        )

    def _api_differences(self) -> list[str]:
        before = self._branch.recorded_api()
        if before is not None:
            return differences(before, self._content.api)
        first = self._chosen[0]
        shown = public_api(inside(first), {})
        return differences(*where_both_show(self._branch.shown_api(first.metadata.backend), shown))

    @property
    def _next_free(self) -> int:
        return max((self._release.version, *self._branch.repository.versions())) + 1

    def _check_fewer(self) -> None:
        """A new state of the sources replaces every variant, so none may be forgotten."""
        if not (self._replaces and self._branch.released) or "fewer" in self._release.allowed:
            return
        lost = sorted(set(self._branch.variants) - {variant.name for variant in self._chosen})
        if lost:
            raise PublishError(
                f"The branch would lose {', '.join(lost)}, which these sources were not built for.",
                where=f"{self._release.repo_id}@{self._release.branch}",
                hint="build them too, or --allow-fewer; --add-missing only adds",
            )


def _dirty(variants: Sequence[PackagedVariant]) -> bool | None:
    known = [variant.metadata.dirty for variant in variants if variant.metadata.dirty is not None]
    return any(known) if known else None
