"""Exported names of one shared library inside a wheel, from the parts of the file that hold its symbol tables."""

from __future__ import annotations

import struct
import zipfile
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.toolchain.symbols.tails import inflate_tail
from kernel_builder.toolchain.wheels import UnfitWheelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel_builder.toolchain.wheels import ByteSource, Member

_LOCAL_HEADER = struct.Struct("<4s22xHH")
_ELF = struct.Struct("<16s24xQ10xHHH")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_HASH = struct.Struct("<IIII")
_DYNSYM, _GNU_HASH = 11, 0x6FFFFFF6
_EXPORTED_BINDS, _EXPORTED_SCOPES = (1, 2, 10), (0, 3)
_STEP = 1 << 20
_WHOLE = 2 << 20  # packed bytes below which all of a library is read
_MOST_SYMBOLS = 1 << 22


@dataclass(frozen=True, kw_only=True, slots=True)
class _Section:
    kind: int
    offset: int
    size: int
    link: int


def exported_names(source: ByteSource, member: Member) -> tuple[str, ...]:
    """Names that a 64-bit ELF library defines for others, sorted.

    Every name is compared with the hash that the library itself has of it, so that a part that was read wrongly cannot
    go unnoticed.

    Raises:
        UnfitWheelError: It is no such library, or its tables cannot be read.
    """
    packed = _Packed(source, member)
    try:
        return _names(packed)
    except (struct.error, IndexError, zlib.error, UnicodeDecodeError) as error:
        raise UnfitWheelError(f"{member.name}: its symbol table cannot be read: {error}") from error


def _names(packed: _Packed) -> tuple[str, ...]:
    magic, table, entry, count, _ = _ELF.unpack(packed.head(_ELF.size))
    if magic[:6] != b"\x7fELF\2\1" or entry != _SECTION.size:
        raise UnfitWheelError(f"{packed.name} is no 64-bit ELF library")
    raw = packed.read(table, count * entry)
    sections = [_section(raw, place * entry) for place in range(count)]
    symbols = next(section for section in sections if section.kind == _DYNSYM)
    hashes = next(section for section in sections if section.kind == _GNU_HASH)
    if symbols.size > _MOST_SYMBOLS * _SYMBOL.size:
        raise UnfitWheelError(f"{packed.name} claims {symbols.size} bytes of symbols")
    strings = packed.read(sections[symbols.link].offset, sections[symbols.link].size)
    entries = list(_SYMBOL.iter_unpack(packed.read(symbols.offset, symbols.size)))
    names = [strings[entry[0] : strings.index(b"\0", entry[0])] for entry in entries]
    _prove(packed.read(hashes.offset, hashes.size), names, packed.name)
    exported = {
        name.decode("ascii")
        for name, (_, info, other, section, _, _) in zip(names, entries, strict=True)
        if section and info >> 4 in _EXPORTED_BINDS and other & 3 in _EXPORTED_SCOPES
    }
    return tuple(sorted(exported))


def _section(raw: bytes, offset: int) -> _Section:
    _, kind, _, _, start, size, link, _, _, _ = _SECTION.unpack_from(raw, offset)
    return _Section(kind=kind, offset=start, size=size, link=link)


def _prove(table: bytes, names: Sequence[bytes], library: str) -> None:
    """Compare the names with the library's own hashes of them, which leave out the lowest bit."""
    buckets, first, bloom, _ = _HASH.unpack_from(table)
    chain = _HASH.size + 8 * bloom + 4 * buckets
    for place in range(first, len(names)):
        (wanted,) = struct.unpack_from("<I", table, chain + 4 * (place - first))
        if (_gnu_hash(names[place]) ^ wanted) >> 1:
            raise UnfitWheelError(f"{library}: symbol {place} is not the one that the library's hash names")


def _gnu_hash(name: bytes) -> int:
    value = 5381
    for byte in name:
        value = value * 33 + byte & 0xFFFFFFFF
    return value


class _Packed:
    """The content of a wheel's member, of which only the beginning and the end are read."""

    def __init__(self, source: ByteSource, member: Member) -> None:
        self._source, self.name, self._size = source, member.name, member.size
        magic, name_size, extra_size = _LOCAL_HEADER.unpack(
            source.read(member.start, member.start + _LOCAL_HEADER.size)
        )
        self._start = member.start + _LOCAL_HEADER.size + name_size + extra_size
        self._stop = self._start + member.packed
        if magic != b"PK\3\4" or member.method != zipfile.ZIP_DEFLATED:
            raise UnfitWheelError(f"{member.name} is not packed as wheels' libraries are")
        self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
        self._position, self._head = self._start, bytearray()
        self._tail, self._tail_offset = b"", self._size
        self._packed_tail = b""

    def head(self, size: int) -> bytes:
        """The first bytes."""
        while len(self._head) < size and self._position < self._stop:
            step = self._stop - self._start if self._stop - self._start <= _WHOLE else _STEP
            stop = min(self._position + step, self._stop)
            self._head += self._inflate.decompress(self._source.read(self._position, stop))
            self._position = stop
        return bytes(self._head[:size])

    def read(self, offset: int, size: int) -> bytes:
        """Bytes near the beginning or near the end; whichever is nearer is read up to there."""
        if size < 0 or offset + size > self._size:
            raise UnfitWheelError(f"{self.name} ends before byte {offset + size}")
        if offset + size <= len(self._head) or offset < self._size // 2 or self._stop - self._start <= _WHOLE:
            return self.head(offset + size)[offset:]
        while offset < self._tail_offset:
            self._longer_tail()
        return self._tail[offset - self._tail_offset :][:size]

    def _longer_tail(self) -> None:
        begin = self._stop - len(self._packed_tail)
        if begin == self._start:
            raise UnfitWheelError(f"{self.name}: its end cannot be unpacked without its beginning")
        more = max(self._start, begin - _STEP)
        self._packed_tail = self._source.read(more, begin) + self._packed_tail
        found = inflate_tail(self._packed_tail)
        if found is not None:
            output, known = found
            self._tail = output[known:]
            self._tail_offset = self._size - len(self._tail)
