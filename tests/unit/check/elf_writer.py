"""Writes small ELF files byte by byte, so that unit tests need no compiler: shared objects and cubins."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

GLOBAL, WEAK, UNIQUE = 1, 2, 10


@dataclass(kw_only=True)
class Section:
    name: str
    kind: int
    data: bytes = b""
    size: int | None = None
    link: str = ""
    info: int = 0
    entsize: int = 0
    flags: int = 0
    offset: int = 0


class Strings:
    def __init__(self) -> None:
        self.data = b"\0"

    def add(self, text: str) -> int:
        at = self.data.find(b"\0" + text.encode() + b"\0")
        if at >= 0:
            return at + 1
        self.data += text.encode() + b"\0"
        return len(self.data) - len(text) - 1


def write_elf(
    sections: list[Section],
    *,
    machine: int,
    flags: int = 0,
    osabi: int = 0,
    abi: int = 0,
    kind: int = 3,
    stack: int | None = None,
) -> bytes:
    """An ELF64 file; virtual addresses equal file offsets. ``stack`` is the flags word of PT_GNU_STACK."""
    names = Strings()
    table = [Section(name="", kind=0), *sections, Section(name=".shstrtab", kind=3)]
    for section in table:
        names.add(section.name)
    table[-1].data = names.data
    index = {s.name: n for n, s in enumerate(table)}
    dynamic = next((s for s in table if s.name == ".dynamic"), None)
    segments = 3
    body = bytearray(b"\0" * (64 + 56 * segments))
    for section in table[1:]:
        body += b"\0" * (-len(body) % 16)
        section.offset = len(body)
        body += b"" if section.kind == 8 else section.data
    if dynamic is not None:
        body[dynamic.offset : dynamic.offset + len(dynamic.data)] = _dynamic(table, dynamic)
    body += b"\0" * (-len(body) % 16)
    headers = len(body)
    for section in table:
        size = section.size if section.size is not None else len(section.data)
        body += struct.pack(
            "<IIQQQQIIQQ", names.add(section.name) if section.name else 0, section.kind, section.flags, section.offset,
            section.offset, size, index.get(section.link, 0), section.info, 8 if section.name else 0, section.entsize,
        )  # fmt: skip
    ident = b"\x7fELF" + bytes([2, 1, 1, osabi, abi]) + b"\0" * 7
    body[:64] = ident + struct.pack(
        "<HHIQQQIHHHHHH", kind, machine, 1, 0, 64, headers, flags, 64, 56, segments, 64, len(table), len(table) - 1
    )
    programs = struct.pack("<IIQQQQQQ", 1, 5, 0, 0, 0, len(body), len(body), 4096)
    if dynamic is not None:
        at = dynamic.offset
        programs += struct.pack("<IIQQQQQQ", 2, 6, at, at, at, len(dynamic.data), len(dynamic.data), 8)
    if stack is not None:
        programs += struct.pack("<IIQQQQQQ", 0x6474E551, stack, 0, 0, 0, 0, 0, 16)
    body[64 : 64 + len(programs)] = programs
    return bytes(body)


def _dynamic(table: list[Section], dynamic: Section) -> bytes:
    """The tags with section names replaced by where those sections came to lie."""
    at = {s.name: s.offset for s in table}
    pointers = {5: ".dynstr", 6: ".dynsym", 0x6FFFFFF0: ".gnu.version", 0x6FFFFFFE: ".gnu.version_r"}
    out = b""
    for tag, value in struct.iter_unpack("<QQ", dynamic.data):
        out += struct.pack("<QQ", tag, at[pointers[tag]] if tag in pointers else value)
    return out


@dataclass(kw_only=True)
class SharedObject:
    """Imports: ``name``, ``name@VERSION@library``, ``name?`` (weak). Exports: ``name``, ``name!`` (unique)."""

    imports: list[str] = field(default_factory=list)
    exports: list[str] = field(default_factory=lambda: ["PyInit__k_cpu_0123456789"])
    needed: list[str] = field(default_factory=lambda: ["libc.so.6"])
    runpath: str = ""
    machine: int = 62
    stack: int | None = 6
    extra: list[Section] = field(default_factory=list)

    def write(self) -> bytes:
        strings, numbers = Strings(), {}
        symbols, versions = b"\0" * 24, struct.pack("<H", 0)
        for text in self.imports:
            name, _, version = text.partition("@")
            number = numbers.setdefault(version, len(numbers) + 2) if version else 1
            bind = WEAK if name.endswith("?") else GLOBAL
            symbols += struct.pack("<IBBHQQ", strings.add(name.rstrip("?")), bind << 4, 0, 0, 0, 0)
            versions += struct.pack("<H", number)
        for text in self.exports:
            bind = UNIQUE if text.endswith("!") else GLOBAL
            symbols += struct.pack("<IBBHQQ", strings.add(text.rstrip("!")), bind << 4 | 2, 0, 1, 64, 8)
            versions += struct.pack("<H", 1)
        wanted = b""
        for n, (text, number) in enumerate(numbers.items()):
            version, _, library = text.partition("@")
            last = n + 1 == len(numbers)
            wanted += struct.pack("<HHIII", 1, 1, strings.add(library), 16, 0 if last else 32)
            wanted += struct.pack("<IHHII", 0, 0, number, strings.add(version), 0)
        tags = [(1, strings.add(name)) for name in self.needed]
        tags += [(29, strings.add(self.runpath))] if self.runpath else []
        tags += [(5, 0), (6, 0), (0x6FFFFFF0, 0)] + ([(0x6FFFFFFE, 0)] if numbers else []) + [(0, 0)]
        sections = [
            Section(name=".dynstr", kind=3, data=strings.data),
            Section(name=".dynsym", kind=11, data=symbols, link=".dynstr", info=1, entsize=24),
            Section(name=".gnu.version", kind=0x6FFFFFFF, data=versions, link=".dynsym", entsize=2),
            *self.extra,
            Section(
                name=".dynamic",
                kind=6,
                data=b"".join(struct.pack("<QQ", *tag) for tag in tags),
                link=".dynstr",
                entsize=16,
            ),
        ]
        if numbers:
            sections.append(
                Section(name=".gnu.version_r", kind=0x6FFFFFFE, data=wanted, link=".dynstr", info=len(numbers))
            )
        return write_elf(sections, machine=self.machine, stack=self.stack)


def write_object(*imports: str) -> bytes:
    """An object file that wants these symbols."""
    strings = Strings()
    symbols = b"\0" * 24 + b"".join(struct.pack("<IBBHQQ", strings.add(n), GLOBAL << 4, 0, 0, 0, 0) for n in imports)
    table = Section(name=".symtab", kind=2, data=symbols, link=".strtab", info=1, entsize=24)
    return write_elf([table, Section(name=".strtab", kind=3, data=strings.data)], machine=62, kind=1)


def write_cubin(
    sm: int,
    *,
    entry: str = "rms_norm",
    registers: int = 32,
    shared: int = 0,
    stack: int = 0,
    threads: int | None = None,
    feature: str = "",
) -> bytes:
    """A cubin with one kernel, as CUDA 12 lays it out: ABI 7 up to sm_90, ABI 8 after."""
    strings = Strings()
    symbols = b"\0" * 24 + struct.pack("<IBBHQQ", strings.add(entry), GLOBAL << 4 | 2, 0x10, 1, 0, 64)
    info = struct.pack("<BBHII", 4, 0x2F, 8, 1, registers) + struct.pack("<BBHII", 4, 0x12, 8, 1, stack)
    own = b"" if threads is None else struct.pack("<BBHIII", 4, 0x05, 12, threads, 1, 1)
    sections = [
        Section(name=f".text.{entry}", kind=1, data=b"\0" * 64),
        Section(name=".strtab", kind=3, data=strings.data),
        Section(name=".symtab", kind=2, data=symbols, link=".strtab", info=1, entsize=24),
        Section(name=".nv.info", kind=0x70000000, data=info),
        Section(name=f".nv.info.{entry}", kind=0x70000000, data=own),
        Section(name=f".nv.constant0.{entry}", kind=1, data=b"\0" * 16),
    ]
    if sm >= 90:
        shared += 1024
    sections.append(Section(name=f".nv.shared.{entry}", kind=8, size=shared))
    accelerated = feature == "a"
    flags = (sm << 8 | accelerated << 3) if sm >= 100 else (sm | accelerated << 11)
    return write_elf(sections, machine=190, flags=flags, osabi=0x41, abi=8 if sm >= 100 else 7, kind=2)


def write_region(
    sm: int, code: bytes, *, ptx: bool = False, feature: str = "", name: str = "", compressed: bool = False
) -> bytes:
    """One region of a fat binary. ``compressed`` marks it so; the payload is then only a placeholder."""
    label = name.encode() + b"\0" * (-len(name) % 8)
    flags = {"": 0, "a": 1 << 20, "f": 1 << 21}[feature] | 0x11 | (0x8000 if compressed else 0)
    payload = code + b"\0" * (-len(code) % 8)
    head = struct.pack(
        "<HHIQIIHHIIIQQQ",
        1 if ptx else 2, 0x101, 64 + len(label), len(payload), len(code) if compressed else 0, 0, 7, 8,
        sm, 64 if name else 0, len(name), flags, 0, 4 * len(code) if compressed else 0,
    )  # fmt: skip
    return head + label + payload


def write_fatbin(*regions: bytes) -> bytes:
    body = b"".join(regions)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def fatbin_section(*fatbins: bytes) -> Section:
    """The section that a library carries them in."""
    return Section(name=".nv_fatbin", kind=1, data=b"".join(f + b"\0" * (-len(f) % 8) for f in fatbins), flags=2)
