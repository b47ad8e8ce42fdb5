"""Every byte that is imported was hashed after it was last written."""

from __future__ import annotations

import os
import time

import pytest
from kernel_fakes import files_of, variant_files, write_files

import kernel_loader
from kernel_loader.integrity import hash_folder
from kernel_loader.stamps import StampFolder

pytestmark = pytest.mark.usefixtures("environment")


@pytest.fixture
def folder(tmp_path, uid):
    return write_files(tmp_path / "torch-cpu", variant_files(uid))


def settle():
    """Wait until the files are old enough for a stamp."""
    time.sleep(0.06)


def refused(folder, match, **arguments):
    with pytest.raises(kernel_loader.DigestMismatch, match=match):
        kernel_loader.get_local_kernel(folder, **arguments)


def rewrite_in_place(path, data):
    """Other bytes of the same length with the same inode and mtime, as a careful intruder writes them."""
    status = path.stat()
    assert len(data) == status.st_size
    with path.open("r+b") as file:
        file.write(data)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))


def test_a_changed_file_is_named(folder):
    (folder / "_ops.py").write_text("value = 7\n")
    refused(folder, r"_ops\.py has other bytes")


def test_a_missing_file_is_named(folder):
    (folder / "sub" / "deep.py").unlink()
    refused(folder, r"incomplete: sub/deep\.py is missing")


def test_a_file_that_is_not_listed_is_refused(folder):
    (folder / "extra.py").write_text("")
    refused(folder, r"extra\.py is not listed")


def test_a_change_after_the_stamp_is_found_even_with_the_same_mtime_and_size(folder, monkeypatch):
    settle()
    kernel_loader.get_local_kernel(folder)
    rewrite_in_place(folder / "_ops.py", b"value = 7\n")
    refused(folder, r"_ops\.py has other bytes")


def test_changed_metadata_is_compared_again(folder):
    settle()
    kernel_loader.get_local_kernel(folder)
    metadata = folder / "metadata.json"
    wrong = "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="
    text = metadata.read_text()
    start = text.index('"_ops.py": "') + len('"_ops.py": "')
    metadata.write_text(text[:start] + wrong + text[start + len(wrong) :])
    refused(folder, r"_ops\.py has other bytes")


def test_an_unchanged_folder_is_not_hashed_again(folder, monkeypatch):
    settle()
    kernel_loader.get_local_kernel(folder)

    def hashed(*_, **__):
        raise AssertionError("hashed again")

    monkeypatch.setattr("kernel_loader.verify.hash_files", hashed)
    kernel_loader.get_local_kernel(folder)
    with pytest.raises(AssertionError, match="hashed again"):
        kernel_loader.get_local_kernel(folder, strict=True)


def test_strict_does_not_believe_the_stamp(folder, monkeypatch):
    settle()
    kernel_loader.get_local_kernel(folder)
    frozen = dict.fromkeys(("__init__.py", "_ops.py", "metadata.json", "sub/__init__.py", "sub/deep.py"), (0, 0, 0, 0))
    monkeypatch.setattr("kernel_loader.verify.stamp_files", lambda files: frozen)
    kernel_loader.get_local_kernel(folder)
    rewrite_in_place(folder / "_ops.py", b"value = 7\n")
    refused(folder, r"_ops\.py has other bytes", strict=True)


def test_a_file_written_just_before_hashing_gets_no_stamp(folder, cache):
    (folder / "_ops.py").write_bytes((folder / "_ops.py").read_bytes())
    kernel_loader.get_local_kernel(folder)
    assert not list(cache.rglob("*.json"))
    settle()
    kernel_loader.get_local_kernel(folder)
    assert len(list(cache.rglob("*.json"))) == 1


def test_stamps_lie_outside_the_folder_and_may_be_unwritable(folder, cache):
    before = sorted(folder.rglob("*"))
    settle()
    cache.write_text("no folder")
    for _ in range(2):
        assert kernel_loader.get_local_kernel(folder).scale(1) == 11
    assert sorted(folder.rglob("*")) == before


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{}", b'{"files": 1, "expected": ""}', b"\xff", b'{"files": {"a": 1}}']
)
def test_a_damaged_stamp_counts_as_none(tmp_path, content):
    stamps = StampFolder(tmp_path)
    stamps._path(tmp_path).write_bytes(content)
    assert stamps.read(tmp_path) is None


