"""Files are written whole or not at all, readable for everybody, and digests name paths as well as contents."""

from __future__ import annotations

import hashlib
import os
from typing import TYPE_CHECKING

import pytest

from kernel_builder import files
from kernel_builder.files import sha256_of, tree_digest, unfinished, write_whole

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("durable", [False, True])
def test_a_file_is_replaced_and_nothing_stays_beside_it(tmp_path: Path, durable: bool) -> None:
    path = tmp_path / "new" / "file"
    for data in (b"first", b"second"):
        write_whole(path, data, durable=durable)
        assert path.read_bytes() == data
    assert list(path.parent.iterdir()) == [path]


def test_the_umask_is_not_part_of_the_product(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        write_whole(tmp_path / "file", b"")
    finally:
        os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o644


def test_a_write_that_fails_leaves_the_old_file_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "file"
    write_whole(path, b"old")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", full)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, b"new", durable=True)
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_an_unfinished_file_has_a_name_that_clean_up_knows(tmp_path: Path) -> None:
    assert unfinished(tmp_path, b"x").name.startswith(files.UNFINISHED)


def test_digests_are_those_of_other_programs(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * (1 << 20) + b"y")
    digest = sha256_of(tmp_path / "a")
    assert digest == hashlib.sha256(b"x" * (1 << 20) + b"y").hexdigest()
    lines = f"a\0{digest}\nb/c\0{digest}\n".encode()
    assert tree_digest({"b/c": digest, "a": digest}) == hashlib.sha256(lines).hexdigest()
