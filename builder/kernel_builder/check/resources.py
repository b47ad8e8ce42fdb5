"""Every kernel fits the GPUs it is declared for: registers, shared memory, local memory."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_builder.check.cubin import read_cubin
from kernel_builder.check.device_code import device_codes, name_images, read_images
from kernel_builder.check.elf import NotAnElfError, read_elf
from kernel_builder.check.fatbin import FatbinError
from kernel_builder.check.limits import (
    KIB,
    REGISTERS_PER_BLOCK,
    own_shared_limit,
    registers_of_block,
    smaller_relatives,
)
from kernel_builder.errors import CheckError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kernel_builder.check.cubin import Entry
    from kernel_builder.check.device_code import Image
    from kernel_builder.check.model import Finding
    from kernel_builder.check.subject import Library
    from kernel_builder.compile.model import Artefact
    from kernel_loader.format.archs import Arch


def check_resources(
    library: Library, images: tuple[Image, ...], dynamic_shared: Mapping[str, int]
) -> Iterator[Finding]:
    """Shared memory, registers and local memory of each kernel (``shared-memory``, ``registers``, ``local-memory``).

    Args:
        library: Where the code lies.
        images: Its fat binaries.
        dynamic_shared: Device → largest dynamic shared memory of a launch, bytes.
    """
    for image in images:
        dynamic = dynamic_shared.get(image.device, 0)
        for arch, entries in _entries(image).items():
            for entry in entries:
                yield from _shared(library, arch, entry, dynamic)
                yield from _registers(library, arch, entry)
            yield from _local(library, image, arch, entries)


def resources(artefact: Artefact) -> dict[str, Any]:
    """What each kernel uses, as plain data: device → arch → kernel → ``registers``, ``shared``, ``local``, ``threads``.

    Raises:
        CheckError: The library or the code inside cannot be read.
    """
    try:
        images = name_images(read_images(artefact.library, read_elf(artefact.library)), artefact)
    except (NotAnElfError, FatbinError) as error:
        where = f"{artefact.plan.label}: {artefact.filename}"
        raise CheckError(f"The GPU code cannot be read: {error}.", where=where) from error
    return {
        image.device: {
            str(arch): {entry.name: _plain(entry) for entry in entries} for arch, entries in _entries(image).items()
        }
        for image in images
    }


def _plain(entry: Entry) -> dict[str, int]:
    row = {"registers": entry.registers, "shared": entry.shared_bytes, "local": entry.stack_bytes}
    return row if entry.max_threads is None else {**row, "threads": entry.max_threads}


def _entries(image: Image) -> dict[Arch, tuple[Entry, ...]]:
    return {arch: _entries_of(code) for arch, code in device_codes(image).items()}


def _entries_of(code: bytes) -> tuple[Entry, ...]:
    try:
        return read_cubin(code).entries
    except NotAnElfError:
        # check_regions reports it.
        return ()


def _shared(library: Library, arch: Arch, entry: Entry, dynamic: int) -> Iterator[Finding]:
    limit, total = own_shared_limit(arch), entry.shared_bytes + dynamic
    if limit is not None and total > limit:
        yield library.finding(
            "shared-memory",
            f"{entry.name} for {arch} uses {_kib(total)} of shared memory ({_kib(dynamic)} of it dynamic); "
            f"a block has {_kib(limit)} there.",
            hint="use smaller tiles, or drop the architecture from the kernel's capabilities",
        )
    elif smaller := smaller_relatives(arch, total):
        yield library.finding(
            "shared-memory",
            f"{entry.name} for {arch} uses up to {_kib(total)} of shared memory, more than a block has on "
            f"{', '.join(smaller)}, which load the same code.",
            severity="warning",
            hint="let the launch code choose smaller tiles there",
        )


def _registers(library: Library, arch: Arch, entry: Entry) -> Iterator[Finding]:
    if entry.max_threads is None:
        return
    wanted = registers_of_block(entry.registers, entry.max_threads)
    if wanted > REGISTERS_PER_BLOCK:
        yield library.finding(
            "registers",
            f"{entry.name} for {arch} uses {entry.registers} registers in each of {entry.max_threads} threads: "
            f"{wanted} of {REGISTERS_PER_BLOCK} that a block can have, so it cannot be launched.",
            hint="lower the thread count of __launch_bounds__, or maxrregcount",
        )


def _local(library: Library, image: Image, arch: Arch, entries: tuple[Entry, ...]) -> Iterator[Finding]:
    users = [entry for entry in entries if entry.stack_bytes]
    if users:
        worst = max(users, key=lambda e: e.stack_bytes)
        yield library.finding(
            "local-memory",
            f"{len(users)} of {len(entries)} kernels of {image.device or 'a fat binary'} for {arch} keep arrays or "
            f"spilled registers in local memory, at most {worst.stack_bytes} bytes a thread ({worst.name}).",
            severity="note",
        )


def _kib(size: int) -> str:
    return f"{size / KIB:.4g} KiB"
