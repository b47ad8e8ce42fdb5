"""`toolchain lock` fills the lock in from what an index serves."""

from __future__ import annotations

import json

import pytest
from wheel_server import FILES, wheel_bytes

from kernel_builder.errors import ToolchainError, UsageError
from kernel_builder.settings import Settings
from kernel_builder.toolchain import relock as relocking
from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.relock import relock
from kernel_builder.toolchain.symbols.tables import digest_of
from kernel_loader.format.versions import MajorMinor

WRITTEN = """
version = 1
[toolkit]
[torch."1.0"]
release = "1.0.0"
headers = ["pkg/include"]
wheel = [{project = "headers", version = "1.0", include = ["pkg/include/*"], exclude = ["*.py"]}]
"""
NAMES = [f"headers-1.0-{tag}-manylinux_2_28_x86_64.whl" for tag in ("cp311-cp311", "cp312-cp312", "cp313-cp313")]


@pytest.fixture(autouse=True)
def exports(monkeypatch):
    """The served wheels hold no libraries: what they would export is made up."""
    monkeypatch.setattr(relocking, "take_symbols", lambda wheel, *_: {"cpu.txt": wheel.version.encode()})


@pytest.fixture
def index(server, monkeypatch):
    """pip configured to ask the loopback server, which serves a JSON page with digests and sizes."""
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", server.simple)
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    server.script.json_page = True
    return server.script


@pytest.fixture
def lock_file(tmp_path):
    path = tmp_path / "lock.toml"
    path.write_text(WRITTEN)
    return path


def test_files_with_the_same_members_become_alternatives(index, lock_file, recorder, tmp_path) -> None:
    index.wheels.update(dict.fromkeys(NAMES, wheel_bytes(FILES)))
    index.wheels[NAMES[2]] = wheel_bytes({**FILES, "pkg/include/a.h": b"other"})
    index.wheels["headers-1.0-cp312-cp312-win_amd64.whl"] = b"never read"
    relock([], Settings(store=tmp_path), recorder, path=lock_file)
    item = read_lock(lock_file).sdk(MajorMinor(1, 0))
    (wheel,) = item.wheels
    assert [file.name for file in wheel.files] == [NAMES[1], NAMES[0]]
    assert (wheel.members, wheel.exclude) == (2, ("*.py",))
    assert item.digest == wheel.tree
    assert item.symbols == digest_of({"cpu.txt": b"1.0"})


def test_a_missing_version_is_laid_out_like_its_relative(index, lock_file, recorder, tmp_path) -> None:
    for release in ("1.1.0", "1.1.2", "1.1.3rc1", "1.10.0"):
        index.wheels[f"headers-{release}-py3-none-manylinux_2_28_x86_64.whl"] = wheel_bytes(FILES)
    relock(["torch-1.1"], Settings(store=tmp_path), recorder, path=lock_file)
    lock = read_lock(lock_file)
    assert lock.sdk(MajorMinor(1, 1)).release == "1.1.2"
    assert lock.sdk(MajorMinor(1, 1)).headers == ("pkg/include",)
    assert lock.sdk(MajorMinor(1, 0)).digest == ""


@pytest.mark.parametrize("name", ["torch-1.9", "torch-7.0", "12.8"])
def test_a_version_that_no_index_has_is_an_error(name, index, lock_file, recorder, tmp_path) -> None:
    with pytest.raises(ToolchainError):
        relock([name], Settings(store=tmp_path), recorder, path=lock_file)
    assert lock_file.read_text() == WRITTEN


def test_a_name_that_is_none_is_a_usage_error(index, lock_file, recorder, tmp_path) -> None:
    with pytest.raises(UsageError, match="'cuda' names no lock entry"):
        relock(["cuda"], Settings(store=tmp_path), recorder, path=lock_file)
    assert json.dumps(index.requests) == "[]"
