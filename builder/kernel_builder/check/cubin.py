"""Reads cubins: the ELF files inside fat binaries, one per architecture, with what each kernel entry uses."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from elftools.elf.elffile import ELFFile

from kernel_builder.check.elf import MALFORMED, NotAnElfError

if TYPE_CHECKING:
    from collections.abc import Iterator

_EM_CUDA = 190
# Attributes of .nv.info. A record is format, attribute, then a 16-bit value or, for format 4, a size and a payload.
_SIZED = 4
_COMPAT_FEATURE = 0x09
_MAX_THREADS, _REQUIRED_THREADS, _REGISTERS, _FRAME, _STACK = 0x05, 0x10, 0x2F, 0x11, 0x12
# From Hopper on, the driver keeps 1 KB of shared memory per block and ptxas lays it into each entry's section. The
# limits of limits.py count without it.
_HOPPER, _RESERVED_BYTES = 90, 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What one kernel asks of a GPU.

    Attributes:
        registers: Per thread.
        shared_bytes: Static shared memory per block.
        stack_bytes: Local memory per thread that the compiler laid out: arrays indexed at run time, and spills.
        max_threads: Threads per block promised by ``__launch_bounds__``; None when the code does not say.
    """

    name: str
    registers: int
    shared_bytes: int
    stack_bytes: int
    max_threads: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Cubin:
    """Machine code for one architecture.

    Attributes:
        sm: 90 for 9.0 and 9.0a alike.
        accelerated: Whether it says that it runs on exactly this capability (9.0a). Nothing in a cubin tells a
            family (10.0f) from its base; only the fat binary's region does.
    """

    sm: int
    accelerated: bool
    entries: tuple[Entry, ...]


def read_cubin(data: bytes) -> Cubin:
    """Read a cubin.

    Raises:
        NotAnElfError: It is none.
    """
    try:
        return _read(ELFFile(io.BytesIO(data)))
    except NotAnElfError:
        raise
    except (*MALFORMED, struct.error) as error:
        raise NotAnElfError(f"it cannot be read as a cubin ({type(error).__name__})") from error


def _read(elf: Any) -> Cubin:
    if elf.header["e_machine"] not in (_EM_CUDA, "EM_CUDA"):
        raise NotAnElfError("it holds no CUDA code")
    sm, accelerated = _target(elf)
    return Cubin(sm=sm, accelerated=accelerated, entries=tuple(_entries(elf, sm)))


def _target(elf: Any) -> tuple[int, bool]:
    """Architecture and its feature bit, which moved twice.

    ABI 7 (up to Hopper, CUDA 12) keeps both in the low bits of the ELF flags, ABI 8 a byte higher; CUDA 13 has the
    feature as an attribute of ``.nv.compat`` instead.
    """
    flags = int(elf.header["e_flags"])
    if elf.header["e_ident"]["EI_ABIVERSION"] < 8:
        return flags & 0xFF, bool(flags & 0x800)
    compat = elf.get_section_by_name(".nv.compat")
    records = _records(compat.data() if compat is not None else b"")
    marks = [value for attribute, value, _ in records if attribute == _COMPAT_FEATURE]
    return (flags >> 8) & 0xFF, bool(marks[0]) if marks else bool(flags & 0x8)


def _entries(elf: Any, sm: int) -> Iterator[Entry]:
    sections = {s.name: s for s in elf.iter_sections()}
    numbers = _by_symbol(elf, sections)
    reserved = _RESERVED_BYTES if sm >= _HOPPER else 0
    # Only kernel entries have a bank of parameters; device functions have code alone.
    banks = {name.split(".", 3)[3] for name in sections if name.startswith(".nv.constant") and name.count(".") > 2}
    for name in sections:
        entry = name.removeprefix(".text.")
        if entry == name or entry not in banks:
            continue
        shared = sections.get(f".nv.shared.{entry}")
        yield Entry(
            name=entry,
            registers=numbers.get((_REGISTERS, entry)) or int(sections[name]["sh_info"]) >> 24,
            shared_bytes=max(0, int(shared["sh_size"]) - reserved) if shared is not None else 0,
            stack_bytes=numbers.get((_STACK, entry), numbers.get((_FRAME, entry), 0)),
            max_threads=_threads(sections.get(f".nv.info.{entry}")),
        )


def _by_symbol(elf: Any, sections: dict[str, Any]) -> dict[tuple[int, str], int]:
    """(attribute, function) → value, from the records of ``.nv.info`` that name a symbol."""
    table, info = elf.get_section_by_name(".symtab"), sections.get(".nv.info")
    if table is None or info is None:
        return {}
    found = {}
    for attribute, _, payload in _records(info.data()):
        if attribute in (_REGISTERS, _FRAME, _STACK) and len(payload) == 8:
            symbol, value = struct.unpack("<II", payload)
            if symbol < table.num_symbols():
                found[attribute, str(table.get_symbol(symbol).name)] = value
    return found


def _threads(info: Any) -> int | None:
    for attribute, _, payload in _records(info.data()) if info is not None else ():
        if attribute in (_MAX_THREADS, _REQUIRED_THREADS) and len(payload) == 12:
            x, y, z = struct.unpack("<III", payload)
            return int(x * y * z)
    return None


def _records(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Attribute, value, payload of each record."""
    offset = 0
    while offset + 4 <= len(data):
        kind, attribute, value = struct.unpack_from("<BBH", data, offset)
        offset += 4
        size = value if kind == _SIZED else 0
        yield attribute, value, data[offset : offset + size]
        offset += size
