"""How a user spells a kernel: ``org/name``, ``org/name@v2``, ``org/name@<40 hex>``."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_loader.format.hubstore import HubStoreError, RepoId, is_commit_id, ref_folder


class ReferenceSyntaxError(ValueError):
    """The spelling is none; the text names the part that is wrong."""


@dataclass(frozen=True, slots=True)
class Reference:
    """A repository and, when the user named one, a branch or commit id. Equal for equal meanings."""

    repo: RepoId
    revision: str | None = None

    def __str__(self) -> str:
        return f"{self.repo}@{self.revision}" if self.revision else str(self.repo)

    @classmethod
    def parse(cls, text: str) -> Reference:
        """Read ``org/name`` or ``org/name@revision``.

        Raises:
            ReferenceSyntaxError: It is neither; the text says at which column.
        """
        repo, at, revision = text.partition("@")
        try:
            parsed = RepoId.parse(repo)
        except HubStoreError as e:
            raise ReferenceSyntaxError(f"{text!r}, column 1: {e}") from e
        if not at:
            return cls(parsed)
        try:
            check_revision(revision)
        except HubStoreError as e:
            raise ReferenceSyntaxError(f"{text!r}, column {len(repo) + 2}: {e}") from e
        return cls(parsed, revision)


def check_revision(revision: str) -> str:
    """Return a revision that is a commit id or a branch name.

    Raises:
        HubStoreError: It is neither.
    """
    if not is_commit_id(revision):
        ref_folder(revision)
    return revision
