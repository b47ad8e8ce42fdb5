"""Exported names out of a wheel whose libraries are not downloaded: tables in front or moved to the end, damage."""

from __future__ import annotations

import base64
import random
import struct
import zipfile
import zlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest

from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.model import TorchSymbols
from kernel_builder.toolchain.symbols.libraries import exported_names
from kernel_builder.toolchain.symbols.tables import (
    covered,
    digest_of,
    names_of,
    proven_by,
    read_tables,
    shim,
    shim_table,
    symbols_at,
)
from kernel_builder.toolchain.symbols.tails import inflate_tail
from kernel_builder.toolchain.wheels import LocalFile, UnfitWheelError, read_directory
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from pathlib import Path

NAMES = [f"_ZN2at8function{number}Ev" for number in range(3000)] + ["torch_library_init_def", "aoti_torch_new"]
LOCAL, GLOBAL, WEAK = 0, 1, 2
HIDDEN = 2
LIBRARY = "torch/lib/libc10.so"


def gnu_hash(name: str) -> int:
    value = 5381
    for byte in name.encode():
        value = (value * 33 + byte) & 0xFFFFFFFF
    return value


def words(size: int, seed: int) -> bytes:
    """Text that packs about as well as machine code does."""
    chooser = random.Random(seed)
    return bytes(chooser.choices(b"abcdefghijklmnopqrstuvwxyz    ", k=size))


def elf(*, filler: int, moved: bool, names: list[str] = NAMES, lie: str = "") -> bytes:
    """A library whose names and hashes lie behind its symbols, or, as patchelf leaves them, at the file's end."""
    exported = [(name, GLOBAL << 4 | 2, 0, 7) for name in names]
    symbols = [("", 0, 0, 0), ("needed", GLOBAL << 4, 0, 0), ("inside", LOCAL << 4, 0, 7), *exported]
    symbols.insert(3, ("weak_one", WEAK << 4 | 1, 0, 7))
    symbols.insert(3, ("hidden_one", GLOBAL << 4 | 1, HIDDEN, 7))
    strings, offsets = bytearray(b"\0"), []
    for name, *_ in symbols:
        offsets.append(len(strings) if name else 0)
        strings += name.encode() + b"\0" if name else b""
    table = b"".join(
        struct.pack("<IBBHQQ", offset, info, other, section, 0, 0)
        for offset, (_, info, other, section) in zip(offsets, symbols, strict=True)
    )
    hashes = [gnu_hash(name) & ~1 for name, *_ in symbols[3:]]
    hashed = struct.pack("<IIII", 1, 3, 1, 5) + bytes(8) + struct.pack("<I", 3)
    hashed += struct.pack(f"<{len(hashes)}I", *hashes)
    if lie:
        strings = strings.replace(lie.encode(), lie[::-1].encode())
    front, back = (table, hashed + bytes(strings)) if moved else (table + hashed + bytes(strings), b"")
    body = front + words(filler, 1)
    at = {"table": 64, "hash": 64 + len(body) if moved else 64 + len(table)}
    at["strings"] = at["hash"] + len(hashed)
    sections = [(0, 0, 0, 0), (11, at["table"], len(table), 2), (3, at["strings"], len(strings), 0)]
    sections.append((0x6FFFFFF6, at["hash"], len(hashed), 1))
    start = 64 + len(body) + len(back)
    header = struct.pack("<16s24xQ10xHHH", b"\x7fELF\2\1\1", start, 64, len(sections), 0)
    rows = [
        struct.pack("<IIQQQQIIQQ", 0, kind, 0, 0, where, size, link, 0, 0, 0) for kind, where, size, link in sections
    ]
    return header + body + back + b"".join(rows)


@dataclass
class Counting:
    """A wheel on disk that counts what is read of it."""

    file: LocalFile
    read_bytes: int = 0
    size: int = field(init=False)

    def __post_init__(self) -> None:
        self.size = self.file.size

    def read(self, start: int, stop: int) -> bytes:
        self.read_bytes += stop - start
        return self.file.read(start, stop)


def wheel(folder: Path, members: dict[str, bytes]) -> Counting:
    path = folder / "torch-2.99.0-cp312-cp312-manylinux_2_28_x86_64.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return Counting(LocalFile(path))


def names_in(source: Counting, name: str = LIBRARY) -> tuple[str, ...]:
    member = next(m for m in read_directory(source) if m.name == name)
    source.read_bytes = 0
    return exported_names(source, member)


@pytest.mark.parametrize("moved", [False, True])
@pytest.mark.parametrize("filler", [0, 100_000, 12_000_000])
def test_what_a_library_exports_is_read_wherever_its_tables_lie(tmp_path, moved, filler):
    source = wheel(tmp_path, {LIBRARY: elf(filler=filler, moved=moved)})
    assert names_in(source) == tuple(sorted([*NAMES, "weak_one"]))


def test_the_middle_of_a_large_library_is_not_read(tmp_path):
    source = wheel(tmp_path, {LIBRARY: elf(filler=16_000_000, moved=True)})
    assert source.size > 9_000_000
    names_in(source)
    assert source.read_bytes < 3_500_000


def test_a_name_that_the_librarys_own_hash_denies_is_refused(tmp_path):
    source = wheel(tmp_path, {LIBRARY: elf(filler=0, moved=True, lie="function77E")})
    with pytest.raises(UnfitWheelError, match="not the one that the library's hash names"):
        names_in(source)


