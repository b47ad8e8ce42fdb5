"""metadata.json of a variant folder ⇄ ``Metadata``."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from kernel_loader.format.archs import Arch
from kernel_loader.format.digest import Digest
from kernel_loader.format.tables import Table, read_table, write_json

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = re.compile(r"[a-z][-a-z0-9]*[a-z0-9]")
_ID = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BACKEND = re.compile(r"[a-z][a-z0-9]*")


class MetadataError(ValueError):
    """metadata.json cannot be read; the text names the file and the JSON path."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Metadata:
    """What a variant says about itself.

    Attributes:
        name: Kernel name; ``""`` in files from before names were written.
        id: Python module name and torch op namespace; ``""`` in files from before ids were written.
        version: Major version of the kernel's public API.
        backend: ``cuda``, ``cpu``, …; ``""`` in old files.
        archs: GPU architectures with code inside; empty for Python-only kernels and for other backends.
        other_archs: Architectures in another spelling than CUDA's, e.g. ``gfx942``.
        python_depends: Names of Python packages that the kernel imports.
        kernel_depends: Other kernels: ``{"repo-id": …, "version": …}`` or ``{"repo-id": …, "revision": …}``.
        digest: Hashes of all other files; None for a variant built outside a release.
        provenance: Where the build came from, as written.
        minver: Oldest version of Hugging Face's loader that reads the kernel; kept, not applied here.
        builder: The key ``kernel-builder``: toolkit, source digest, floors.
    """

    name: str
    id: str
    version: int
    license: str
    backend: str
    archs: tuple[Arch, ...] = ()
    other_archs: tuple[str, ...] = ()
    python_depends: tuple[str, ...] = ()
    kernel_depends: tuple[Mapping[str, Any], ...] = ()
    upstream: str | None = None
    source: str | None = None
    digest: Digest | None = None
    provenance: Mapping[str, Any] | None = None
    minver: str | None = None
    builder: Mapping[str, Any] = field(default_factory=dict)

    @property
    def python_name(self) -> str:
        """The kernel name as a Python identifier."""
        return self.name.replace("-", "_")

    @property
    def dirty(self) -> bool | None:
        """Whether the sources differed from their commit when it was built; None when that was not recorded."""
        dirty = self._kernel_provenance.get("dirty")
        return dirty if isinstance(dirty, bool) else None

    @property
    def commit(self) -> str | None:
        """Commit of the sources when it was built; None when that was not recorded."""
        commit = self._kernel_provenance.get("commit")
        return commit if isinstance(commit, str) else None

    @property
    def _kernel_provenance(self) -> Mapping[str, Any]:
        kernel = (self.provenance or {}).get("kernel")
        return kernel if isinstance(kernel, dict) else {}


def parse_metadata(data: bytes | str, *, where: str) -> Metadata:
    """Read metadata.json. Unknown keys are ignored; files from before a key existed get a default.

    Args:
        data: The file's content.
        where: The file, for error texts.

    Raises:
        MetadataError: A value has the wrong type or form.
    """
    table = read_table(data, where=where, error=MetadataError)
    backend, archs, other_archs = _read_backend(table)
    version = table.need("version", int) if "version" in table.data else 0
    if not 0 <= version < 2**31:
        raise table.fail("version", "must be a whole number that is not negative")
    return Metadata(
        name=_matching(table, "name", NAME),
        id=_matching(table, "id", _ID),
        version=version,
        license=table.get("license", str) or "",
        backend=backend,
        archs=archs,
        other_archs=other_archs,
        python_depends=table.texts("python-depends"),
        kernel_depends=_read_kernel_depends(table),
        upstream=table.get("upstream", str),
        source=table.get("source", str),
        digest=_read_digest(table),
        provenance=table.get("provenance", dict),
        minver=table.get("kernels-minver", str),
        builder=table.get("kernel-builder", dict) or {},
    )


def dump_metadata(metadata: Metadata) -> bytes:
    """The one spelling of a ``Metadata``: sorted keys, two spaces, a final newline, no unset optional key."""
    backend: dict[str, Any] = {"type": metadata.backend}
    if metadata.archs or metadata.other_archs:
        backend["archs"] = [*map(str, metadata.archs), *metadata.other_archs]
    required = {
        "name": metadata.name,
        "id": metadata.id,
        "version": metadata.version,
        "license": metadata.license,
        "backend": backend,
        "python-depends": list(metadata.python_depends),
        "kernel-depends": [dict(entry) for entry in metadata.kernel_depends],
    }
    digest = metadata.digest
    optional = {
        "upstream": metadata.upstream,
        "source": metadata.source,
        "digest": digest and {"algorithm": digest.algorithm, "files": dict(digest.files)},
        "provenance": metadata.provenance,
        "kernels-minver": metadata.minver,
        "kernel-builder": metadata.builder or None,
    }
    return write_json({**required, **{key: value for key, value in optional.items() if value is not None}})


def _matching(table: Table, key: str, pattern: re.Pattern[str]) -> str:
    value = table.get(key, str) or ""
    if value and not pattern.fullmatch(value):
        raise table.fail(key, f"{value!r} does not match {pattern.pattern}")
    return value


def _read_backend(table: Table) -> tuple[str, tuple[Arch, ...], tuple[str, ...]]:
    if table.get("backend", dict) is None:
        return "", (), ()
    backend = table.table("backend")
    name = _matching(backend, "type", _BACKEND)
    archs = [(text, _arch(text)) for text in backend.texts("archs")]
    return name, tuple(arch for _, arch in archs if arch), tuple(text for text, arch in archs if not arch)


def _arch(text: str) -> Arch | None:
    try:
        return Arch.parse(text)
    except ValueError:
        return None


def _read_kernel_depends(table: Table) -> tuple[Mapping[str, Any], ...]:
    entries = table.get("kernel-depends", list) or []
    for index, entry in enumerate(entries):
        if not isinstance(entry, dict) or not isinstance(entry.get("repo-id"), str):
            raise table.fail(f"kernel-depends[{index}]", "must be an object with a repo-id")
    return tuple(entries)


def _read_digest(table: Table) -> Digest | None:
    if table.get("digest", dict) is None:
        return None
    digest = table.table("digest")
    files = digest.table("files")
    for path in files.data:
        files.need(path, str)
    try:
        return Digest(algorithm=digest.need("algorithm", str), files=files.data)
    except ValueError as e:
        raise table.fail("digest", str(e)) from e
