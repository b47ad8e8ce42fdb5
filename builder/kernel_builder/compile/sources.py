"""Files that units read: their digests, and whether they are still the same after the compiler has read them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.errors import CompileError
from kernel_builder.files import sha256_of
from kernel_builder.spec.includes import Known, reachable
from kernel_builder.spec.sources import source_name

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from kernel_builder.spec.model import Kernel

_Stamp = tuple[int, int, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class SourceFile:
    """A file as it was when its unit's key was made; ``stamp`` is its state on disk just before it was read."""

    path: Path
    sha256: str
    stamp: _Stamp

    def untouched(self) -> bool:
        """Whether nobody has written the file since; content that was changed back may still have been compiled."""
        try:
            return _stamp(self.path) == self.stamp
        except OSError:
            return False


class Sources:
    """Reads each file once."""

    def __init__(self) -> None:
        self._files: dict[Path, SourceFile] = {}
        self._known = Known()

    def file(self, path: Path) -> SourceFile:
        """The file with its digest.

        Raises:
            CompileError: It cannot be read.
        """
        if path not in self._files:
            try:
                stamp = _stamp(path)
                self._files[path] = SourceFile(path=path, sha256=sha256_of(path), stamp=stamp)
            except OSError as error:
                raise CompileError(f"A source cannot be read: {error.strerror}.", where=str(path)) from error
        return self._files[path]

    def reached(self, source: Path, include: Sequence[Path], kernel: Kernel) -> Mapping[str, SourceFile]:
        """``source`` and every header of the kernel and of the common code that it can include, by name.

        Raises:
            CompileError: A file is not what it was when the kernel's identity was computed.
            SpecError: An include leaves the kernel folder.
        """
        paths = reachable(source, include, kernel.root, kernel.common, known=self._known)
        files = {source_name(path, kernel): self.file(path) for path in paths}
        for name, file in files.items():
            if kernel.sources.get(name, file.sha256) != file.sha256:
                raise CompileError(
                    f"{name} was changed after the plan was made.", where=str(file.path), hint="run the build again"
                )
        return files

    def lacks(self, source: Path, include: Sequence[Path], kernel: Kernel, header: str) -> bool:
        """Whether ``source`` can reach an include of ``header`` that no folder of the kernel satisfies.

        Raises:
            SpecError: An include leaves the kernel folder.
        """
        paths, folders = reachable(source, include, kernel.root, kernel.common, known=self._known), tuple(include)
        return any(
            any(directive.name == header for directive in self._known.directives[path])
            and not any(target.name == header for target in self._known.targets[path, folders])
            for path in paths
        )


def project_places(kernel: Kernel) -> dict[str, str]:
    """Placeholder → folder of this machine: ``kernel``, and ``common`` where there is one."""
    return {"kernel": str(kernel.root), **({} if kernel.common is None else {"common": str(kernel.common)})}


def placed(folder: Path, kernel: Kernel) -> tuple[str, str]:
    """Placeholder of the project folder that a folder lies in, and its path below that."""
    if kernel.common is not None and folder.is_relative_to(kernel.common):
        return "common", folder.relative_to(kernel.common).as_posix()
    return "kernel", folder.relative_to(kernel.root).as_posix()


def _stamp(path: Path) -> _Stamp:
    state = path.stat()
    return state.st_ino, state.st_size, state.st_mtime_ns, state.st_ctime_ns
