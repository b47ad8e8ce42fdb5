"""Loading from a folder hub through the public functions."""

from __future__ import annotations

import shutil

import pytest
from kernel_fakes import CPU, CUDA, blob_of, files_of, publish, variant_files

import kernel_loader

pytestmark = pytest.mark.usefixtures("environment")
REPO = "acme/toy"


def test_loads_the_newest_build_of_a_version(hub, uid):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid + "a", files=files_of(value=1))})
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid + "b", files=files_of(value=2))})
    module = kernel_loader.get_kernel(REPO, version=1, hub=hub)
    assert module.__name__ == f"_toy_cpu_{uid}b"
    assert module.scale(3) == 62


def test_another_user_can_load_from_a_cache_that_lies_open(hub, uid, cache):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    kernel_loader.get_kernel(REPO, version=1, hub=hub)
    documents = [cache / "kernels--acme--toy" / "refs" / "v1", *cache.glob("kernels--acme--toy/commits/*.json")]
    assert [path.stat().st_mode & 0o444 for path in documents] == [0o444, 0o444]


def test_hub_may_come_from_the_environment(hub, uid, monkeypatch):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    monkeypatch.setenv("KERNEL_LOADER_HUB", str(hub))
    assert kernel_loader.get_kernel(REPO, version=1).scale(1) == 11


def test_without_a_hub_the_error_says_how_to_name_one():
    with pytest.raises(kernel_loader.UsageError, match=r"hub='/path/to/hub'\), or KERNEL_LOADER_HUB="):
        kernel_loader.get_kernel(REPO, version=1)


def test_an_address_is_refused_as_a_hub():
    with pytest.raises(kernel_loader.UsageError, match="is no folder"):
        kernel_loader.get_kernel(REPO, version=1, hub="https://hub.example")


@pytest.mark.parametrize("arguments", [{}, {"version": 1, "revision": "v1"}])
def test_exactly_one_of_version_and_revision(hub, arguments):
    with pytest.raises(ValueError, match="version"):
        kernel_loader.get_kernel(REPO, hub=hub, **arguments)


@pytest.mark.parametrize("version", [-1, True, "1", 1.0, (2, 3)])
def test_a_version_that_is_no_whole_number_is_refused(hub, version):
    with pytest.raises(kernel_loader.UsageError, match="whole number"):
        kernel_loader.get_kernel(REPO, version=version, hub=hub)


def test_an_unknown_version_lists_the_branches(hub, uid):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    with pytest.raises(FileNotFoundError, match=r"no branch v2[\s\S]*branches that it has: v1"):
        kernel_loader.get_kernel(REPO, version=2, hub=hub)


def test_an_unknown_repository_suggests_a_similar_one(hub, uid):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    with pytest.raises(kernel_loader.NotFoundError, match="kernels that it has: acme/toy"):
        kernel_loader.get_kernel("acme/toi", version=1, hub=hub)


def test_every_spelling_of_a_revision_means_the_same_kernel(hub, uid):
    commit = publish(hub, REPO, "v2", {"torch-cpu": variant_files(uid)})
    spellings = [
        {"repo_id": REPO, "version": 2},
        {"repo_id": REPO, "revision": "v2"},
        {"repo_id": f"{REPO}@v2"},
        {"repo_id": f"{REPO}@{commit}"},
        {"repo_id": REPO, "revision": commit},
    ]
    assert len({id(kernel_loader.get_kernel(**spelling, hub=hub)) for spelling in spellings}) == 1


@pytest.mark.parametrize(
    "spelling", ["toy", "acme/", "/toy", "acme//toy", "acme/toy@", "@v2", "acme/toy@v2:fn", "a/../b"]
)
def test_a_malformed_spelling_is_refused(hub, spelling):
    with pytest.raises(kernel_loader.UsageError, match=r"column \d+"):
        kernel_loader.get_kernel(spelling, hub=hub)


def test_versions_and_commits_never_alias(hub, uid):
    """One process may use several versions at once and always gets the one that it asked for."""
    first = publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid + "a", files=files_of(value=1))})
    publish(hub, REPO, "v2", {"torch-cpu": variant_files(uid + "b", files=files_of(value=2), version=2)})
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid + "c", files=files_of(value=3))})
    for _ in range(2):
        assert kernel_loader.get_kernel(REPO, version=1, hub=hub).value == 3
        assert kernel_loader.get_kernel(REPO, version=2, hub=hub).value == 2
        assert kernel_loader.get_kernel(REPO, revision=first, hub=hub).value == 1


def test_the_cache_has_the_layout_of_hugging_face(hub, uid, cache):
    commit = publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    folder = kernel_loader.install_kernel(REPO, version=1, hub=hub)
    assert folder == cache / "kernels--acme--toy" / "snapshots" / commit / "build" / "torch-cpu"
    assert (cache / "kernels--acme--toy" / "refs" / "v1").read_text() == commit


