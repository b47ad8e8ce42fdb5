"""The public functions. Names and arguments are those of Hugging Face's ``kernels``, with what it lacks as keywords."""

from __future__ import annotations

import logging
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_loader.dependencies import check_dependencies
from kernel_loader.errors import NoCompatibleVariant, NotFoundError
from kernel_loader.format.versions import version_of
from kernel_loader.importing import LoadedKernel, RepoInfo, import_kernel, loaded_kernels
from kernel_loader.install import Installed, Wish, choose, install
from kernel_loader.probe import probe
from kernel_loader.resolve import make_reference, open_source
from kernel_loader.settings import Settings
from kernel_loader.sources import CachedSource, HubSource, LocalSource, Source

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from types import ModuleType

    from kernel_loader.select import Decision

_log = logging.getLogger("kernel_loader")


def get_kernel(
    repo_id: str,
    revision: str | None = None,
    version: int | None = None,
    backend: str | None = None,
    user_agent: str | Mapping[str, Any] | None = None,  # noqa: ARG001 - nothing is sent from a folder hub
    trust_remote_code: bool | list[str] = False,  # noqa: ARG001, FBT001, FBT002 - a named folder is trusted
    *,
    hub: str | os.PathLike[str] | None = None,
    strict: bool = False,
    check_arch: bool = True,
) -> ModuleType:
    """Load a kernel: choose the variant that fits, fetch and verify it, import it.

    Naming a hub folder, by argument or environment, or a LOCAL_KERNELS folder, is consent to run the code in it.

    Args:
        repo_id: ``org/name``, also ``org/name@v2`` or ``org/name@<commit>``.
        revision: Branch or commit id. Exactly one of revision and version must be given.
        version: Major version of the kernel's API; the newest build of it is taken.
        backend: ``"cpu"`` takes a CPU variant on a GPU build of torch; None means torch's own backend.
        user_agent: Accepted for compatibility.
        trust_remote_code: Accepted for compatibility.
        hub: Folder hub to load from; None means KERNEL_LOADER_HUB.
        strict: Hash every file even if none changed since it was last hashed.
        check_arch: Refuse a kernel without code for the visible GPUs.

    Raises:
        UsageError: The arguments make no sense, or no hub is named.
        NotFoundError: The hub, kernel or version is not there.
        NoCompatibleVariant: No variant fits; the text has the nearest miss first.
        DigestMismatch: Bytes are not what was published; nothing was imported.
        LoadFailed: The import failed.
    """
    wish = Wish(backend=backend, strict=strict, check_arch=check_arch)
    source, installed = _install(repo_id, revision, version, hub, wish)
    return import_kernel(
        installed.verified,
        installed.metadata,
        variant=installed.variant,
        repo_info=_repo_info(source),
        env=probe(),
    )


def get_local_kernel(
    repo_path: str | os.PathLike[str],
    backend: str | None = None,
    *,
    trust_remote_code: bool | list[str] = False,  # noqa: ARG001 - a named folder is trusted
    user_agent: str | Mapping[str, Any] | None = None,  # noqa: ARG001
    strict: bool = False,
    check_arch: bool = True,
) -> ModuleType:
    """Load a kernel from a folder; naming it is consent to run the code in it.

    Args:
        repo_path: A folder with ``build/``, its ``build`` folder, or one variant folder.
        backend: See ``get_kernel``.
        trust_remote_code: Accepted for compatibility.
        user_agent: Accepted for compatibility.
        strict: See ``get_kernel``.
        check_arch: See ``get_kernel``.

    Raises:
        LoaderError: See ``get_kernel``.
    """
    env, wish = probe(), Wish(backend=backend, strict=strict, check_arch=check_arch)
    installed = install(LocalSource.find(Path(repo_path)), env, wish, Settings.from_environment())
    return import_kernel(installed.verified, installed.metadata, variant=installed.variant, repo_info=None, env=env)


