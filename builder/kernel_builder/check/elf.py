"""Questions to one shared object, answered from what the dynamic loader reads: never from ``.symtab``."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from elftools.common.exceptions import ELFError
from elftools.construct import ConstructError
from elftools.elf.elffile import ELFFile

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

# What pyelftools raises on bytes that only pretend to be an ELF file.
MALFORMED = (
    ELFError, ConstructError, ValueError, TypeError, KeyError, IndexError, AttributeError, AssertionError,
    ArithmeticError, MemoryError, RecursionError, EOFError, OSError,
)  # fmt: skip
# Counts in headers are the file's own claim; no honest file comes near.
_MOST = 1 << 20


class NotAnElfError(ValueError):
    """The file is no ELF file that a loader would take; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Import:
    """An undefined dynamic symbol; ``version`` and ``library`` are empty when it carries no version."""

    name: str
    version: str = ""
    library: str = ""
    weak: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Elf:
    """One shared object.

    Attributes:
        machine: ``EM_X86_64``, ``EM_AARCH64`` and so on.
        needed: DT_NEEDED, in order.
        rpath, runpath: Their entries.
        exports: Names of defined dynamic symbols that other objects can bind to.
        unique: Names bound STB_GNU_UNIQUE.
        sections: Section name → its bytes' (offset, size); empty sections in memory have size 0.
        executable_stack: Whether the stack must be executable; a missing PT_GNU_STACK means yes.
    """

    machine: str
    needed: tuple[str, ...]
    rpath: tuple[str, ...]
    runpath: tuple[str, ...]
    imports: tuple[Import, ...]
    exports: tuple[str, ...]
    unique: tuple[str, ...]
    sections: Mapping[str, tuple[int, int]]
    executable_stack: bool

    @property
    def versioned(self) -> tuple[Import, ...]:
        """Imports that name the version of the library they want."""
        return tuple(i for i in self.imports if i.version)

    @property
    def unversioned(self) -> tuple[Import, ...]:
        """Imports that any library may satisfy, weak ones included."""
        return tuple(i for i in self.imports if not i.version)


def read_elf(path: Path) -> Elf:
    """Read a shared object.

    Raises:
        NotAnElfError: It is truncated, malformed, has no dynamic symbols, or its section headers contradict what the
            dynamic loader reads.
    """
    try:
        with path.open("rb") as stream:
            return _read(ELFFile(stream))
    except NotAnElfError:
        raise
    except MALFORMED as error:
        raise NotAnElfError(f"it cannot be read as an ELF file ({type(error).__name__}: {error})".strip()) from error


def undefined_symbols(path: Path) -> frozenset[str]:
    """Names that an object file leaves to others.

    Raises:
        NotAnElfError: It is no object file.
    """
    try:
        with path.open("rb") as stream:
            table: Any = ELFFile(stream).get_section_by_name(".symtab")
            symbols = () if table is None else table.iter_symbols()
            return frozenset(s.name for s in symbols if s.name and s["st_shndx"] == "SHN_UNDEF")
    except MALFORMED as error:
        raise NotAnElfError(f"it cannot be read as an object file ({type(error).__name__})") from error


def section_of(path: Path, name: str) -> bytes:
    """Content of a section of an object file, empty when it has none of that name.

    Raises:
        NotAnElfError: It is no object file.
    """
    try:
        with path.open("rb") as stream:
            section: Any = ELFFile(stream).get_section_by_name(name)
            return b"" if section is None else bytes(section.data())
    except MALFORMED as error:
        raise NotAnElfError(f"it cannot be read as an object file ({type(error).__name__})") from error


