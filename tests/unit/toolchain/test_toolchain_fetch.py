"""Wheels reach the store in parts, proven, or not at all."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from wheel_server import FILES, NAME, Script, WheelServer, locked_item, locked_wheel, wheel_bytes

from kernel_builder.errors import DigestError, KernelBuilderError, ToolchainError
from kernel_builder.files import tree_digest
from kernel_builder.settings import Settings
from kernel_builder.toolchain.fetch import take
from kernel_builder.toolchain.index.places import Index
from kernel_builder.toolchain.pip_settings import PipSettings
from kernel_builder.toolchain.store import file_digests
from kernel_builder.toolchain.supply import Supply

GOOD = wheel_bytes(FILES)
WRONG = wheel_bytes({**FILES, "pkg/include/sub/b.h": b"int c;\n"})


def index_of(server: WheelServer, recorder, **settings) -> Index:
    chosen = {"index_url": server.simple, "retries": 3, **settings}
    return Index(PipSettings(**chosen), recorder, pause=lambda seconds: None)


def serve(server: WheelServer, data: bytes = GOOD, **script) -> Script:
    server.script.wheels[NAME] = data
    for name, value in script.items():
        setattr(server.script, name, value)
    return server.script


def test_ranges_bring_the_members_and_leave_the_rest(server, recorder, tmp_path) -> None:
    serve(server)
    index = index_of(server, recorder)
    files = take(locked_wheel(GOOD), index, tmp_path, recorder)
    assert {path: (tmp_path / path).read_bytes() for path in files} == FILES
    assert index.received < 100_000 < len(GOOD)
    assert recorder.notes == []
    assert recorder.bars[-1][1] == recorder.bars[-1][2]
    assert all(done < total for _, done, total in recorder.bars[:-1])


def test_a_server_without_ranges_gives_the_same_tree_and_says_so(server, recorder, tmp_path) -> None:
    serve(server, ranges=False)
    index = index_of(server, recorder)
    files = take(locked_wheel(GOOD), index, tmp_path, recorder)
    assert tree_digest(files) == tree_digest(file_digests(tmp_path)) == locked_wheel(GOOD).tree
    assert index.received > len(GOOD)
    assert recorder.notes == [f"127.0.0.1 answers no range requests: downloading all of {NAME}"]


def test_a_broken_transfer_goes_on_where_it_stopped(server, recorder, tmp_path) -> None:
    script = serve(server, faults=["", "cut"])
    take(locked_wheel(GOOD), index_of(server, recorder), tmp_path, recorder)
    (broken, resumed) = script.file_ranges[1:3]
    assert broken.split("-")[1] == resumed.split("-")[1]


def test_a_whole_download_that_breaks_starts_again(server, recorder, tmp_path) -> None:
    serve(server, ranges=False, faults=["", "cut"])
    assert take(locked_wheel(GOOD), index_of(server, recorder), tmp_path, recorder)


def test_busy_servers_are_asked_again(server, recorder, tmp_path) -> None:
    script = serve(server, faults=["503", "", "429"])
    assert take(locked_wheel(GOOD), index_of(server, recorder), tmp_path, recorder)
    assert script.faults == []


def test_a_page_that_breaks_off_is_read_again(server, recorder, tmp_path) -> None:
    serve(server, page_faults=["cut"])
    assert take(locked_wheel(GOOD), index_of(server, recorder), tmp_path, recorder)


def test_a_server_that_always_breaks_is_given_up(server, recorder, tmp_path) -> None:
    serve(server, faults=["cut"] * 50)
    with pytest.raises(ToolchainError, match=r"No index has a usable wheel of headers 1\.0") as caught:
        take(locked_wheel(GOOD), index_of(server, recorder), tmp_path, recorder)
    assert "broke off 4 times" in caught.value.detail
    assert list(tmp_path.iterdir()) == []


def test_other_bytes_under_the_right_name_are_refused(server, recorder, tmp_path) -> None:
    serve(server, WRONG, hashes=False)
    lock = locked_wheel(GOOD)
    lock = replace(lock, files=(replace(lock.files[0], size=len(WRONG)),))
    with pytest.raises(DigestError) as caught:
        take(lock, index_of(server, recorder), tmp_path, recorder)
    assert server.simple in caught.value.detail
    assert file_digests(tmp_path) == {}


def test_a_page_that_declares_another_digest_is_not_downloaded_from(server, recorder, tmp_path) -> None:
    script = serve(server, WRONG)
    with pytest.raises(DigestError, match="not the one that the lock names"):
        take(locked_wheel(GOOD), index_of(server, recorder), tmp_path, recorder)
    assert script.file_ranges == []


def test_a_whole_wheel_with_another_digest_is_refused(server, recorder, tmp_path) -> None:
    other = bytes([*GOOD[:-1], GOOD[-1] ^ 1])
    serve(server, other, hashes=False, ranges=False)
    with pytest.raises(DigestError):
        take(locked_wheel(GOOD), index_of(server, recorder), tmp_path, recorder)


def test_the_next_place_is_tried_after_one_with_wrong_bytes(server, recorder, tmp_path) -> None:
    mirror = tmp_path / "mirror"
    mirror.mkdir()
    (mirror / NAME).write_bytes(WRONG)
    serve(server)
    index = index_of(server, recorder, find_links=(str(mirror),))
    assert take(locked_wheel(GOOD), index, tmp_path / "out", recorder)


def test_more_content_than_the_lock_says_is_refused_before_it_is_fetched(server, recorder, tmp_path) -> None:
    script = serve(server)
    lock = replace(locked_wheel(GOOD), unpacked=10)
    with pytest.raises(DigestError):
        take(lock, index_of(server, recorder), tmp_path, recorder)
    assert len(script.file_ranges) == 1


@pytest.mark.parametrize(
    "name", ["pkg/include/../../../evil", "pkg/include//evil", "/pkg/include/evil", "pkg/include/a\\b"]
)
def test_members_that_leave_the_folder_are_refused(name, server, recorder, tmp_path) -> None:
    data = wheel_bytes({**FILES, name: b"evil"})
    serve(server, data)
    lock = locked_wheel(data, {**FILES, name: b"evil"})
    with pytest.raises(ToolchainError) as caught:
        take(lock, index_of(server, recorder), tmp_path / "deep" / "out", recorder)
    assert "outside its folder" in caught.value.detail
    assert not list(tmp_path.rglob("evil"))


def test_a_file_that_was_cut_short_is_refused(server, recorder, tmp_path) -> None:
    serve(server, GOOD[:-500], hashes=False)
    with pytest.raises(KernelBuilderError) as caught:
        take(locked_wheel(GOOD), index_of(server, recorder), tmp_path, recorder)
    assert "the server sent bytes" in caught.value.detail


def test_a_server_that_sends_other_bytes_than_asked_for_is_refused(server, recorder, tmp_path) -> None:
    serve(server, faults=["lie"] * 9)
    with pytest.raises(ToolchainError) as caught:
        take(locked_wheel(GOOD), index_of(server, recorder), tmp_path, recorder)
    assert "the server sent bytes" in caught.value.detail


def test_nothing_found_says_where_was_looked(server, recorder, tmp_path) -> None:
    gone = tmp_path / "links"
    index = index_of(server, recorder, find_links=(str(gone),))
    with pytest.raises(ToolchainError) as caught:
        take(replace(locked_wheel(GOOD), project="nothing-here"), index, tmp_path, recorder)
    assert caught.value.exit_code == 4
    assert f"{server.simple}: has no project nothing-here" in caught.value.detail
    assert str(gone) in caught.value.detail
    assert "pip config list" in caught.value.hint


def supply(server: WheelServer, monkeypatch, tmp_path, recorder) -> Supply:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_INDEX_URL", server.simple)
    for name in ("PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_NO_INDEX"):
        monkeypatch.delenv(name, raising=False)
    return Supply(Settings(store=tmp_path / "store"), recorder)


def test_the_store_keeps_what_pip_was_configured_to_reach(server, monkeypatch, tmp_path, recorder) -> None:
    script = serve(server)
    item = locked_item(locked_wheel(GOOD))
    root = supply(server, monkeypatch, tmp_path, recorder).fetch(item)
    assert root == tmp_path / "store/sdks" / f"torch-1.0.0-{item.digest[:12]}"
    assert tree_digest(file_digests(root)) == item.digest
    assert all(not path.stat().st_mode & 0o222 for path in root.rglob("*.h"))
    asked = len(script.requests)
    again = supply(server, monkeypatch, tmp_path, recorder)
    assert again.fetch(item) == root
    assert (len(script.requests), again.received) == (asked, 0)


def test_a_failed_download_leaves_nothing_in_the_store(server, monkeypatch, tmp_path, recorder) -> None:
    serve(server, WRONG)
    with pytest.raises(DigestError):
        supply(server, monkeypatch, tmp_path, recorder).fetch(locked_item(locked_wheel(GOOD)))
    assert [path for path in (tmp_path / "store").rglob("*") if path.is_file() and "locks" not in path.parts] == []


def test_wheels_that_do_not_add_up_to_the_item_are_refused(server, monkeypatch, tmp_path, recorder) -> None:
    serve(server)
    item = replace(locked_item(locked_wheel(GOOD)), digest=hashlib.sha256(b"other").hexdigest())
    with pytest.raises(DigestError, match=r"The files of torch 1\.0\.0"):
        supply(server, monkeypatch, tmp_path, recorder).fetch(item)