def test_planted_byte_code_is_neither_run_nor_refused(folder, tmp_path):
    """Valid byte code with a matching mtime, in both places where Python would look for it."""
    import importlib.util
    import py_compile

    evil = tmp_path / "evil.py"
    evil.write_text("value = 666\n")
    source = folder / "_ops.py"
    os.utime(evil, ns=(source.stat().st_atime_ns, source.stat().st_mtime_ns))
    for target in (importlib.util.cache_from_source(str(source)), folder / "_ops.pyc", folder / "lonely.pyc"):
        py_compile.compile(str(evil), str(target), invalidation_mode=py_compile.PycInvalidationMode.UNCHECKED_HASH)
    module = kernel_loader.get_local_kernel(folder)
    assert module.value == 1
    with pytest.raises(ModuleNotFoundError, match="lonely"):
        __import__(f"{module.__name__}.lonely")


def test_no_byte_code_is_written(folder):
    kernel_loader.get_local_kernel(folder).scale(1)
    assert not list(folder.rglob("*.pyc"))


def test_a_source_file_that_changes_after_verification_is_not_run(tmp_path, uid):
    """The kernel imports its second module lazily; by then the file was replaced."""
    init = "def late():\n    from . import _ops\n    return _ops.value\n"
    folder = write_files(tmp_path / "torch-cpu", variant_files(uid, files=files_of(init=init)))
    module = kernel_loader.get_local_kernel(folder)
    (folder / "_ops.py").write_text("value = 7\n")
    with pytest.raises(kernel_loader.DigestMismatch, match=r"_ops\.py changed after it was verified"):
        module.late()


def test_source_that_compilers_read_back_is_the_verified_one(folder):
    import inspect

    module = kernel_loader.get_local_kernel(folder)
    (folder / "__init__.py").write_text("def scale(x):\n    return 'other'\n")
    assert "FACTOR" in inspect.getsource(module.scale)


def test_a_link_out_of_the_folder_is_refused(folder, tmp_path):
    (tmp_path / "outside.py").write_text("value = 1\n")
    (folder / "_ops.py").unlink()
    (folder / "_ops.py").symlink_to(tmp_path / "outside.py")
    refused(folder, r"_ops\.py is a link that leads out")


def test_a_linked_folder_is_refused(folder, tmp_path):
    (tmp_path / "outside").mkdir()
    (folder / "more").symlink_to(tmp_path / "outside")
    refused(folder, "more is a link that leads out")


def test_links_into_the_blobs_of_the_same_cached_repository_are_followed(tmp_path, uid):
    repo = tmp_path / "kernels--acme--toy"
    folder = repo / "snapshots" / ("a" * 40) / "build" / "torch-cpu"
    for number, (path, data) in enumerate(variant_files(uid).items()):
        blob = write_files(repo / "blobs", {str(number): data}) / str(number)
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(blob)
    assert kernel_loader.get_local_kernel(folder).scale(1) == 11


def test_a_link_that_leads_elsewhere_after_verification_is_not_followed(tmp_path, uid):
    repo, library = tmp_path / "kernels--acme--toy", f"_toy_cpu_{uid}.abi3.so"
    folder = repo / "snapshots" / ("a" * 40) / "build" / "torch-cpu"
    init = f"def late():\n    from . import _toy_cpu_{uid}\n"
    write_files(folder, variant_files(uid, files={**files_of(init=init), library: b"no library"}))
    write_files(repo / "blobs", {"one": b"no library", "two": b"another"})
    (folder / library).unlink()
    (folder / library).symlink_to(repo / "blobs" / "one")
    module = kernel_loader.get_local_kernel(folder)
    (folder / library).unlink()
    (folder / library).symlink_to(repo / "blobs" / "two")
    with pytest.raises(kernel_loader.DigestMismatch, match="changed after it was verified"):
        module.late()


def test_a_pipe_does_not_hang_the_loader(folder):
    os.mkfifo(folder / "pipe")
    refused(folder, "pipe is no regular file")


def test_hash_folder_leaves_out_metadata_signature_and_byte_code(tmp_path):
    files = {
        "a.txt": b"hello world",
        ".hidden": b"",
        "sub/metadata.json": b"",
        "metadata.json": b"",
        "metadata.json.sigstore": b"",
        "__pycache__/x.py": b"",
        "sub/x.pyc": b"",
    }
    digest = hash_folder(write_files(tmp_path, files))
    assert list(digest.files) == [".hidden", "a.txt", "sub/metadata.json"]
    assert digest.files["a.txt"] == "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="


def test_many_differences_are_shortened(tmp_path, uid):
    files = {**files_of(), **{f"data/{number:02d}": b"" for number in range(30)}}
    folder = write_files(tmp_path / "torch-cpu", variant_files(uid, files=files))
    for number in range(30):
        (folder / "data" / f"{number:02d}").write_text("changed")
    with pytest.raises(kernel_loader.DigestMismatch) as caught:
        kernel_loader.get_local_kernel(folder)
    assert "… and 20 more" in str(caught.value)
    assert len(str(caught.value).splitlines()) < 15
