"""A verified folder → a module under the kernel's id, once per process."""

from __future__ import annotations

import importlib
import importlib.util
import logging
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_loader.dependencies import check_dependencies
from kernel_loader.errors import KernelConflict, LoaderError, LoadFailed
from kernel_loader.failures import explain
from kernel_loader.finder import FINDER, Mount, install_finder

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import ModuleType

    from kernel_loader.environment import Environment
    from kernel_loader.format.metadata import Metadata
    from kernel_loader.verify import Verified

_log = logging.getLogger("kernel_loader")


@dataclass(frozen=True, slots=True)
class RepoInfo:
    """Where a kernel came from: repository and commit."""

    repo_id: str
    revision: str


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedKernel:
    """One kernel of this process.

    Attributes:
        repo_info: Repository and commit, None for kernels from a local folder.
        variant: Name of the variant folder.
        identity: Hash of the metadata and of every file's hash: equal only for equal content.
    """

    metadata: Metadata
    module: ModuleType
    repo_info: RepoInfo | None
    variant: str
    identity: str


_LOADED: dict[str, LoadedKernel] = {}
_REGISTRY_LOCK = threading.Lock()
_KERNEL_LOCKS: dict[str, threading.RLock] = {}


def loaded_kernels() -> list[LoadedKernel]:
    """Every kernel that this process has loaded, in order."""
    return list(_LOADED.values())


def import_kernel(
    verified: Verified, metadata: Metadata, *, variant: str, repo_info: RepoInfo | None, env: Environment
) -> ModuleType:
    """Import a verified kernel, or return the module when exactly this kernel is already loaded.

    Raises:
        KernelConflict: Other content is already loaded under the same id. Two libraries that register ops under one
            namespace crash the process, so nothing is opened.
        DependencyMissing: A Python package is missing.
        LoadFailed: The import failed; ``sys.modules`` is as it was.
        DigestMismatch: A file changed since it was verified.
    """
    module = metadata.id or f"_{metadata.python_name or 'kernel'}_{metadata.backend or 'any'}_{verified.identity[:10]}"
    with _kernel_lock(module):
        known = _LOADED.get(module)
        if known is not None and known.identity == verified.identity:
            return known.module
        _refuse_conflict(module, verified)
        check_dependencies(metadata, where=f"{metadata.name or module}, variant {variant}")
        if metadata.kernel_depends:
            _log.info("%s depends on other kernels, which it must load itself", module)
        imported = _import(_mount(module, verified, metadata), metadata, variant, env)
        _LOADED[module] = LoadedKernel(
            metadata=metadata, module=imported, repo_info=repo_info, variant=variant, identity=verified.identity
        )
        return imported


@contextmanager
def _kernel_lock(module: str) -> Iterator[None]:
    with _REGISTRY_LOCK:
        lock = _KERNEL_LOCKS.setdefault(module, threading.RLock())
    with lock:
        yield


def _refuse_conflict(module: str, verified: Verified) -> None:
    mount = FINDER.mounts.get(module)
    if mount is not None and mount.verified.identity == verified.identity:
        return
    hint = "load it in another process, or build one of them anew so that it gets another id"
    if mount is not None:
        message = f"Another build with the id {module} is already loaded, and both register the same ops."
        raise KernelConflict(message, where=f"{verified.folder}, loaded: {mount.verified.folder}", hint=hint)
    if module in sys.modules or module in sys.stdlib_module_names or importlib.util.find_spec(module) is not None:
        message = f"The kernel's id {module} is the name of another Python module."
        raise KernelConflict(message, where=str(verified.folder), hint=hint)


def _mount(module: str, verified: Verified, metadata: Metadata) -> Mount:
    """Mount the folder. Its root is the package; before that was so, a sub-folder with the kernel's name was."""
    mount = Mount(module=module, verified=verified)
    if "__init__.py" not in verified.files:
        folders = {name.partition("/")[0] for name in verified.files if name.count("/") == 1}
        packages = [folder for folder in folders if f"{folder}/__init__.py" in verified.files]
        nested = [folder for folder in packages if folder == metadata.python_name] or packages
        if len(nested) != 1:
            raise LoadFailed("The variant holds no Python package: __init__.py is missing.", where=str(verified.folder))
        mount.prefix = f"{nested[0]}/"
    install_finder()
    earlier = FINDER.mounts.get(module)
    mount.opened = earlier is not None and earlier.opened
    FINDER.mounts[module] = mount
    return mount


def _import(mount: Mount, metadata: Metadata, variant: str, env: Environment) -> ModuleType:
    try:
        return importlib.import_module(mount.module)
    except BaseException as e:
        _forget(mount)
        if isinstance(e, Exception) and not isinstance(e, LoaderError):
            raise explain(e, metadata=metadata, module=mount.module, variant=variant, env=env) from e
        raise


def _forget(mount: Mount) -> None:
    """Undo a failed import. An opened library stays in the process, so its id stays taken by this content."""
    for name in [name for name in sys.modules if name == mount.module or name.startswith(f"{mount.module}.")]:
        del sys.modules[name]
    if not mount.opened:
        del FINDER.mounts[mount.module]
