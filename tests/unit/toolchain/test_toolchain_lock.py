"""The lock that is shipped is whole, and what it lacks is named."""

from __future__ import annotations

import pytest

from kernel_builder.errors import ToolchainError
from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.relock import format_lock
from kernel_loader.format.versions import MajorMinor

LOCK = read_lock()
ITEMS = [*LOCK.toolkits.values(), *LOCK.sdks.values()]


@pytest.mark.parametrize("item", ITEMS, ids=lambda item: item.label)
def test_every_entry_pins_its_bytes(item) -> None:
    assert len(item.digest) == 64
    assert item.headers
    for wheel in item.wheels:
        assert len(wheel.tree) == 64
        assert wheel.members > 0
        assert wheel.unpacked > 0
        assert all(len(file.sha256) == 64 and file.size > 0 and "x86_64" in file.name for file in wheel.files)
        assert wheel.files


def test_toolkits_name_their_libraries() -> None:
    for item in LOCK.toolkits.values():
        assert set(item.libraries) == {"nvrtc", "nvrtc_builtins", "nvfatbin"}
        assert str(item.version) in item.libraries["nvrtc_builtins"]


def test_the_lock_prints_as_it_reads(tmp_path) -> None:
    copy = tmp_path / "lock.toml"
    copy.write_text(format_lock(LOCK))
    assert read_lock(copy) == LOCK


def test_an_unknown_version_is_named_with_its_neighbours() -> None:
    with pytest.raises(ToolchainError, match=r"There is no CUDA toolkit 12\.7 in the lock, which has 12\.6") as caught:
        LOCK.toolkit(MajorMinor(12, 7))
    assert caught.value.hint.startswith("did you mean 12.")
    with pytest.raises(ToolchainError, match=r"no torch SDK 3\.0"):
        LOCK.sdk(MajorMinor(3, 0))


@pytest.mark.parametrize("text", ["", "version = 2", "version = 1\n[torch]\n'2.10' = 3\n", "not toml"])
def test_a_lock_of_another_shape_is_refused(text, tmp_path) -> None:
    path = tmp_path / "lock.toml"
    path.write_text(text)
    with pytest.raises(ToolchainError):
        read_lock(path)
