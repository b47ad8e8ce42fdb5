"""Tables of a torch's exported names reach the store read by ranges and proven, or not at all, and only once."""

from __future__ import annotations

from dataclasses import replace

import pytest
from test_toolchain_fetch import index_of
from test_torch_symbols import elf
from wheel_server import NAME, locked_item, locked_wheel, wheel_bytes

from kernel_builder.errors import DigestError, ToolchainError
from kernel_builder.settings import Settings
from kernel_builder.toolchain.lock import Lock
from kernel_builder.toolchain.store import file_digests
from kernel_builder.toolchain.supply import Supply
from kernel_builder.toolchain.symbols.tables import digest_of, names_of, stored, symbols_at

EXPORTS = {"libc10.so": "c10", "libtorch_cpu.so": "cpu", "libc10_cuda.so": "c10_cuda", "libtorch_cuda.so": "cuda"}
TABLES = {"cpu.txt": b"c10\ncpu\nweak_one\n", "cuda.txt": b"c10_cuda\ncuda\nweak_one\n"}


def wheel_of(exports: dict[str, str], *, moved: bool = True) -> bytes:
    members = {f"torch/lib/{name}": elf(filler=9, moved=moved, names=[symbol]) for name, symbol in exports.items()}
    return wheel_bytes(members)


GOOD = wheel_of(EXPORTS)
OTHER = wheel_of({**EXPORTS, "libtorch_cpu.so": "cpv"})


def item_of(data: bytes, tables: dict[str, bytes] = TABLES):
    return replace(locked_item(locked_wheel(data)), symbols=digest_of(tables))


@pytest.fixture
def supply(server, recorder, tmp_path, monkeypatch):
    """Takes from the loopback server into the store ``tmp_path``."""
    made = Supply(Settings(store=tmp_path), recorder)
    made.__dict__["_index"] = index_of(server, recorder)
    yield made
    made.close()


@pytest.mark.parametrize("moved", [True, False], ids=["patched by patchelf", "as linked"])
def test_names_are_read_without_the_rest_of_the_wheel(server, supply, moved) -> None:
    data = wheel_of(EXPORTS, moved=moved)
    server.script.wheels[NAME] = data
    item = item_of(data)
    assert names_of(symbols_at(supply.symbols(item), item), "cuda") == {*EXPORTS.values(), "weak_one"}
    assert 0 < supply.received < 100_000 < len(data)


def test_the_second_use_asks_no_network(server, supply, recorder, tmp_path) -> None:
    server.script.wheels[NAME] = GOOD
    item = item_of(GOOD)
    folder = supply.symbols(item)
    asked = len(server.script.requests)
    offline = Supply(Settings(store=tmp_path), recorder)
    assert offline.symbols(item) == folder
    assert len(server.script.requests) == asked
    assert offline.received == 0
    known = stored(Lock(toolkits={}, sdks={item.version: item}), tmp_path)
    assert known[item.version].root == folder


def test_other_names_under_the_right_wheel_are_refused_and_not_kept(server, supply, tmp_path) -> None:
    """A server that hands out other bytes by ranges, where the wheel's own digest cannot be compared."""
    server.script.wheels[NAME] = OTHER
    server.script.hashes = False
    item = item_of(OTHER)
    with pytest.raises(DigestError) as caught:
        supply.symbols(item)
    assert "do not export the names that the lock's digest names" in caught.value.detail
    assert file_digests(tmp_path / "symbols") == {}
    assert stored(Lock(toolkits={}, sdks={item.version: item}), tmp_path) == {}


@pytest.mark.parametrize("fault", ["cut", "lie"])
def test_a_server_that_breaks_off_or_lies_about_ranges_gives_nothing(server, supply, tmp_path, fault) -> None:
    server.script.wheels[NAME] = GOOD
    server.script.faults = [fault] * 60
    with pytest.raises(ToolchainError):
        supply.symbols(item_of(GOOD))
    assert file_digests(tmp_path / "symbols") == {}


def test_a_transfer_that_broke_once_gives_the_same_tables(server, supply) -> None:
    server.script.wheels[NAME] = GOOD
    server.script.faults = ["", "cut", "503"]
    item = item_of(GOOD)
    folder = supply.symbols(item)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == TABLES


def test_a_server_without_ranges_gives_the_same_tables_and_says_so(server, supply, recorder) -> None:
    server.script.wheels[NAME] = GOOD
    server.script.ranges = False
    folder = supply.symbols(item_of(GOOD))
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == TABLES
    assert recorder.notes == [f"127.0.0.1 answers no range requests: downloading all of {NAME}"]
