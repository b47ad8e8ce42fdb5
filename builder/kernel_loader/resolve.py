"""What the caller names → the source of its variants: a local folder, a folder hub, or the cache."""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_loader.cache import Cache
from kernel_loader.errors import DigestMismatch, NotFoundError, UsageError
from kernel_loader.format.hubstore import HubStoreError, commit_id, is_commit_id
from kernel_loader.format.references import Reference, check_revision
from kernel_loader.format.versions import branch_of
from kernel_loader.hub import HubRepo, parse_tree
from kernel_loader.sources import CachedSource, HubSource, LocalSource, Source

if TYPE_CHECKING:
    from kernel_loader.settings import Settings

_log = logging.getLogger("kernel_loader")
_NAME_ONE = "name a folder hub: get_kernel(…, hub='/path/to/hub'), or KERNEL_LOADER_HUB=/path/to/hub"


def make_reference(repo_id: str, revision: str | None, version: int | None) -> Reference:
    """One canonical value for every way to name a kernel at a version.

    Raises:
        UsageError: The repository id is malformed, or not exactly one of version and revision is given.
    """
    try:
        reference = Reference.parse(repo_id)
        given = [value for value in (reference.revision, revision, version) if value is not None]
        if len(given) > 1:
            raise UsageError("Only one of version and revision may be given.", where=repo_id)
        if version is not None:
            return Reference(reference.repo, _branch(version, repo_id))
        return Reference(reference.repo, reference.revision or (None if revision is None else check_revision(revision)))
    except (HubStoreError, ValueError) as e:
        if isinstance(e, UsageError):
            raise
        raise UsageError(f"Not a kernel: {e}.", hint="spell it org/name, org/name@v2 or org/name@<commit>") from e


def _branch(version: int, repo_id: str) -> str:
    if not isinstance(version, int) or isinstance(version, bool) or version < 0:
        raise UsageError(f"A version is a whole number such as 1, not {version!r}.", where=repo_id)
    return branch_of(version)


def open_source(reference: Reference, hub: str | os.PathLike[str] | None, settings: Settings) -> Source:
    """Find the variants of a kernel. LOCAL_KERNELS replaces any hub; naming a folder is consent to run what it holds.

    Raises:
        UsageError: No hub is named, or neither version nor revision.
        NotFoundError: The kernel, its version or its cached copy is not there.
        DigestMismatch: The hub's commit is not what its id says.
    """
    override = settings.local_kernels.get(str(reference.repo))
    if override is not None:
        _log.info("%s: LOCAL_KERNELS replaces it by %s", reference, override)
        return LocalSource.find(override)
    if reference.revision is None:
        hint = f"get_kernel({str(reference.repo)!r}, version=1) takes the newest build of version 1"
        raise UsageError("Either version or revision must be given.", where=str(reference.repo), hint=hint)
    folder = _hub_folder(hub, settings)
    if folder is not None and folder.is_dir():
        return HubSource.open(HubRepo(folder, reference.repo), reference.revision)
    if folder is None and not settings.offline:
        raise UsageError("No hub is named.", where=str(reference), hint=_NAME_ONE)
    return _from_cache(reference, reference.revision, folder, settings)


def open_repo(reference: Reference, hub: str | os.PathLike[str] | None, settings: Settings) -> HubRepo:
    """A kernel's repository in a folder hub.

    Raises:
        UsageError: No hub is named.
        NotFoundError: The hub is not there.
    """
    folder = _hub_folder(hub, settings)
    if folder is None:
        raise UsageError("No hub is named.", where=str(reference), hint=_NAME_ONE)
    if not folder.is_dir():
        raise NotFoundError("The hub is not there.", where=str(folder), hint=_NAME_ONE)
    return HubRepo(folder, reference.repo)


def _hub_folder(hub: str | os.PathLike[str] | None, settings: Settings) -> Path | None:
    named = hub if hub is not None else settings.hub
    if named is None:
        return None
    text = os.fspath(named)
    if "://" in text:
        raise UsageError(f"{text} is no folder; this version loads from folder hubs only.", hint=_NAME_ONE)
    return Path(text).expanduser().absolute()


def _from_cache(reference: Reference, revision: str, folder: Path | None, settings: Settings) -> CachedSource:
    cached = Cache(settings.cache).repo(reference.repo)
    commit = revision if is_commit_id(revision) else cached.head(revision)
    absent = "no hub is named" if folder is None else f"the hub {folder} is not there"
    if commit is None or not cached.builds(commit).is_dir():
        raise NotFoundError(
            f"{reference} is not in the cache, and {absent}.", where=str(settings.cache), hint=_NAME_ONE
        )
    _log.warning("%s: %s, so commit %s from the cache is used", reference, absent, commit)
    data = cached.commit(commit)
    if data is not None and commit_id(data) != commit:
        raise DigestMismatch(f"The cached commit {commit} has other bytes than its id says.", where=str(cached.folder))
    tree = None if data is None else parse_tree(data, where=str(cached.folder)).tree
    return CachedSource(repo=reference.repo, cached=cached, revision=revision, commit=commit, tree=tree)
