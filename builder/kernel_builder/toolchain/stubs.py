"""Link-time stand-ins for this machine's C and C++ run-time libraries that offer nothing above manylinux_2_28.

A linker binds each name to the version that the library it sees offers as default. These stand-ins offer, per name, the
highest version that the floor has, so libraries linked with them ask for nothing newer.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile

from kernel_builder.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

FLOOR: Mapping[str, tuple[int, ...]] = {"GLIBC": (2, 28), "GLIBCXX": (3, 4, 24), "CXXABI": (1, 3, 11), "GCC": (7, 0, 0)}
_UNNUMBERED = ("CXXABI_FLOAT128", "CXXABI_TM_1")
_MOVED = Path(__file__).with_name("floor_moved.tsv")
_KINDS = {"STT_OBJECT": "object", "STT_COMMON": "object", "STT_TLS": "tls_object"}


@dataclass(frozen=True, kw_only=True, slots=True, order=True)
class Symbol:
    """An exported name. ``kind`` is the assembler's type: ``function``, ``object`` or ``tls_object``."""

    name: str
    version: str
    kind: str
    size: int
    weak: bool


def version_key(version: str) -> tuple[int, ...] | None:
    """Numbers of a version that the floor has, None for one above it: ``GLIBC_2.17`` → (2, 17)."""
    if version in _UNNUMBERED:
        return (0,)
    family, _, text = version.partition("_")
    if family not in FLOOR or not all(part.isdecimal() for part in text.split(".")):
        return None
    numbers = tuple(int(part) for part in text.split("."))
    return numbers if numbers <= FLOOR[family] else None


def read_symbols(library: Path) -> tuple[Symbol, ...]:
    """Names of a shared library, each with its highest version that the floor has, sorted.

    Raises:
        ToolchainError: The file is no shared library with symbol versions.
    """
    best: dict[str, tuple[tuple[int, ...], Symbol]] = {}
    try:
        for symbol in _versioned(library):
            key = version_key(symbol.version)
            if key is not None and (symbol.name not in best or key > best[symbol.name][0]):
                best[symbol.name] = key, symbol
    except (ELFError, OSError, AttributeError) as error:
        raise ToolchainError(f"The symbols of {library.name} cannot be read: {error}.", where=str(library)) from error
    return tuple(sorted(symbol for _, symbol in best.values()))


def _versioned(library: Path) -> Iterator[Symbol]:
    with library.open("rb") as file:
        elf: Any = ELFFile(file)
        table, numbers = elf.get_section_by_name(".dynsym"), elf.get_section_by_name(".gnu.version")
        definitions = elf.get_section_by_name(".gnu.version_d")
        names = {entry["vd_ndx"]: next(iter(aliases)).name for entry, aliases in definitions.iter_versions()}
        for place, symbol in enumerate(table.iter_symbols()):
            number = numbers.get_symbol(place)["ndx"]
            if symbol["st_shndx"] == "SHN_UNDEF" or not isinstance(number, int):
                continue
            # The top bit marks a version that is not the default one.
            version = names.get(number & 0x7FFF, "")
            if symbol.name in ("", version) or symbol.name.endswith("_version_placeholder"):
                continue
            yield Symbol(
                name=symbol.name,
                version=version,
                kind=_KINDS.get(symbol["st_info"]["type"], "function"),
                size=max(symbol["st_size"], 1),
                weak=symbol["st_info"]["bind"] == "STB_WEAK",
            )


def distribute(libraries: Mapping[str, Iterable[Symbol]]) -> dict[str, tuple[Symbol, ...]]:
    """Put names that glibc 2.34 merged into libc.so.6 back into the library where the floor has them."""
    homes = moved_names()
    placed: dict[str, dict[str, Symbol]] = {soname: {} for soname in libraries}
    for soname, symbols in libraries.items():
        for symbol in symbols:
            home = homes.get(symbol.name, soname) if soname == "libc.so.6" else soname
            placed.setdefault(home, {}).setdefault(symbol.name, symbol)
    return {soname: tuple(sorted(symbols.values())) for soname, symbols in placed.items() if symbols}


def moved_names() -> dict[str, str]:
    """Name → the library that had it before glibc 2.34."""
    rows = (line.split("\t") for line in _MOVED.read_text(encoding="ascii").splitlines())
    return {name: soname for soname, names in rows for name in names.split()}


def assembly(symbols: Iterable[Symbol]) -> str:
    """Assembler source of a stand-in with these names."""
    sections: dict[str, list[str]] = {"function": [], "object": [], "tls_object": []}
    for number, symbol in enumerate(symbols):
        label = f"stub_{number}"
        body = ".byte 0" if symbol.kind == "function" else f".zero {symbol.size}"
        # Three @ rename the label; with two, the label itself would be exported beside the name.
        sections[symbol.kind].append(
            f".{'weak' if symbol.weak else 'globl'} {label}\n"
            f".type {label}, @{symbol.kind}\n"
            f"{label}: {body}\n"
            f".size {label}, {symbol.size}\n"
            f".symver {label}, {symbol.name}@@@{symbol.version}\n"
        )
    return "".join(
        [
            ".text\n.byte 0\n",
            *sections["function"],
            ".bss\n",
            *sections["object"],
            '.section .tbss, "awT", @nobits\n',
            *sections["tls_object"],
            '.section .note.GNU-stack, "", @progbits\n',
        ]
    )


def version_script(symbols: Iterable[Symbol]) -> str:
    """One empty node per version. A node with a pattern would strip the versions of what it matches."""
    versions = sorted({symbol.version for symbol in symbols}, key=lambda v: (v.partition("_")[0], version_key(v) or ()))
    return "".join(f"{version} {{ }};\n" for version in versions)
