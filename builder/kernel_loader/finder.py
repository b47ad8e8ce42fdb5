"""Python's import system over verified folders: source is compiled from hashed bytes, byte code is never used."""

from __future__ import annotations

import importlib.abc
import importlib.machinery
import importlib.util
import linecache
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel_loader.errors import DigestMismatch
from kernel_loader.format.digest import file_hash
from kernel_loader.verify import file_is_current

if TYPE_CHECKING:
    from collections.abc import Sequence
    from types import CodeType, ModuleType

    from kernel_loader.verify import Verified


@dataclass(kw_only=True, slots=True)
class Mount:
    """A verified folder that is importable under a module name.

    Attributes:
        module: The module name.
        prefix: Folder of the package inside the variant, ``""`` or ``name/``.
        opened: Whether a library of it was handed to the dynamic linker, which cannot be undone.
    """

    module: str
    verified: Verified
    prefix: str = ""
    opened: bool = False


class KernelFinder(importlib.abc.MetaPathFinder):
    """Finds mounted kernels and their sub-modules, and nothing else."""

    def __init__(self) -> None:
        self.mounts: dict[str, Mount] = {}

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,  # noqa: ARG002 - the protocol's
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """The spec of a module of a mounted kernel.

        Raises:
            ModuleNotFoundError: The kernel has no such module. Returning None would let Python's own finder search
                the folder and read byte code.
        """
        top, _, rest = fullname.partition(".")
        mount = self.mounts.get(top)
        if mount is None:
            return None
        spec = _find(mount, fullname, mount.prefix + rest.replace(".", "/"))
        if spec is None:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
        return spec


def _find(mount: Mount, fullname: str, stem: str) -> importlib.machinery.ModuleSpec | None:
    files, folder = mount.verified.files, stem if not stem or stem.endswith("/") else stem + "/"
    if folder + "__init__.py" in files:
        return _spec(mount, fullname, folder + "__init__.py", VerifiedSourceLoader, package=folder)
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        if stem + suffix in files:
            return _spec(mount, fullname, stem + suffix, VerifiedExtensionLoader)
    if stem + ".py" in files:
        return _spec(mount, fullname, stem + ".py", VerifiedSourceLoader)
    if any(name.startswith(folder) for name in files):
        spec = importlib.machinery.ModuleSpec(fullname, None, is_package=True)
        spec.submodule_search_locations = [str(mount.verified.folder / folder)]
        return spec
    return None


def _spec(
    mount: Mount,
    fullname: str,
    name: str,
    kind: type[VerifiedSourceLoader | VerifiedExtensionLoader],
    *,
    package: str | None = None,
) -> importlib.machinery.ModuleSpec:
    origin = str(mount.verified.folder / name)
    loader: Any = kind(fullname, origin, mount, name)
    spec = importlib.machinery.ModuleSpec(fullname, loader, origin=origin, is_package=package is not None)
    spec.has_location = True
    if package is not None:
        spec.submodule_search_locations = [str(mount.verified.folder / package)]
    return spec


class VerifiedSourceLoader(importlib.machinery.SourceFileLoader):
    """Compiles a source file that still has its verified hash."""

    def __init__(self, fullname: str, path: str, mount: Mount, name: str) -> None:
        super().__init__(fullname, path)
        self._mount, self._name = mount, name

    def get_code(self, fullname: str) -> CodeType:
        """Code compiled from verified bytes; byte code is neither read nor written."""
        path, verified = self.get_filename(fullname), self._mount.verified
        data = verified.files[self._name].read_bytes()
        if file_hash(data, verified.digest.algorithm) != verified.digest.files[self._name]:
            raise DigestMismatch(f"{self._name} changed after it was verified.", where=str(verified.folder))
        # Compilers such as Triton's read functions back through linecache: what they see must be these bytes too.
        source = importlib.util.decode_source(data)
        linecache.cache[path] = (len(data), None, source.splitlines(keepends=True), path)
        code: CodeType = self.source_to_code(data, path)
        return code


class VerifiedExtensionLoader(importlib.machinery.ExtensionFileLoader):
    """Opens a library that was not written to since it was verified."""

    def __init__(self, fullname: str, path: str, mount: Mount, name: str) -> None:
        super().__init__(fullname, path)
        self._mount, self._name = mount, name

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Hand the library to the dynamic linker."""
        if not file_is_current(self._mount.verified, self._name):
            folder = str(self._mount.verified.folder)
            raise DigestMismatch(f"{self._name} changed after it was verified.", where=folder)
        self._mount.opened = True
        return super().create_module(spec)


FINDER = KernelFinder()


def install_finder() -> None:
    """Put the finder before Python's own, once."""
    if FINDER not in sys.meta_path:
        sys.meta_path.insert(0, FINDER)
