"""Loading from folders: layouts, LOCAL_KERNELS, old metadata."""

from __future__ import annotations

import json

import pytest
from kernel_fakes import CUDA, files_of, publish, variant_files, write_files

import kernel_loader

pytestmark = pytest.mark.usefixtures("environment")


@pytest.fixture
def repo(tmp_path, uid):
    root = tmp_path / "repo"
    write_files(root / "build" / "torch-cpu", variant_files(uid))
    write_files(root / "build" / "torch-cuda", variant_files(uid + "x", files=files_of(value=5)))
    return root


@pytest.mark.parametrize("path", [".", "build", "build/torch-cpu"])
def test_a_repository_its_build_folder_or_one_variant(repo, path):
    assert kernel_loader.get_local_kernel(repo / path).scale(1) == 11


def test_a_variant_folder_may_have_any_name(tmp_path, uid):
    folder = write_files(tmp_path / "my-build", variant_files(uid))
    assert kernel_loader.get_local_kernel(str(folder)).scale(1) == 11


def test_the_one_variant_named_is_loaded_whatever_the_backend(repo):
    assert kernel_loader.get_local_kernel(repo / "build" / "torch-cuda").value == 5


def test_a_folder_without_variants_says_what_is_expected(tmp_path):
    (tmp_path / "build").mkdir()
    with pytest.raises(kernel_loader.NotFoundError, match=r"build/<variant>/metadata\.json"):
        kernel_loader.get_local_kernel(tmp_path)


def test_a_folder_that_does_not_exist(tmp_path):
    with pytest.raises(FileNotFoundError, match="holds no kernel variant"):
        kernel_loader.get_local_kernel(tmp_path / "absent")


def test_local_kernels_replaces_a_hub(repo, hub, uid, monkeypatch, tmp_path):
    publish(hub, "acme/toy", "v1", {"torch-cpu": variant_files(uid + "h", files=files_of(value=9))})
    monkeypatch.setenv("LOCAL_KERNELS", f"acme/toy={repo}:other/kernel={tmp_path}")
    assert kernel_loader.get_kernel("acme/toy", version=1, hub=hub).value == 1
    assert kernel_loader.get_kernel("acme/toy").value == 1
    assert kernel_loader.get_loaded_kernels()[-1].repo_info is None


def test_local_kernels_honours_the_backend(repo, monkeypatch, environment):
    environment(CUDA)
    monkeypatch.setenv("LOCAL_KERNELS", f"acme/toy={repo}")
    assert kernel_loader.get_kernel("acme/toy", version=1).value == 5
    assert kernel_loader.get_kernel("acme/toy", version=1, backend="cpu").value == 1


def test_local_kernels_of_another_version_is_noted(repo, monkeypatch, caplog):
    monkeypatch.setenv("LOCAL_KERNELS", f"acme/toy={repo}")
    kernel_loader.get_kernel("acme/toy", version=3)
    assert "holds version 1, wanted is 3" in caplog.text


def test_a_malformed_local_kernels_is_refused(monkeypatch):
    monkeypatch.setenv("LOCAL_KERNELS", "acme/toy")
    with pytest.raises(kernel_loader.UsageError, match="LOCAL_KERNELS has an entry 'acme/toy'"):
        kernel_loader.get_kernel("acme/toy", version=1)


def test_a_local_kernel_for_another_gpu_is_refused(tmp_path, uid, environment):
    environment(CUDA)
    folder = write_files(tmp_path / "torch-cuda", variant_files(uid, archs=["12.0"], backend="cuda"))
    with pytest.raises(kernel_loader.NoCompatibleVariant, match=r"has code for 12\.0, the GPU is 9\.0"):
        kernel_loader.get_local_kernel(folder)


def test_kernels_without_digest_load_with_a_note(tmp_path, uid, caplog):
    caplog.set_level("INFO", "kernel_loader")
    folder = write_files(tmp_path / "torch-cpu", variant_files(uid, digest=False))
    assert kernel_loader.get_local_kernel(folder).scale(1) == 11
    assert "carries no digest" in caplog.text


@pytest.mark.parametrize("metadata", [{"version": 1, "python-depends": []}, {"name": "toy"}, {}])
def test_metadata_from_before_ids_loads_with_defaults(tmp_path, uid, metadata):
    files = {**files_of(init=f"marker = {uid!r}\n"), "metadata.json": json.dumps(metadata).encode()}
    module = kernel_loader.get_local_kernel(write_files(tmp_path / "torch-cpu", files))
    assert module.marker == uid


def test_old_kernels_without_id_do_not_share_a_module(tmp_path, uid):
    modules = []
    for value in (1, 2):
        files = {**files_of(value=value, init=f"# {uid}\n{'from ._ops import value'}\n"), "metadata.json": b"{}"}
        modules.append(kernel_loader.get_local_kernel(write_files(tmp_path / str(value) / "torch-cpu", files)))
    assert [module.value for module in modules] == [1, 2]


def test_keys_from_the_future_are_ignored(tmp_path, uid):
    files = variant_files(uid)
    data = {**json.loads(files["metadata.json"]), "quantum": {"entangled": True}, "kernels-minver": "99.0.0"}
    folder = write_files(tmp_path / "torch-cpu", {**files, "metadata.json": json.dumps(data).encode()})
    assert kernel_loader.get_local_kernel(folder).scale(1) == 11


@pytest.mark.parametrize(
    ("metadata", "path"),
    [
        (b"{", "not JSON"),
        (b"[]", "must be a JSON object"),
        (b'{"name": "Bad_Name"}', "name: 'Bad_Name'"),
        (b'{"version": true}', "version: must be a whole number"),
        (b'{"id": "a.b"}', "id: 'a.b'"),
        (b'{"backend": "cpu"}', "backend: must be an object"),
        (b'{"backend": {"type": "cuda", "archs": [9]}}', r"backend\.archs: must be a list of strings"),
        (b'{"digest": {"algorithm": "md5", "files": {}}}', "digest: no digest algorithm 'md5'"),
        (b'{"digest": {"algorithm": "sha256", "files": {"../x": 3}}}', r"files\.\.\./x: must be a string"),
        (b"[" * 100_000, "not JSON"),
    ],
)
def test_malformed_metadata_names_the_json_path(tmp_path, metadata, path):
    folder = write_files(tmp_path / "torch-cpu", {"__init__.py": b"", "metadata.json": metadata})
    with pytest.raises(kernel_loader.LoaderError, match=path):
        kernel_loader.get_local_kernel(folder)


def test_the_layout_with_an_inner_package(tmp_path, uid):
    inner = {f"toy/{path}": data for path, data in files_of().items()}
    module = kernel_loader.get_local_kernel(write_files(tmp_path / "torch-cpu", variant_files(uid, files=inner)))
    assert module.__name__ == f"_toy_cpu_{uid}"
    assert module.scale(1) == 11


def test_a_variant_without_a_package_says_so(tmp_path, uid):
    folder = write_files(tmp_path / "torch-cpu", variant_files(uid, files={"data.txt": b""}))
    with pytest.raises(kernel_loader.LoadFailed, match=r"__init__\.py is missing"):
        kernel_loader.get_local_kernel(folder)