def test_only_the_chosen_variant_is_fetched(hub, uid, cache):
    variants = {name: variant_files(uid) for name in ("torch-cpu", "torch-cuda", "torch213-cxx11-cpu-x86_64-linux")}
    publish(hub, REPO, "v1", variants)
    folder = kernel_loader.install_kernel(REPO, version=1, hub=hub)
    assert [entry.name for entry in folder.parent.iterdir()] == ["torch213-cxx11-cpu-x86_64-linux"]


def test_loads_by_version_after_the_hub_is_gone(hub, uid, cache, caplog):
    commit = publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    kernel_loader.install_kernel(REPO, version=1, hub=hub)
    shutil.rmtree(hub)
    assert kernel_loader.get_kernel(REPO, version=1, hub=hub).scale(1) == 11
    assert "is not there" in caplog.text
    assert commit in caplog.text


@pytest.mark.parametrize("by", ["version", "commit"])
def test_offline_loads_from_the_cache_without_a_hub(hub, uid, monkeypatch, by):
    commit = publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    kernel_loader.install_kernel(REPO, version=1, hub=hub)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    wanted = {"version": 1} if by == "version" else {"revision": commit}
    assert kernel_loader.get_kernel(REPO, **wanted).scale(1) == 11
    assert kernel_loader.has_kernel(REPO, **wanted)


def test_offline_and_not_cached_says_so(monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(kernel_loader.NotFoundError, match="not in the cache, and no hub is named"):
        kernel_loader.get_kernel(REPO, version=1)


def test_the_cache_follows_a_branch_that_moved(hub, uid):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid + "a")})
    kernel_loader.install_kernel(REPO, version=1, hub=hub)
    newest = publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid + "b")})
    kernel_loader.install_kernel(REPO, version=1, hub=hub)
    shutil.rmtree(hub)
    kernel_loader.get_kernel(REPO, version=1, hub=hub)
    assert kernel_loader.get_loaded_kernels()[-1].repo_info == kernel_loader.RepoInfo(REPO, newest)


def test_a_missing_blob_names_the_file_and_leaves_nothing(hub, uid, cache):
    files = variant_files(uid)
    publish(hub, REPO, "v1", {"torch-cpu": files})
    blob_of(hub, REPO, files["sub/deep.py"]).unlink()
    with pytest.raises(kernel_loader.NotFoundError, match=r"lacks the content of sub/deep\.py"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)
    assert not list(cache.glob("kernels--*/snapshots/*/build/*"))


@pytest.mark.parametrize("damage", [b"", b"value = 7\n", b"value = 1\n# longer"])
def test_a_blob_with_other_bytes_is_refused(hub, uid, cache, damage):
    files = variant_files(uid)
    publish(hub, REPO, "v1", {"torch-cpu": files})
    blob_of(hub, REPO, files["_ops.py"]).write_bytes(damage)
    with pytest.raises(kernel_loader.DigestMismatch, match=r"content of _ops\.py"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)
    assert not list(cache.glob("kernels--*/snapshots/*/build/*"))


def test_metadata_of_a_hub_is_verified_before_it_is_believed(hub, uid):
    files = variant_files(uid)
    publish(hub, REPO, "v1", {"torch-cpu": files})
    blob_of(hub, REPO, files["metadata.json"]).write_bytes(files["metadata.json"].replace(b"Apache", b"apache"))
    with pytest.raises(kernel_loader.DigestMismatch, match=r"metadata\.json"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)


def test_a_commit_with_other_bytes_than_its_id_is_refused(hub, uid):
    commit = publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    path = hub / REPO / "commits" / f"{commit}.json"
    path.write_bytes(path.read_bytes().replace(b'"test"', b'"evil"'))
    with pytest.raises(kernel_loader.DigestMismatch, match="other bytes than its id says"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)


def test_a_digest_that_contradicts_the_commit_is_refused(hub, uid):
    files = variant_files(uid)
    publish(hub, REPO, "v1", {"torch-cpu": {**files, "_ops.py": b"value = 2\n"}})
    with pytest.raises(kernel_loader.DigestMismatch, match="disagree"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)


def test_a_kernel_without_digest_is_checked_against_the_commit(hub, uid):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid, digest=False)})
    folder = kernel_loader.install_kernel(REPO, version=1, hub=hub)
    (folder / "_ops.py").write_text("value = 5\n")
    with pytest.raises(kernel_loader.DigestMismatch, match=r"_ops\.py"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)


