"""Takes a locked wheel's members from the first place that has the right bytes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.errors import DigestError, ToolchainError
from kernel_builder.files import tree_digest
from kernel_builder.toolchain.index.places import WrongBytesError
from kernel_builder.toolchain.index.transfer import Meter, RemoteFile
from kernel_builder.toolchain.symbols.tables import digest_of, read_tables
from kernel_builder.toolchain.wheels import UnfitWheelError, read_directory, run_bytes, select, unpack

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from kernel_builder.errors import KernelBuilderError
    from kernel_builder.reporting import Reporter
    from kernel_builder.toolchain.index.places import Candidate, Index
    from kernel_builder.toolchain.lock import LockedFile, LockedWheel
    from kernel_builder.toolchain.wheels import ByteSource


def take(wheel: LockedWheel, index: Index, folder: Path, reporter: Reporter) -> dict[str, str]:
    """Unpack a locked wheel's members into ``folder`` from the first place that has the right bytes.

    Returns:
        Member name → hex SHA-256.

    Raises:
        ToolchainError: No place has the wheel.
        DigestError: Places have it, none with the right bytes.
    """
    failures: list[str] = []
    wrong, asked = False, len(index.failures)
    for candidate, locked in _offers(wheel, index):
        files: dict[str, str] = {}
        meter, spool = Meter(f"{wheel.project} {wheel.version}", reporter), folder / f".{locked.sha256[:12]}.whl"
        try:
            _unpack_locked(index.open(candidate, locked, spool, meter), wheel, folder, files, meter)
        except UnfitWheelError as error:
            wrong = wrong or isinstance(error, WrongBytesError)
            failures.append(f"{candidate.origin}: {candidate.name}: {error}")
            for name in files:
                (folder / name).unlink(missing_ok=True)
        else:
            return files
        finally:
            spool.unlink(missing_ok=True)
    raise _refusal(wheel, [*index.failures[asked:], *failures], wrong=wrong)


def take_symbols(wheel: LockedWheel, digest: str, index: Index, folder: Path, reporter: Reporter) -> dict[str, bytes]:
    """The names that the libraries of a torch release export, from the first place that has the right ones.

    Args:
        wheel: The release.
        digest: What the lock says of the names; "" accepts any, for the one who writes the lock.
        index: Where wheels are looked for.
        folder: Takes a whole wheel for a while, where a server knows no ranges.
        reporter: Told what is read.

    Raises:
        ToolchainError: No place has the wheel.
        DigestError: Places have it, none with the right names.
    """
    failures: list[str] = []
    wrong, asked = False, len(index.failures)
    for candidate, locked in _offers(wheel, index):
        meter, spool = Meter(f"symbols of {wheel.project} {wheel.version}", reporter), folder / ".symbols.whl"
        try:
            tables = read_tables(index.open(candidate, locked, spool, meter))
            if digest and digest_of(tables) != digest:
                raise WrongBytesError("its libraries do not export the names that the lock's digest names")
        except UnfitWheelError as error:
            wrong = wrong or isinstance(error, WrongBytesError)
            failures.append(f"{candidate.origin}: {candidate.name}: {error}")
        else:
            return tables
        finally:
            spool.unlink(missing_ok=True)
    raise _refusal(wheel, [*index.failures[asked:], *failures], wrong=wrong)


def _offers(wheel: LockedWheel, index: Index) -> Iterator[tuple[Candidate, LockedFile]]:
    locked = {file.name: file for file in wheel.files}
    for candidate in index.files(wheel.project):
        if candidate.name in locked:
            yield candidate, locked[candidate.name]


def _unpack_locked(source: ByteSource, wheel: LockedWheel, folder: Path, files: dict[str, str], meter: Meter) -> None:
    """Unpack and prove; ``files`` names what was written even when this raises."""
    members = select(read_directory(source), wheel.include, wheel.exclude)
    # Before a byte is fetched: another wheel of this name must not fill the disk.
    if (len(members), sum(member.size for member in members)) != (wheel.members, wheel.unpacked):
        raise WrongBytesError("its files are not as many or as large as the lock says")
    if isinstance(source, RemoteFile):
        meter.expect(run_bytes(members))
    files.update((member.name, "") for member in members)
    files.update(unpack(source, members, folder))
    meter.finish()
    if tree_digest(files) != wheel.tree:
        raise WrongBytesError("its files are not those that the lock's digest names")


def _refusal(wheel: LockedWheel, reasons: list[str], *, wrong: bool) -> KernelBuilderError:
    what, detail = f"{wheel.project} {wheel.version}", "\n".join(reasons)
    if wrong:
        return DigestError(
            f"The wheel of {what} that was found is not the one that the lock names.",
            detail=detail,
            hint="an index or mirror serves other bytes: check `pip config list`",
        )
    return ToolchainError(
        f"No index has a usable wheel of {what}.",
        where=", ".join(file.name for file in wheel.files),
        detail=detail,
        hint="pip's configuration says where wheels are looked for: `pip config list`, `kernel-builder doctor`",
    )
