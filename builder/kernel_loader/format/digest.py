"""The digest of a variant folder: the hash of every file that can be imported or read from it."""

from __future__ import annotations

import base64
import binascii
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from kernel_loader.format.paths import check_path

if TYPE_CHECKING:
    from collections.abc import Mapping

ALGORITHMS = {"sha256": 32, "sha512": 64}
METADATA = "metadata.json"
# The metadata carries the digest and the signature covers the metadata, so neither can be part of it.
_OUTSIDE = frozenset({METADATA, f"{METADATA}.sigstore"})


class DigestValueError(ValueError):
    """A digest names an unknown algorithm, an unsafe path, or something that is no hash."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Digest:
    """Hashes of the files of one variant.

    Attributes:
        algorithm: ``sha256`` or ``sha512``.
        files: Path relative to the variant, with ``/`` → standard base64 of the hash of the file's bytes.
    """

    algorithm: str = "sha256"
    files: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.algorithm not in ALGORITHMS:
            raise DigestValueError(f"no digest algorithm {self.algorithm!r}; known: {', '.join(ALGORITHMS)}")
        for path, value in self.files.items():
            try:
                size = len(base64.b64decode(value, validate=True))
            except (binascii.Error, ValueError, TypeError):
                size = -1
            if size != ALGORITHMS[self.algorithm]:
                raise DigestValueError(f"{path!r} has no base64 {self.algorithm} hash")
            check_path(path)


ViolationKind = Literal["algorithm-mismatch", "missing-file", "hash-mismatch", "unknown-file"]


@dataclass(frozen=True, slots=True)
class Violation:
    """One difference between the digest that is written down and the files that are there."""

    kind: ViolationKind
    path: str = ""

    def __str__(self) -> str:
        texts = {
            "algorithm-mismatch": "the hash algorithms differ",
            "missing-file": f"{self.path} is missing",
            "hash-mismatch": f"{self.path} has other bytes than when it was built",
            "unknown-file": f"{self.path} is not listed",
        }
        return texts[self.kind]


def is_bytecode(path: str) -> bool:
    """Whether a path is Python byte code, which is never hashed and never read."""
    return path.endswith(".pyc") or "__pycache__" in path.split("/")


def is_hashed(path: str) -> bool:
    """Whether a digest covers this path: everything but byte code and the variant's own metadata and signature."""
    return path not in _OUTSIDE and not is_bytecode(path)


def file_hash(data: bytes, algorithm: str = "sha256") -> str:
    """Standard base64 of the hash of a file's bytes."""
    return base64.b64encode(hashlib.new(algorithm, data, usedforsecurity=True).digest()).decode("ascii")


def digest_of(files: Mapping[str, bytes], algorithm: str = "sha256") -> Digest:
    """Digest of files in memory: path → content. Paths that no digest covers are left out."""
    hashes = {path: file_hash(files[path], algorithm) for path in sorted(files) if is_hashed(path)}
    return Digest(algorithm=algorithm, files=hashes)


def compare(expected: Digest, actual: Digest) -> tuple[Violation, ...]:
    """Everything that differs: the algorithm, then listed files in path order, then files that are not listed."""
    if expected.algorithm != actual.algorithm:
        return (Violation("algorithm-mismatch"),)
    found: list[Violation] = []
    for path in sorted(expected.files):
        if path not in actual.files:
            found.append(Violation("missing-file", path))
        elif actual.files[path] != expected.files[path]:
            found.append(Violation("hash-mismatch", path))
    found += [Violation("unknown-file", path) for path in sorted(set(actual.files) - set(expected.files))]
    return tuple(found)


def variant_digest(metadata_json: bytes) -> str:
    """The one hash that stands for a whole variant: hex SHA-256 of metadata.json, which names all other hashes."""
    return hashlib.sha256(metadata_json).hexdigest()
