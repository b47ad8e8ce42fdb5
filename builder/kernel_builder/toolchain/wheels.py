"""Takes some members out of a wheel, reading only the parts of the file that hold them."""

from __future__ import annotations

import hashlib
import io
import stat
import struct
import zipfile
import zlib
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

# Reading a gap of this many bytes costs less than another request.
_GAP = 256 * 1024
_LOCAL_HEADER = struct.Struct("<4s22xHH")
_CHUNK = 1 << 20


class UnfitWheelError(Exception):
    """This file is not the wheel that was asked for, is damaged, or holds something it must not."""


class ByteSource(Protocol):
    """A file of known size whose parts can be read, near or far."""

    @property
    def size(self) -> int:
        """Bytes in all."""

    def read(self, start: int, stop: int) -> bytes:
        """Exactly the bytes from ``start`` up to ``stop``."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Member:
    """One file inside a wheel: bytes ``start`` to ``stop`` hold its header and its packed content."""

    name: str
    start: int
    stop: int
    packed: int
    size: int
    crc: int
    method: int


class LocalFile:
    """A wheel on this machine."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.size = path.stat().st_size

    def read(self, start: int, stop: int) -> bytes:
        """Exactly the bytes from ``start`` up to ``stop``."""
        with self._path.open("rb") as file:
            file.seek(start)
            data = file.read(stop - start)
        if len(data) != stop - start:
            raise UnfitWheelError(f"{self._path.name} ends before byte {stop}")
        return data


class _Seekable(io.RawIOBase):
    """A ByteSource as the file object that zipfile wants."""

    def __init__(self, source: ByteSource) -> None:
        self._source, self._position = source, 0

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._position

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        self._position = offset + {io.SEEK_SET: 0, io.SEEK_CUR: self._position, io.SEEK_END: self._source.size}[whence]
        return self._position

    def read(self, size: int = -1) -> bytes:
        stop = self._source.size if size < 0 else min(self._position + size, self._source.size)
        data = self._source.read(self._position, stop) if stop > self._position else b""
        self._position += len(data)
        return data


def read_directory(source: ByteSource) -> tuple[Member, ...]:
    """Every file of a wheel, in the order of the file's bytes.

    Raises:
        UnfitWheelError: It is no zip archive, or a member's name leaves the folder it would be unpacked into.
    """
    try:
        with zipfile.ZipFile(_Seekable(source)) as archive:
            entries = sorted(archive.infolist(), key=lambda entry: entry.header_offset)
            end = archive.start_dir
    except (zipfile.BadZipFile, NotImplementedError, ValueError, struct.error, OSError) as error:
        raise UnfitWheelError(f"not a readable wheel: {error}") from error
    # A member ends where the next one begins, at the latest.
    stops = [*(entry.header_offset for entry in entries[1:]), end]
    return tuple(
        _member(entry, stop) for entry, stop in zip(entries, stops, strict=False) if not entry.filename.endswith("/")
    )


def _member(entry: zipfile.ZipInfo, stop: int) -> Member:
    parts = entry.filename.split("/")
    if not all(parts) or ".." in parts or "." in parts or "\\" in entry.filename or not entry.filename.isprintable():
        raise UnfitWheelError(f"member {entry.filename!r} would be written outside its folder")
    if stat.S_ISLNK(entry.external_attr >> 16):
        raise UnfitWheelError(f"member {entry.filename!r} is a symbolic link")
    if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise UnfitWheelError(f"member {entry.filename!r} is encrypted or packed in an unknown way")
    return Member(
        name=entry.filename,
        start=entry.header_offset,
        stop=stop,
        packed=entry.compress_size,
        size=entry.file_size,
        crc=entry.CRC,
        method=entry.compress_type,
    )


def select(members: Iterable[Member], include: Sequence[str], exclude: Sequence[str] = ()) -> tuple[Member, ...]:
    """Members that a pattern of ``include`` matches and none of ``exclude``; ``*`` also matches slashes.

    Raises:
        UnfitWheelError: A pattern of ``include`` matches nothing, or two members have one name.
    """
    members = tuple(members)
    for pattern in include:
        if not any(fnmatchcase(member.name, pattern) for member in members):
            raise UnfitWheelError(f"holds nothing that matches {pattern}")
    chosen = tuple(
        member
        for member in members
        if any(fnmatchcase(member.name, pattern) for pattern in include)
        and not any(fnmatchcase(member.name, pattern) for pattern in exclude)
    )
    if len({member.name for member in chosen}) != len(chosen):
        raise UnfitWheelError("two members have the same name")
    return chosen


def coalesce(members: Sequence[Member], gap: int = _GAP) -> Iterator[tuple[Member, ...]]:
    """Runs of neighbours (in byte order) that one read should fetch together."""
    run: list[Member] = []
    for member in members:
        if run and member.start - run[-1].stop > gap:
            yield tuple(run)
            run = []
        run.append(member)
    if run:
        yield tuple(run)


def run_bytes(members: Sequence[Member]) -> int:
    """Bytes that unpacking these members reads."""
    return sum(run[-1].stop - run[0].start for run in coalesce(members))


def unpack(source: ByteSource, members: Sequence[Member], folder: Path) -> Iterator[tuple[str, str]]:
    """Write members below ``folder``; yields each one's name and the hex SHA-256 of its content.

    Raises:
        UnfitWheelError: A member is damaged, longer than it says, or already there.
    """
    for run in coalesce(members):
        first = run[0].start
        data = memoryview(source.read(first, run[-1].stop))
        for member in run:
            yield member.name, _write(member, data[member.start - first : member.stop - first], folder)


def _write(member: Member, data: memoryview, folder: Path) -> str:
    path = folder / PurePosixPath(member.name)
    path.parent.mkdir(parents=True, exist_ok=True)
    digest, crc, size = hashlib.sha256(), 0, 0
    try:
        with path.open("xb") as file:
            for chunk in _content(member, data):
                digest.update(chunk)
                crc, size = zlib.crc32(chunk, crc), size + len(chunk)
                file.write(chunk)
    except (zlib.error, FileExistsError, NotADirectoryError) as error:
        raise UnfitWheelError(f"member {member.name!r} cannot be unpacked: {error}") from error
    if (crc, size) != (member.crc, member.size):
        raise UnfitWheelError(f"member {member.name!r} is damaged")
    return digest.hexdigest()


def _content(member: Member, data: memoryview) -> Iterator[bytes]:
    """Unpacked content in chunks, at most one chunk more than the member declares."""
    if len(data) < _LOCAL_HEADER.size:
        raise UnfitWheelError(f"member {member.name!r} has no header")
    magic, name_size, extra_size = _LOCAL_HEADER.unpack_from(data)
    start = _LOCAL_HEADER.size + name_size + extra_size
    name = bytes(data[_LOCAL_HEADER.size : _LOCAL_HEADER.size + name_size])
    packed = data[start : start + member.packed]
    if magic != b"PK\3\4" or name != member.name.encode() or len(packed) != member.packed:
        raise UnfitWheelError(f"member {member.name!r} is not where the directory says")
    if member.method == zipfile.ZIP_STORED:
        yield bytes(packed)
        return
    inflate, left, rest = zlib.decompressobj(-zlib.MAX_WBITS), member.size + 1, bytes(packed)
    while left > 0 and not inflate.eof:
        chunk = inflate.decompress(rest, min(left, _CHUNK))
        rest, left = inflate.unconsumed_tail, left - len(chunk)
        if not chunk:
            break
        yield chunk
