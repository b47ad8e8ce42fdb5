"""A variant folder and the digests it must match → the folder as verified, or an error that names the file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_loader.errors import DigestMismatch, IncompleteFolder
from kernel_loader.format.digest import Digest, Violation, compare
from kernel_loader.format.tables import write_json
from kernel_loader.integrity import FileStamp, hash_files, list_files, stamp_files, stamp_of
from kernel_loader.stamps import Stamp, StampFolder, now_ns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_SHOWN = 10
_ANEW = "remove the folder and fetch or build it anew"


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    """A folder whose files had the hashes of ``digest`` when ``stamps`` were taken.

    Attributes:
        folder: Real path of the variant folder.
        files: Relative path → real path; nothing else of the folder may be imported.
        identity: Hash that two folders share only when all their content is the same.
    """

    folder: Path
    files: Mapping[str, Path]
    stamps: Mapping[str, FileStamp]
    digest: Digest
    identity: str


def verify_folder(
    folder: Path, metadata_json: bytes, expected: Sequence[Digest], stamps: StampFolder, *, strict: bool = False
) -> Verified:
    """Hash a folder unless its stamp says that nothing changed since it was hashed.

    Args:
        folder: The variant folder.
        metadata_json: Content of its metadata.json.
        expected: Digests that the folder must match, from its metadata and from the hub's commit. With none, the
            folder is taken as it is.
        stamps: Where stamps are kept.
        strict: Hash in any case.

    Raises:
        DigestMismatch: A file is changed, missing, or not listed.
        NotFoundError: There is no such folder.
    """
    root, started = folder.resolve(), now_ns()
    files = list_files(root)
    before = stamp_files(files)
    if not expected:
        digest = hash_files(files)
        identity = _identity_of(metadata_json, (digest,))
        return Verified(folder=root, files=files, stamps=before, digest=digest, identity=identity)
    identity = _identity_of(metadata_json, expected[:1])
    verified = Verified(folder=root, files=files, stamps=before, digest=expected[0], identity=identity)
    wanted = _identity_of(metadata_json, expected)
    known = stamps.read(root)
    if strict or known is None or known.expected != wanted or dict(known.files) != before:
        _hash_again(verified, expected)
        stamps.write(root, Stamp(expected=wanted, files=before), hashed_at_ns=started)
    return verified


def _hash_again(verified: Verified, expected: Sequence[Digest]) -> None:
    algorithms = {digest.algorithm for digest in expected}
    actual = {algorithm: hash_files(verified.files, algorithm=algorithm) for algorithm in algorithms}
    for digest in expected:
        violations = compare(digest, actual[digest.algorithm])
        if violations:
            raise mismatch(violations, where=str(verified.folder))
    if stamp_files(verified.files) != verified.stamps:
        raise DigestMismatch("The folder was written to while it was read.", where=str(verified.folder))


def mismatch(violations: Sequence[Violation], *, where: str) -> DigestMismatch:
    """The error for a folder that differs from its digest."""
    first, *rest = violations
    shown = [f"  {violation}" for violation in rest[: _SHOWN - 1]]
    shown += [f"  … and {len(rest) + 1 - _SHOWN} more"] if len(rest) >= _SHOWN else []
    detail = "\n".join(shown)
    if all(violation.kind == "missing-file" for violation in violations):
        return IncompleteFolder(f"The kernel is incomplete: {first}.", where=where, detail=detail, hint=_ANEW)
    hint = "remove this file, it is not part of the kernel" if first.kind == "unknown-file" else _ANEW
    return DigestMismatch(f"The kernel is not what its digest says: {first}.", where=where, detail=detail, hint=hint)


def _identity_of(metadata_json: bytes, expected: Sequence[Digest]) -> str:
    state = hashlib.sha256(metadata_json)
    for digest in expected:
        state.update(write_json({"algorithm": digest.algorithm, "files": dict(digest.files)}))
    return state.hexdigest()


def file_is_current(verified: Verified, name: str) -> bool:
    """Whether a listed file is the one that was verified: no link leads elsewhere now, and its stamp is the same."""
    real = verified.files[name]
    try:
        return (verified.folder / name).resolve() == real and stamp_of(real) == verified.stamps[name]
    except OSError:
        return False