@pytest.mark.parametrize("cut", [10, 60, 2_000])
def test_a_library_that_breaks_off_is_refused(tmp_path, cut):
    source = wheel(tmp_path, {LIBRARY: elf(filler=0, moved=False)[:cut]})
    with pytest.raises(UnfitWheelError):
        names_in(source)


@pytest.mark.parametrize("data", [b"", b"MZ" + bytes(200), b"\x7fELF\1\1\1" + bytes(200)])
def test_what_is_no_library_is_refused(tmp_path, data):
    with pytest.raises(UnfitWheelError):
        names_in(wheel(tmp_path, {LIBRARY: data}))


def test_sizes_that_lie_outside_the_file_are_refused(tmp_path):
    data = bytearray(elf(filler=0, moved=False))
    struct.pack_into("<Q", data, len(data) - 3 * 64 + 32, 1 << 60)  # the symbols' size
    with pytest.raises(UnfitWheelError):
        names_in(wheel(tmp_path, {LIBRARY: bytes(data)}))


def test_a_tail_is_known_from_where_nothing_refers_to_what_is_missing():
    # Letters that seldom repeat each other: what does is copied from the output before, missing or not.
    text = base64.b64encode(random.Random(2).randbytes(2_000_000)) + b"the very end"
    packer = zlib.compressobj(wbits=-15)
    packed = packer.compress(text) + packer.flush()
    found = inflate_tail(packed[-400_000:])
    assert found is not None
    output, known = found
    assert len(output) - known > 100_000
    assert text.endswith(output[known:])


def test_a_piece_without_a_block_has_no_tail():
    assert inflate_tail(bytes(50_000)) is None


def _torch(folder: Path) -> Counting:
    libraries = {"libc10.so": ["a"], "libtorch_cpu.so": ["b"], "libc10_cuda.so": ["c"], "libtorch_cuda.so": ["d"]}
    return wheel(folder, {f"torch/lib/{n}": elf(filler=9, moved=True, names=names) for n, names in libraries.items()})


def test_variants_for_cuda_may_import_more(tmp_path):
    tables = read_tables(_torch(tmp_path))
    for name, data in tables.items():
        (tmp_path / name).write_bytes(data)
    symbols = symbols_at(tmp_path, next(iter(read_lock().sdks.values())))
    assert names_of(symbols, "cpu") == {"a", "b", "weak_one"}
    assert names_of(symbols, "cuda") == {"a", "b", "c", "d", "weak_one"}
    assert digest_of(tables) != digest_of(tables | {"cpu.txt": b"a\n"})


def test_a_wheel_without_a_library_is_refused(tmp_path):
    with pytest.raises(UnfitWheelError, match=r"holds no torch/lib/libc10\.so"):
        read_tables(wheel(tmp_path, {"torch/__init__.py": b""}))


def tables_of(folder: Path, version: str, *, cpu: str, cuda: str = "") -> TorchSymbols:
    root = folder / version
    root.mkdir()
    for backend, names in (("cpu", cpu), ("cuda", cuda)):
        (root / f"{backend}.txt").write_text("".join(f"{name}\n" for name in names.split()))
    return TorchSymbols(version=MajorMinor.parse(version), release=f"{version}.0", root=root)


def rows_of(*tables: TorchSymbols) -> list[str]:
    return [line for line in shim_table(tables, {}).splitlines() if not line.startswith("#")]


def test_the_table_of_the_shim_says_from_when_to_when(tmp_path):
    older = tables_of(tmp_path, "2.9", cpu="torch_old torch_gone _ZN3c10")
    newer = tables_of(tmp_path, "2.10", cpu="torch_old aoti_torch_new")
    assert rows_of(newer, older) == ["aoti_torch_new 2.10 2.10", "torch_gone 2.9 2.9", "torch_old 2.9 2.10"]


def test_a_function_that_was_away_for_a_release_counts_from_its_return(tmp_path):
    names = ["torch_back", "", "torch_back", "torch_back", ""]
    tables = [tables_of(tmp_path, f"2.{minor}", cpu=cpu) for minor, cpu in enumerate(names)]
    assert rows_of(*tables) == ["torch_back 2.2 2.3"]


def test_functions_of_cuda_builds_are_marked(tmp_path):
    both = tables_of(tmp_path, "2.9", cpu="torch_any", cuda="torch_any torch_stream")
    assert rows_of(both) == ["torch_any 2.9 2.9", "torch_stream 2.9 2.9 cuda"]


def test_the_shipped_table_holds_known_points():
    assert shim()["aoti_torch_get_current_cuda_stream"] == (MajorMinor(2, 7), MajorMinor(2, 15))
    assert "aoti_torch_get_current_cuda_stream" not in shim("cpu")
    assert shim("cpu")["torch_call_dispatcher"][0] == MajorMinor(2, 10)
    assert shim("cpu")["aoti_torch_is_contiguous"][0] == MajorMinor(2, 8)
    assert covered() == tuple(sorted(read_lock().sdks))


def test_the_shipped_table_is_of_the_names_that_the_lock_pins():
    assert proven_by() == {item.release: item.symbols for item in read_lock().sdks.values()}
    assert all(item.symbols for item in read_lock().sdks.values())