def test_two_kernels_without_digest_and_the_same_metadata_are_not_confused(hub, uid):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid, files=files_of(value=1), digest=False)})
    publish(hub, REPO, "v2", {"torch-cpu": variant_files(uid, files=files_of(value=2), digest=False)})
    assert kernel_loader.get_kernel(REPO, version=1, hub=hub).value == 1
    with pytest.raises(kernel_loader.KernelConflict, match="already loaded"):
        kernel_loader.get_kernel(REPO, version=2, hub=hub)


def test_files_that_vanished_from_the_cache_are_fetched_again(hub, uid, caplog):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    folder = kernel_loader.install_kernel(REPO, version=1, hub=hub)
    (folder / "sub" / "deep.py").unlink()
    assert kernel_loader.get_kernel(REPO, version=1, hub=hub).scale(1) == 11
    assert "fetched again" in caplog.text


def test_an_incomplete_cache_without_its_hub_says_what_is_missing(hub, uid):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    folder = kernel_loader.install_kernel(REPO, version=1, hub=hub)
    (folder / "sub" / "deep.py").unlink()
    shutil.rmtree(hub)
    with pytest.raises(kernel_loader.IncompleteFolder, match=r"incomplete: sub/deep\.py is missing"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)


def test_changed_metadata_in_the_cache_is_refused(hub, uid):
    """metadata.json is not part of its own digest; the commit vouches for it."""
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    metadata = kernel_loader.install_kernel(REPO, version=1, hub=hub) / "metadata.json"
    metadata.write_bytes(metadata.read_bytes().replace(b"Apache", b"apache"))
    with pytest.raises(kernel_loader.DigestMismatch, match=r"metadata\.json is not what the commit says"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)


def test_a_changed_commit_in_the_cache_is_refused_without_the_hub_and_healed_with_it(hub, uid, cache, monkeypatch):
    commit = publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    kernel_loader.install_kernel(REPO, version=1, hub=hub)
    kept = cache / "kernels--acme--toy" / "commits" / f"{commit}.json"
    right = kept.read_bytes()
    kept.write_bytes(right.replace(b'"test"', b'"evil"'))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(kernel_loader.DigestMismatch, match="cached commit"):
        kernel_loader.get_kernel(REPO, version=1)
    kernel_loader.install_kernel(REPO, version=1, hub=hub)
    assert kept.read_bytes() == right


def test_unfinished_copies_of_a_killed_process_are_neither_used_nor_kept(hub, uid, cache):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    leftover = cache / "kernels--acme--toy" / "incoming" / "copy"
    leftover.mkdir(parents=True)
    (leftover / "__init__.py").write_text("raise SystemExit\n")
    assert kernel_loader.get_kernel(REPO, version=1, hub=hub).scale(1) == 11
    assert not leftover.exists()


def test_a_cache_that_cannot_be_written_is_named(hub, uid, cache):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    cache.write_text("a file, not a folder")
    with pytest.raises(kernel_loader.LoaderError, match=r"copied into the cache[\s\S]*KERNELS_CACHE"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)


def test_bytecode_in_a_hub_is_not_fetched(hub, uid):
    files = {**variant_files(uid), "__pycache__/_ops.cpython-311.pyc": b"evil", "sub/deep.pyc": b"evil"}
    publish(hub, REPO, "v1", {"torch-cpu": files})
    folder = kernel_loader.install_kernel(REPO, version=1, hub=hub)
    assert not list(folder.rglob("*.pyc"))


def test_unknown_variant_names_are_skipped_and_listed(hub, uid):
    """A hub may hold builds for newer loaders, and plain files beside the variants."""
    names = ["torch-stable-abi3x-cpu-x86_64-linux", "foo-bar-baz", "torch-cpu"]
    publish(hub, REPO, "v1", {name: variant_files(uid) for name in names}, extra={"build/README": b"hello"})
    assert kernel_loader.get_kernel(REPO, version=1, hub=hub).scale(1) == 11
    decisions = {d.name: d for d in kernel_loader.get_kernel_variants(REPO, version=1, hub=hub)}
    assert set(decisions) == set(names)
    assert decisions["foo-bar-baz"].reason == "unknown-name"
    assert "newer kernel-loader" in decisions["foo-bar-baz"].detail


def test_cpu_kernel_on_a_cuda_torch(hub, uid, environment):
    environment(CUDA)
    publish(hub, REPO, "v1", {"torch213-cxx11-cpu-x86_64-linux": variant_files(uid)})
    with pytest.raises(kernel_loader.NoCompatibleVariant, match="pass backend='cpu'"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)
    assert not kernel_loader.has_kernel(REPO, version=1, hub=hub)
    assert kernel_loader.has_kernel(REPO, version=1, hub=hub, backend="cpu")
    assert kernel_loader.get_kernel(REPO, version=1, hub=hub, backend="cpu").scale(1) == 11