def has_kernel(
    repo_id: str,
    revision: str | None = None,
    version: int | None = None,
    backend: str | None = None,
    trust_remote_code: bool | list[str] = False,  # noqa: ARG001, FBT001, FBT002
    *,
    hub: str | os.PathLike[str] | None = None,
    check_arch: bool = True,
) -> bool:
    """Whether ``get_kernel`` would find a variant that fits. Arguments are those of ``get_kernel``.

    Raises:
        LoaderError: The question makes no sense, or the hub's data is damaged.
    """
    reference = make_reference(repo_id, revision, version)
    try:
        source = open_source(reference, hub, Settings.from_environment())
        return choose(source, probe(), Wish(backend=backend, check_arch=check_arch)).best is not None
    except (NotFoundError, NoCompatibleVariant):
        return False


def get_kernel_variants(
    repo_id: str,
    *,
    revision: str | None = None,
    version: int | None = None,
    backend: str | None = None,
    hub: str | os.PathLike[str] | None = None,
    check_arch: bool = True,
) -> list[Decision]:
    """What is decided about each variant: accepted ones in order of preference, then rejected ones, nearest first.

    Raises:
        LoaderError: See ``get_kernel``.
    """
    source = open_source(make_reference(repo_id, revision, version), hub, Settings.from_environment())
    return list(choose(source, probe(), Wish(backend=backend, check_arch=check_arch)).decisions)


def install_kernel(
    repo_id: str,
    *,
    revision: str | None = None,
    version: int | None = None,
    backend: str | None = None,
    local_files_only: bool = False,
    user_agent: str | Mapping[str, Any] | None = None,  # noqa: ARG001
    trust_remote_code: bool | list[str] = False,  # noqa: ARG001
    validate_dependencies: bool = False,
    hub: str | os.PathLike[str] | None = None,
    strict: bool = False,
    check_arch: bool = True,
) -> Path:
    """Fetch and verify a kernel without importing it; returns the variant's folder.

    Args:
        repo_id: See ``get_kernel``, as are the arguments not named here.
        revision: Branch or commit id.
        version: Major version.
        backend: Backend of the variant.
        local_files_only: Take it from the cache, whatever hub is named.
        user_agent: Accepted for compatibility.
        trust_remote_code: Accepted for compatibility.
        validate_dependencies: Also check the Python packages that it needs.
        hub: Folder hub.
        strict: Hash every file.
        check_arch: Refuse a kernel without code for the visible GPUs.

    Raises:
        LoaderError: See ``get_kernel``.
    """
    wish = Wish(backend=backend, strict=strict, check_arch=check_arch)
    _, installed = _install(repo_id, revision, version, hub, wish, local_files_only=local_files_only)
    if validate_dependencies:
        check_dependencies(installed.metadata, where=f"{repo_id}, variant {installed.variant}")
    return installed.verified.folder


def get_loaded_kernels() -> list[LoadedKernel]:
    """Every kernel that this process has loaded: metadata, module, repository and commit, variant, content hash."""
    return loaded_kernels()


def _install(
    repo_id: str,
    revision: str | None,
    version: int | None,
    hub: str | os.PathLike[str] | None,
    wish: Wish,
    *,
    local_files_only: bool = False,
) -> tuple[Source, Installed]:
    reference, settings = make_reference(repo_id, revision, version), Settings.from_environment()
    if local_files_only:
        hub, settings = None, replace(settings, hub=None, offline=True)
    source = open_source(reference, hub, settings)
    installed = install(source, probe(), wish, settings)
    _note_versions(source, installed, version_of(reference.revision or ""))
    if installed.metadata.dirty and not isinstance(source, LocalSource):
        _log.warning("%s: %s was built from uncommitted sources", source.label, installed.variant)
    return source, installed


def _note_versions(source: Source, installed: Installed, version: int | None) -> None:
    if version is None:
        return
    if isinstance(source, LocalSource) and installed.metadata.version != version:
        _log.warning("%s holds version %d, wanted is %d", source.label, installed.metadata.version, version)
    if isinstance(source, HubSource) and (newest := source.repo.versions()[-1]) > version:
        _log.info("%s: there is a version %d", source.label, newest)


def _repo_info(source: Source) -> RepoInfo | None:
    if isinstance(source, HubSource):
        return RepoInfo(str(source.repo.repo), source.commit)
    return RepoInfo(str(source.repo), source.commit) if isinstance(source, CachedSource) else None
