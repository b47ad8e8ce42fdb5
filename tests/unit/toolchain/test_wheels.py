"""Reading wheels: which parts are read, and what is refused."""

from __future__ import annotations

import hashlib
import io
import random
import stat
import zipfile

import pytest
from wheel_server import FILES, wheel_bytes

from kernel_builder.toolchain.wheels import (
    LocalFile,
    UnfitWheelError,
    coalesce,
    read_directory,
    run_bytes,
    select,
    unpack,
)


class Memory:
    """A ByteSource that remembers what was read."""

    def __init__(self, data: bytes) -> None:
        self.data, self.size, self.reads = data, len(data), []

    def read(self, start: int, stop: int) -> bytes:
        self.reads.append((start, stop))
        return self.data[start:stop]


def test_neighbours_are_read_together_and_far_members_apart() -> None:
    source = Memory(wheel_bytes({"a/1": b"1" * 99, "a/2": b"2" * 99, "a/3": b"3" * 99}))
    members = select(read_directory(source), ["a/*"])
    assert [[m.name for m in run] for run in coalesce(members)] == [["a/1"], ["a/2", "a/3"]]
    assert run_bytes(members) < 1000 < 1_000_000 < source.size


def test_members_come_out_as_they_went_in(tmp_path) -> None:
    path = tmp_path / "x.whl"
    path.write_bytes(wheel_bytes(FILES))
    source = LocalFile(path)
    members = select(read_directory(source), ["pkg/*"], ["*.so"])
    assert dict(unpack(source, members, tmp_path)) == {n: hashlib.sha256(c).hexdigest() for n, c in FILES.items()}
    assert {name: (tmp_path / name).read_bytes() for name in FILES} == FILES


def test_stored_members_are_read_too(tmp_path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a/empty", b"")
        archive.writestr("a/x", b"plain")
    source = Memory(buffer.getvalue())
    list(unpack(source, read_directory(source), tmp_path))
    assert [(tmp_path / "a" / name).read_bytes() for name in ("empty", "x")] == [b"", b"plain"]


def test_wheels_with_zip64_records_are_read(tmp_path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive, archive.open("a/x", "w", force_zip64=True) as file:
        file.write(b"content")
    source = Memory(buffer.getvalue())
    assert dict(unpack(source, read_directory(source), tmp_path)) == {"a/x": hashlib.sha256(b"content").hexdigest()}


def test_a_pattern_without_a_match_is_named() -> None:
    members = read_directory(Memory(wheel_bytes(FILES)))
    with pytest.raises(UnfitWheelError, match=r"nothing that matches torch/include/\*"):
        select(members, ["pkg/*", "torch/include/*"])


def test_flipped_bits_are_noticed(tmp_path) -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr("a/1", b"payload")
    source = Memory(buffer.getvalue().replace(b"payload", b"paxload"))
    with pytest.raises(UnfitWheelError, match="'a/1' is damaged"):
        list(unpack(source, read_directory(source), tmp_path))


def test_a_member_larger_than_it_says_is_not_inflated(tmp_path) -> None:
    data = wheel_bytes({"a/bomb": bytes(50_000_000)}, ballast=False)
    lied = data.replace((50_000_000).to_bytes(4, "little"), (10).to_bytes(4, "little"))
    source = Memory(lied)
    with pytest.raises(UnfitWheelError, match="damaged"):
        list(unpack(source, select(read_directory(source), ["a/*"]), tmp_path))
    assert (tmp_path / "a/bomb").stat().st_size <= 11


def test_a_symbolic_link_is_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        entry = zipfile.ZipInfo("a/link")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc")
    with pytest.raises(UnfitWheelError, match="symbolic link"):
        read_directory(Memory(buffer.getvalue()))


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_two_members_of_one_name_are_refused() -> None:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("a/x", b"1")
        archive.writestr("a/x", b"2")
    with pytest.raises(UnfitWheelError, match="the same name"):
        select(read_directory(Memory(buffer.getvalue())), ["a/*"])


@pytest.mark.parametrize("data", [b"", b"not a zip" * 100, wheel_bytes(FILES)[:-40]])
def test_what_is_no_wheel_is_refused(data) -> None:
    with pytest.raises(UnfitWheelError, match="not a readable wheel"):
        read_directory(Memory(data))


def test_a_directory_that_points_elsewhere_is_refused(tmp_path) -> None:
    data = wheel_bytes({"a/1": b"x" * 50, "a/2": b"y" * 50}, ballast=False)
    moved = data.replace(b"a/1", b"a/9", 1)
    source = Memory(moved)
    with pytest.raises(UnfitWheelError, match="not where the directory says"):
        list(unpack(source, select(read_directory(source), ["a/*"]), tmp_path))


def test_existing_files_are_not_overwritten(tmp_path) -> None:
    source = Memory(wheel_bytes(FILES))
    members = select(read_directory(source), ["pkg/version.py"])
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/version.py").write_text("mine")
    with pytest.raises(UnfitWheelError, match=r"pkg/version\.py"):
        list(unpack(source, members, tmp_path))
    assert (tmp_path / "pkg/version.py").read_text() == "mine"


def test_damage_anywhere_is_refused_or_harmless(tmp_path) -> None:
    good, chance = wheel_bytes(FILES, ballast=False), random.Random(7)
    refused = 0
    for number in range(300):
        data = bytearray(good)
        for _ in range(3):
            data[chance.randrange(len(data))] = chance.randrange(256)
        source = Memory(bytes(data))
        try:
            list(unpack(source, select(read_directory(source), ["*"]), tmp_path / str(number)))
        except UnfitWheelError:
            refused += 1
    assert refused > 100