def _read(elf: Any) -> Elf:
    dynamic, symbols = elf.get_section_by_name(".dynamic"), elf.get_section_by_name(".dynsym")
    if dynamic is None or symbols is None:
        raise NotAnElfError("it is no shared object: it has no dynamic symbols that could be checked")
    tags = [(t.entry.d_tag, t) for t in islice(dynamic.iter_tags(), _MOST)]
    _agree(elf, tags)
    imports, exports, unique = _symbols(elf, symbols)
    return Elf(
        machine=str(elf["e_machine"]),
        needed=tuple(t.needed for name, t in tags if name == "DT_NEEDED"),
        rpath=tuple(p for name, t in tags if name == "DT_RPATH" for p in t.rpath.split(":")),
        runpath=tuple(p for name, t in tags if name == "DT_RUNPATH" for p in t.runpath.split(":")),
        imports=imports,
        exports=exports,
        unique=unique,
        sections={s.name: (s["sh_offset"], _stored_size(s)) for s in elf.iter_sections() if s.name},
        executable_stack=_executable_stack(elf),
    )


def _stored_size(section: Any) -> int:
    return 0 if section["sh_type"] == "SHT_NOBITS" else int(section["sh_size"])


def _agree(elf: Any, tags: list[tuple[str, Any]]) -> None:
    """The loader follows PT_DYNAMIC; section headers that lead elsewhere would have us check other bytes."""
    segment = next((s for s in elf.iter_segments() if s["p_type"] == "PT_DYNAMIC"), None)
    if segment is None or segment["p_offset"] != elf.get_section_by_name(".dynamic")["sh_offset"]:
        raise NotAnElfError("its section headers contradict its dynamic segment")
    pointers = {name: t.entry.d_ptr for name, t in tags}
    for name, section in (
        ("DT_SYMTAB", ".dynsym"),
        ("DT_STRTAB", ".dynstr"),
        ("DT_VERSYM", ".gnu.version"),
        ("DT_VERNEED", ".gnu.version_r"),
    ):
        header = elf.get_section_by_name(section)
        address = pointers.get(name)
        mapped = None if address is None else next(elf.address_offsets(address), None)
        if (address, mapped) != ((None, None) if header is None else (header["sh_addr"], header["sh_offset"])):
            raise NotAnElfError(f"its section {section} is not the table that the dynamic loader reads ({name})")


def _symbols(elf: Any, table: Any) -> tuple[tuple[Import, ...], tuple[str, ...], tuple[str, ...]]:
    versions = elf.get_section_by_name(".gnu.version")
    wanted = _wanted_versions(elf)
    imports: list[Import] = []
    exports: list[str] = []
    unique: list[str] = []
    for index, symbol in enumerate(islice(table.iter_symbols(), 1, _MOST)):
        bind = symbol["st_info"]["bind"]
        if bind == "STB_LOCAL" or not symbol.name:
            continue
        if symbol["st_shndx"] == "SHN_UNDEF":
            number = versions.get_symbol(index + 1)["ndx"] if versions is not None else 0
            version, library = wanted.get(number & 0x7FFF if isinstance(number, int) else 0, ("", ""))
            imports.append(Import(name=symbol.name, version=version, library=library, weak=bind == "STB_WEAK"))
            continue
        exports.append(symbol.name)
        # 10 is STB_GNU_UNIQUE; pyelftools calls it by the range it lies in.
        if bind in ("STB_LOOS", "STB_GNU_UNIQUE", 10):
            unique.append(symbol.name)
    return tuple(imports), tuple(exports), tuple(unique)


def _wanted_versions(elf: Any) -> dict[int, tuple[str, str]]:
    section = elf.get_section_by_name(".gnu.version_r")
    if section is None:
        return {}
    return {
        auxiliary["vna_other"] & 0x7FFF: (auxiliary.name, need.name)
        for need, auxiliaries in islice(section.iter_versions(), _MOST)
        for auxiliary in islice(auxiliaries, _MOST)
    }


def _executable_stack(elf: Any) -> bool:
    flags = [int(s["p_flags"]) for s in elf.iter_segments() if s["p_type"] == "PT_GNU_STACK"]
    return not flags or any(f & 1 for f in flags)