def test_a_backend_that_torch_lacks_is_refused(hub, uid):
    publish(hub, REPO, "v1", {"torch-cuda": variant_files(uid)})
    for backend, message in (("cuda", "not that of this torch"), ("gpu", "unknown")):
        with pytest.raises(kernel_loader.UsageError, match=message):
            kernel_loader.get_kernel(REPO, version=1, hub=hub, backend=backend)


def test_no_variant_names_the_environment_the_nearest_miss_and_the_next_step(hub, uid, environment):
    environment(CUDA)
    names = [
        "torch212-cxx11-cu130-x86_64-linux",
        "torch213-cxx11-cu131-x86_64-linux",
        "torch213-cxx11-cu130-aarch64-linux",
    ]
    publish(hub, REPO, "v1", {name: variant_files(uid) for name in names})
    with pytest.raises(kernel_loader.NoCompatibleVariant) as caught:
        kernel_loader.get_kernel(REPO, version=1, hub=hub)
    lines = str(caught.value).splitlines()
    assert "environment: torch 2.13.0+cu130 (CUDA 13.0" in lines[2]
    assert [line.split(":")[0].strip() for line in lines[3:6]] == [names[1], names[0], names[2]]
    assert lines[-1].startswith("hint: install a torch build for a CUDA version")


def test_no_variant_points_to_a_version_that_has_one(hub, uid):
    publish(hub, REPO, "v1", {"torch-cuda": variant_files(uid)})
    publish(hub, REPO, "v2", {"torch-cpu": variant_files(uid)})
    with pytest.raises(kernel_loader.NoCompatibleVariant, match="hint: version 2 has a variant"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)


def test_a_gpu_without_code_is_refused_before_anything_is_fetched(hub, uid, environment, cache):
    environment(CUDA)
    files = variant_files(uid, archs=["8.0", "10.0a"], backend="cuda")
    publish(hub, REPO, "v1", {"torch-stable-abi210-cu130-x86_64-linux": files})
    with pytest.raises(kernel_loader.NoCompatibleVariant, match=r"has code for 8\.0, 10\.0a, the GPU is 9\.0"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)
    assert not cache.exists()
    assert kernel_loader.get_kernel(REPO, version=1, hub=hub, check_arch=False).scale(1) == 11


def test_another_variant_is_taken_when_the_first_has_no_code_for_the_gpu(hub, uid, environment):
    environment(CUDA)
    variants = {
        "torch-stable-abi210-cu130-x86_64-linux": variant_files(uid + "a", archs=["10.0"], backend="cuda"),
        "torch213-cxx11-cu130-x86_64-linux": variant_files(uid + "b", archs=["9.0a"], backend="cuda"),
    }
    publish(hub, REPO, "v1", variants)
    assert kernel_loader.get_kernel(REPO, version=1, hub=hub).__name__ == f"_toy_cpu_{uid}b"


def test_a_c_library_that_is_too_old_is_refused_before_anything_is_fetched(hub, uid, environment, cache):
    environment(CUDA)
    files = variant_files(uid, backend="cuda", builder={"floors": {"glibc": "2.38"}})
    publish(hub, REPO, "v1", {"torch-stable-abi210-cu130-x86_64-linux": files})
    with pytest.raises(kernel_loader.NoCompatibleVariant, match=r"needs glibc 2\.38 or newer, this is 2\.36"):
        kernel_loader.get_kernel(REPO, version=1, hub=hub)
    assert not cache.exists()


def test_a_new_torch_loads_what_was_built_for_the_stable_abi(hub, uid, environment):
    environment(type(CPU).from_dict({"torch": "2.14.0.dev20260810+cu130", "cuda": "13.0"}))
    names = ["torch212-cxx11-cu130-x86_64-linux", "torch-stable-abi29-cu130-x86_64-linux"]
    publish(hub, REPO, "v1", {name: variant_files(uid) for name in names})
    decisions = kernel_loader.get_kernel_variants(REPO, version=1, hub=hub)
    assert [(d.name, d.accepted) for d in decisions] == [(names[1], True), (names[0], False)]


def test_a_newer_version_is_mentioned(hub, uid, caplog):
    caplog.set_level("INFO", "kernel_loader")
    for version in (1, 2, 10):
        publish(hub, REPO, f"v{version}", {"torch-cpu": variant_files(f"{uid}{version}", version=version)})
    kernel_loader.get_kernel(REPO, version=2, hub=hub)
    assert "there is a version 10" in caplog.text


def test_local_files_only_ignores_the_hub(hub, uid):
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    with pytest.raises(kernel_loader.NotFoundError, match="not in the cache"):
        kernel_loader.install_kernel(REPO, version=1, hub=hub, local_files_only=True)
    folder = kernel_loader.install_kernel(REPO, version=1, hub=hub)
    assert kernel_loader.install_kernel(REPO, version=1, hub=hub, local_files_only=True) == folder
