"""What publishing returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal


@dataclass(frozen=True, kw_only=True, slots=True)
class Outcome:
    """What happened to a branch.

    Attributes:
        status: ``no-changes`` when the branch already held exactly this.
        repo: ``org/name``.
        commit: Head of the branch afterwards.
        added, removed, kept: Number of files that are new or changed, gone, and as before.
        untested: Staged variants without a receipt of level A or B that says ``passed``.
        dirty: Whether the sources differ from their commit, None when there is no repository.
        operations: ``add``, ``replace`` or ``remove``, and the path, of every file that differs.
        second_group: Source digest of variants that were added to a release from other sources.
    """

    status: Literal["no-changes", "committed", "dry-run"]
    repo: str
    branch: str
    commit: str
    added: int
    removed: int
    kept: int
    untested: tuple[str, ...] = ()
    dirty: bool | None = None
    operations: tuple[tuple[str, str], ...] = ()
    second_group: str = ""

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain data."""
        return {
            "status": self.status,
            "repo": self.repo,
            "branch": self.branch,
            "commit": self.commit,
            "files": {"added": self.added, "removed": self.removed, "kept": self.kept},
            "untested": list(self.untested),
            "dirty": self.dirty,
            "operations": [{"operation": operation, "path": path} for operation, path in self.operations],
            "second-source-digest-group": self.second_group or None,
        }
