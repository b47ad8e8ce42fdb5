"""Inflates the end of a deflate stream whose beginning is missing.

A stream is a row of blocks, each with its own codes; a block may refer to the 32 KB of output before it. So decoding
can begin at any block, and what it yields is right as soon as nothing refers to the missing output any more.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_WINDOW = 1 << 15
_TRIAL = 1 << 17  # packed bytes that a place is tried with
_PLAUSIBLE = 20_000  # bytes that a wrong place never yields without an error
_CODE_ORDER_SIZE = 19


def inflate_tail(packed: bytes) -> tuple[bytes, int] | None:
    """Output of the last blocks of a stream that ends where ``packed`` ends.

    Returns:
        The output up to the stream's end, and the offset from which all of it is known; None when no block begins in
        ``packed``.
    """
    for byte, shift in _block_starts(packed):
        if _inflate(_shifted(packed[byte : byte + _TRIAL], shift), b"\0") is None:
            continue
        stream = _shifted(packed[byte:], shift)
        zeros, ones = _inflate(stream, b"\0", whole=True), _inflate(stream, b"\xff", whole=True)
        if zeros is not None and ones is not None:
            return zeros, _first_known(zeros, ones)
    return None


def _block_starts(packed: bytes) -> Iterator[tuple[int, int]]:
    """Byte and bit where the header of a block with its own codes, not the last one, could stand."""
    for byte in range(len(packed) - 16):
        word = int.from_bytes(packed[byte : byte + 3], "little")
        for shift in range(8):
            head = word >> shift
            # Not the last block (0), own codes (binary 10), and counts of codes that the format allows.
            if head & 7 == 4 and head >> 3 & 31 < 30 and head >> 8 & 31 < 30 and _complete(packed, byte, shift):
                yield byte, shift


def _complete(packed: bytes, byte: int, shift: int) -> bool:
    """Whether the code of the code lengths uses every bit pattern exactly once, as encoders' codes do."""
    bits = int.from_bytes(packed[byte : byte + 11], "little") >> shift + 13
    count = (bits & 15) + 4
    bits >>= 4
    share = 0
    for _ in range(min(count, _CODE_ORDER_SIZE)):
        if bits & 7:
            share += 128 >> (bits & 7)
        bits >>= 3
    return share == 128


def _shifted(data: bytes, bits: int) -> bytes:
    return (int.from_bytes(data, "little") >> bits).to_bytes(len(data), "little") if bits else data


def _inflate(data: bytes, filler: bytes, *, whole: bool = False) -> bytes | None:
    """Output of a stream after a window of filler; None when it is none, or with ``whole``, does not end."""
    inflate = zlib.decompressobj(-zlib.MAX_WBITS, zdict=filler * _WINDOW)
    try:
        output = inflate.decompress(data)
    except zlib.error:
        return None
    return output if (inflate.eof if whole else len(output) >= _PLAUSIBLE) else None


def _first_known(one: bytes, other: bytes) -> int:
    """Behind the last byte that differs."""
    low, high = 0, len(one)
    while low < high:
        middle = (low + high) // 2
        if one[middle:high] == other[middle:high]:
            high = middle
        else:
            low = middle + 1
    return high
