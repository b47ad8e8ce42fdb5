"""Reads fat binaries: the containers in which a library carries machine code and PTX for several GPUs.

A container is a header (magic, size) and regions; a region's header tells its kind, architecture and compression, so
what is inside is known without inflating it.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from kernel_loader.format.archs import Arch

if TYPE_CHECKING:
    from collections.abc import Iterator

MAGIC = 0xBA55ED50
_HEADER = struct.Struct("<IHHQ")  # magic, version, header size, size of all regions
# kind, version, header size, payload size, compressed size, options, minor, major, arch, name offset and size, flags,
# reserved, inflated size
_REGION = struct.Struct("<HHIQIIHHIIIQQQ")
_KINDS: dict[int, Literal["ptx", "cubin"]] = {1: "ptx", 2: "cubin"}
_ACCELERATED, _FAMILY = 1 << 20, 1 << 21
_LZ4, _ZSTD = 1 << 13, 1 << 15


class FatbinError(ValueError):
    """The bytes are no fat binary, or it is cut off."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Region:
    """Code for one architecture.

    Attributes:
        arch: What its header says; ``arch.ptx`` for PTX.
        name: The identifier it was packed under, often empty.
        data: Cubin or PTX, padded with zeros; something else when compressed.
    """

    arch: Arch
    name: str
    data: bytes
    compressed: bool = False

    @property
    def code(self) -> bytes | None:
        """Cubin or PTX, padded with zeros; None when compressed."""
        return None if self.compressed else self.data


def read_fatbins(data: bytes) -> tuple[tuple[Region, ...], ...]:
    """Containers of an ``.nv_fatbin`` section, in order, each as its regions.

    Raises:
        FatbinError: Something else lies between them, or one is cut off.
    """
    containers: list[tuple[Region, ...]] = []
    offset = 0
    while offset + _HEADER.size <= len(data):
        magic, _, header, size = _HEADER.unpack_from(data, offset)
        if magic == 0 and not any(data[offset : offset + 8]):
            offset += 8
            continue
        end = offset + header + size
        if magic != MAGIC or header < _HEADER.size or end > len(data):
            raise FatbinError(f"no whole fat binary begins at offset {offset}")
        containers.append(tuple(_regions(data, offset + header, end)))
        offset = end + -end % 8
    if any(data[offset:]):
        raise FatbinError(f"bytes after offset {offset} belong to no fat binary")
    return tuple(containers)


def _regions(data: bytes, offset: int, end: int) -> Iterator[Region]:
    while offset < end:
        if offset + _REGION.size > end:
            raise FatbinError(f"the region at offset {offset} is cut off")
        kind, _, header, size, packed, _, _, _, sm, name, length, flags, _, _ = _REGION.unpack_from(data, offset)
        start = offset + header
        if header < _REGION.size or start + size > end:
            raise FatbinError(f"the region at offset {offset} is cut off")
        if kind in _KINDS:
            label = data[offset + name : offset + name + length] if name + length <= header else b""
            yield Region(
                arch=_arch(sm, flags, ptx=_KINDS[kind] == "ptx"),
                name=label.decode("ascii", "replace").rstrip("\0"),
                data=data[start : start + size],
                compressed=bool(packed) or bool(flags & (_LZ4 | _ZSTD)),
            )
        offset = start + size


def _arch(sm: int, flags: int, *, ptx: bool) -> Arch:
    feature = "a" if flags & _ACCELERATED else "f" if flags & _FAMILY else ""
    try:
        return Arch(sm // 10, sm % 10, feature, ptx)
    except ValueError as error:
        raise FatbinError(f"a region is for architecture {sm}, which no GPU has") from error
