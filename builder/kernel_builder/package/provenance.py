"""Which commit the sources of a kernel are at, asked from git."""

from __future__ import annotations

import re
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING, Any

from kernel_builder.processes import find_program, run

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kernel_builder.settings import Settings

_OID = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")


@dataclass(frozen=True, kw_only=True, slots=True)
class GitState:
    """The last commit that touched a kernel's folders, and whether they differ from it (untracked files count)."""

    commit: str
    dirty: bool


def git_state(folders: Sequence[Path], settings: Settings) -> GitState | None:
    """State of the first folder's repository, None when git is missing or the folder is in no repository.

    The commit is the last one that touched ``folders``, so unrelated commits do not change what is packaged; a shallow
    clone may not hold that commit and answers with its oldest one.
    """
    git = find_program("git", settings.path)
    if git is None or not folders:
        return None

    def ask(*arguments: str) -> str | None:
        done = run([git, "-C", str(folders[0]), *arguments], env={"GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"})
        return done.stdout.strip() if done.status == 0 else None

    paths = [str(folder) for folder in folders]
    commit = ask("log", "-1", "--format=%H", "--", *paths) or ask("rev-parse", "HEAD")
    changes = ask("status", "--porcelain", "--untracked-files=normal", "--", *paths)
    if commit is None or changes is None or not _OID.fullmatch(commit):
        return None
    return GitState(commit=commit, dirty=bool(changes))


def builder_version() -> str:
    """Version of this package; ``0`` when it runs from a folder that was never installed."""
    try:
        return version("kernel-builder")
    except PackageNotFoundError:
        return "0"


def provenance_of(state: GitState | None) -> dict[str, Any]:
    """The ``provenance`` table of metadata.json."""
    provenance: dict[str, Any] = {"kernel-builder": {"version": builder_version()}}
    if state is not None:
        provenance["kernel"] = {"commit": state.commit, "dirty": state.dirty}
    return provenance
