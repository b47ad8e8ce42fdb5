"""A packaged variant folder: what its name, its metadata.json and its files say about each other."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.check.model import Finding, Severity
from kernel_loader.errors import LoaderError
from kernel_loader.format.digest import METADATA, compare
from kernel_loader.format.metadata import Metadata, MetadataError, parse_metadata
from kernel_loader.format.variants import ArchVariant, NoarchVariant, Variant, VariantNameError
from kernel_loader.format.variants import parse as parse_variant
from kernel_loader.integrity import hash_files, list_files

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_ELF_MAGIC = b"\x7fELF"
_ONE_PYTHON = re.compile(r"\.(cpython-\d+[a-z]*|cp\d+|pypy\d+)[-.]")


@dataclass(frozen=True, kw_only=True, slots=True)
class Package:
    """A variant folder, read.

    Attributes:
        files: Relative path with ``/`` → real path.
        own: Whether this toolchain packaged it.
    """

    label: str
    path: Path
    variant: Variant
    metadata: Metadata
    files: Mapping[str, Path]

    @property
    def own(self) -> bool:
        """Whether this toolchain packaged it: it leaves a table of its own in the metadata."""
        return bool(self.metadata.builder)

    @property
    def library(self) -> str:
        """Name that the one library should have; empty for Python-only variants."""
        if not isinstance(self.variant, ArchVariant):
            return ""
        return f"{self.metadata.id}.so" if self.variant.framework.kind == "tvm-ffi" else f"{self.metadata.id}.abi3.so"

    def libraries(self) -> tuple[str, ...]:
        """Files that are shared objects by their name or by their first bytes, sorted."""
        return tuple(name for name, real in self.files.items() if _is_library(name, real))

    def python(self) -> dict[str, bytes]:
        """Python files by their path."""
        return {name: real.read_bytes() for name, real in self.files.items() if name.endswith(".py")}

    def finding(
        self, code: str, message: str, *, file: str = METADATA, severity: Severity = "error", hint: str = ""
    ) -> Finding:
        """A finding at one file of the folder."""
        return Finding(code=code, severity=severity, where=f"{self.label}: {file}", message=message, hint=hint)


def read_package(path: Path) -> Package | Finding:
    """Read a variant folder; a Finding when it is none."""
    try:
        variant = parse_variant(path.name)
        files = list_files(path)
        metadata = parse_metadata(files[METADATA].read_bytes(), where=METADATA)
    except VariantNameError as error:
        return _unreadable(path, "variant-name", f"The folder's name says nothing to a loader: {error}.")
    except LoaderError as error:
        return _unreadable(path, "variant-files", error.message)
    except KeyError:
        return _unreadable(path, "metadata", f"There is no {METADATA}.")
    except (MetadataError, OSError, RecursionError) as error:
        return _unreadable(path, "metadata", f"{METADATA} cannot be read: {error}")
    label = f"{metadata.name}/{path.name}" if metadata.name else path.name
    return Package(label=label, path=path, variant=variant, metadata=metadata, files=files)


def check_names(package: Package) -> Iterator[Finding]:
    """Name, id, backend and library agree (``metadata``); no module is for one Python only (``python-abi``)."""
    metadata = package.metadata
    backend = package.variant.backend if isinstance(package.variant, NoarchVariant) else package.variant.backend.name
    if not metadata.name or not metadata.id:
        yield package.finding("metadata", "It has no name or no id, which loaders need.")
        return
    # The name of Ascend's Python-only variants is npu, that of the backend cann.
    if metadata.backend != {"npu": "cann"}.get(backend, backend) and backend != "universal":
        yield package.finding("metadata", f"Its backend is {metadata.backend!r} in a variant for {backend}.")
    if not metadata.id.startswith(f"_{metadata.python_name}_{metadata.backend}_"):
        yield package.finding(
            "metadata",
            f"The id {metadata.id!r} does not begin with the kernel's name and backend.",
            severity="error" if package.own else "warning",
        )


def check_libraries(package: Package) -> Iterator[Finding]:
    """There is exactly the library that the id names (``library``), for every Python (``python-abi``)."""
    found, wanted = package.libraries(), package.library
    if wanted and wanted not in found:
        others = f"; there is {', '.join(found)}" if found else ""
        yield package.finding("library", f"The id asks for {wanted}, which is missing{others}.", file=wanted)
    for name in found:
        if _ONE_PYTHON.search(name):
            yield package.finding(
                "python-abi",
                "It is for one version of Python, and a variant promises every one from 3.9 on.",
                file=name,
                hint="build it against the limited API and name it *.abi3.so",
            )
        elif name != wanted:
            yield package.finding(
                "library",
                "A variant brings its own library and no other: a second one is a bundled dependency."
                if wanted
                else "A Python-only variant has no machine code.",
                file=name,
                hint="leave it out of the package",
            )


def check_digest(package: Package) -> Iterator[Finding]:
    """Every file has the hash that metadata.json lists, and none is unlisted (``digest``)."""
    digest = package.metadata.digest
    if digest is None:
        yield package.finding(
            "digest",
            "It lists no hashes, so a loader cannot tell whether the files are the published ones.",
            severity="error" if package.own else "warning",
        )
        return
    for violation in compare(digest, hash_files(package.files, algorithm=digest.algorithm)):
        yield package.finding("digest", f"The digest does not hold: {violation}.", file=violation.path or METADATA)


def _is_library(name: str, real: Path) -> bool:
    if name.endswith((".so", ".dylib", ".dll", ".pyd")) or ".so." in name.rpartition("/")[2]:
        return True
    with real.open("rb") as stream:
        return stream.read(4) == _ELF_MAGIC


def _unreadable(path: Path, code: str, message: str) -> Finding:
    return Finding(code=code, severity="error", where=path.name, message=message)
