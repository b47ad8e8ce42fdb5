"""What GPUs of each compute capability offer to one block of threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kernel_loader.format.archs import Arch

KIB = 1024
REGISTERS_PER_BLOCK = 65536
# Capability → shared memory that a block can opt in to, bytes.
SHARED_BYTES: dict[tuple[int, int], int] = {
    (7, 0): 96 * KIB,
    (7, 2): 96 * KIB,
    (7, 5): 64 * KIB,
    (8, 0): 163 * KIB,
    (8, 6): 99 * KIB,
    (8, 7): 163 * KIB,
    (8, 9): 99 * KIB,
    (9, 0): 227 * KIB,
    (10, 0): 227 * KIB,
    (10, 3): 227 * KIB,
    (11, 0): 227 * KIB,
    (12, 0): 99 * KIB,
    (12, 1): 99 * KIB,
}


def own_shared_limit(arch: Arch) -> int | None:
    """Bytes a block may use on the capability that the code is for, None for one that this version does not know."""
    return SHARED_BYTES.get((arch.major, arch.minor))


def smaller_relatives(arch: Arch, shared_bytes: int) -> tuple[str, ...]:
    """Other capabilities that would load the code but lack the shared memory: 8.0 code runs on 8.6 and 8.9 too."""
    own = (arch.major, arch.minor)
    return tuple(
        f"{major}.{minor}"
        for (major, minor), limit in SHARED_BYTES.items()
        if (major, minor) != own and arch.covers((major, minor)) and shared_bytes > limit
    )


def registers_of_block(registers: int, threads: int) -> int:
    """Registers a block takes: a warp gets them for 32 threads, in steps of 256."""
    warps = -(-threads // 32)
    per_warp = -(-registers * 32 // 256) * 256
    return warps * per_warp
