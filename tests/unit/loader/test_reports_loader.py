"""Faults that users of other loaders reported, put to the public functions; each test names its report."""

from __future__ import annotations

import json
import os
import sys
import textwrap
from collections import Counter

import pytest
from kernel_fakes import files_of, publish, variant_files
from test_loader_process import PRELUDE, finish, python

import kernel_loader
from kernel_loader.format import hubstore

REPO = "acme/toy"
OTHERS = [f"torch213-cxx11-{backend}-x86_64-linux" for backend in ("cu126", "cu128", "cu129", "cu130", "cu132")]
OTHERS += [f"torch{torch}-cxx11-cpu-x86_64-linux" for torch in (28, 29, 210, 211, 212)] + ["torch-cpu"]
CHOSEN = "torch213-cxx11-cpu-x86_64-linux"
# Notes every file that is opened, and every folder that is listed, under the first argument.
WATCH = """
import json, os, sys
seen = []

def watch(event, arguments):
    if event in ("open", "os.listdir", "os.scandir") and str(arguments[0]).startswith(sys.argv[1] + "/"):
        seen.append(os.path.relpath(str(arguments[0]), sys.argv[1]))

sys.addaudithook(watch)
"""
REFUSE_SOCKETS = """
import socket

def refuse(*_, **__):
    raise AssertionError("a socket was opened")

socket.socket = socket.create_connection = socket.getaddrinfo = refuse
"""


def test_a_kernel_in_the_default_cache_needs_neither_hub_nor_network(hub, uid, tmp_path):
    """B049: version and commit are resolved from what is cached, wherever the cache lies by default."""
    commit = publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    names = ("KERNELS_CACHE", "HF_HOME", "HF_HUB_CACHE", "XDG_CACHE_HOME", "KERNEL_LOADER_HUB")
    env = {name: value for name, value in os.environ.items() if name not in names} | {"HOME": str(tmp_path / "home")}
    code = f"{PRELUDE}\nimport sys\nkernel_loader.install_kernel('acme/toy', version=1, hub=sys.argv[1])"
    finish(python(code, hub, env=env))
    assert list((tmp_path / "home/.cache/huggingface/hub").glob("kernels--acme--toy/snapshots/*/build/torch-cpu"))
    hub.rename(tmp_path / "gone")
    code = f"""
    import sys
    {textwrap.indent(REFUSE_SOCKETS + PRELUDE, "    ").strip()}
    print(kernel_loader.get_kernel("acme/toy", version=1).scale(1))
    print(kernel_loader.get_kernel("acme/toy", revision=sys.argv[1]).scale(1))
    print(kernel_loader.get_kernel("acme/toy@" + sys.argv[1]).scale(1))
    """
    offline = {**env, "HF_HUB_OFFLINE": "1"}
    assert finish(python(code, commit, env=offline)).split() == ["11", "11", "11"]


@pytest.fixture
def crowded(hub, uid):
    """A hub whose kernel has twelve variants of one file each, and 2500 files in the one that fits; its commit."""
    many = {f"include/{n}.h": b"// %d" % n for n in range(2500)}
    variants = {name: variant_files(uid, files={**files_of(), "data": name.encode()}) for name in OTHERS}
    return publish(hub, REPO, "v1", {**variants, CHOSEN: variant_files(uid, files={**files_of(), **many})})


def test_ranks_that_start_together_read_a_hub_once(hub, crowded, tmp_path):
    """B051, B073: one process copies, nothing of other variants is read, and the hub's folders are not searched."""
    code = f"""
    import pathlib, time
    {textwrap.indent(WATCH + PRELUDE, "    ").strip()}
    print("ready", flush=True)
    while not pathlib.Path(sys.argv[2]).exists():
        time.sleep(0.005)
    assert kernel_loader.get_kernel("acme/toy", version=1, hub=sys.argv[1]).scale(1) == 11
    print(json.dumps(seen))
    """
    ranks = [python(code, hub, tmp_path / "go") for _ in range(12)]
    assert [rank.stdout.readline() for rank in ranks] == ["ready\n"] * len(ranks)
    (tmp_path / "go").touch()
    seen = Counter(path for rank in ranks for path in json.loads(finish(rank)))
    tree = hubstore.parse_commit((hub / REPO / hubstore.commit_path(crowded)).read_bytes()).tree
    blobs = {path: f"{REPO}/{hubstore.blob_path(entry.sha256)}" for path, entry in tree.items()}
    own = {blobs[path] for path in blobs if path.startswith(f"build/{CHOSEN}/")}
    read = {path for path in seen if "/blobs/" in path}
    assert read == own
    assert seen[blobs[f"build/{CHOSEN}/include/7.h"]] == 1
    assert sum(seen.values()) <= len(own) + 12 * len(ranks)


def test_a_pinned_kernel_in_the_cache_costs_a_handful_of_reads(hub, crowded):
    """B051: nothing is listed, and of 2500 cached files none is read from the hub again."""
    code = f"""
    {textwrap.indent(WATCH + PRELUDE, "    ").strip()}
    assert kernel_loader.get_kernel("acme/toy", revision=sys.argv[2], hub=sys.argv[1]).scale(1) == 11
    print(json.dumps(seen))
    """
    finish(python(code, hub, crowded))
    seen = Counter(path.split("/")[2] for path in json.loads(finish(python(code, hub, crowded))))
    assert seen["commits"] == 1
    assert set(seen) == {"commits", "blobs"}
    assert seen["blobs"] <= 3, "metadata.json alone"


@pytest.mark.usefixtures("environment")
def test_every_loaded_kernel_is_listed_with_its_origin(hub, uid):
    """B065: what runs in this process, from where, and which bytes, is no secret."""
    before = len(kernel_loader.get_loaded_kernels())
    commit = publish(hub, REPO, "v3", {"torch-cpu": variant_files(uid, version=3)})
    module = kernel_loader.get_kernel(REPO, version=3, hub=hub)
    (loaded,) = kernel_loader.get_loaded_kernels()[before:]
    assert loaded.module is module
    assert loaded.repo_info == kernel_loader.RepoInfo(REPO, commit)
    assert (loaded.variant, loaded.metadata.version) == ("torch-cpu", 3)
    publish(hub, REPO, "v4", {"torch-cpu": variant_files(uid + "b", files=files_of(value=2), version=4)})
    kernel_loader.get_kernel(REPO, version=4, hub=hub)
    assert kernel_loader.get_loaded_kernels()[-1].identity != loaded.identity


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize("entry", ["get_kernel", "install_kernel", "has_kernel", "get_kernel_variants"])
def test_no_entry_takes_code_that_nobody_named(entry, hub, uid, tmp_path, monkeypatch):
    """B065, B067: neither a folder that happens to lie here nor an earlier download replaces the caller's word."""
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid)})
    kernel_loader.install_kernel(REPO, version=1, hub=hub)
    before = set(sys.modules)
    (tmp_path / "acme").mkdir()
    (tmp_path / "acme" / "toy").symlink_to(hub / REPO)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(kernel_loader.UsageError, match="No hub is named"):
        getattr(kernel_loader, entry)(REPO, version=1)
    assert not [name for name in set(sys.modules) - before if name.startswith("_toy")]


@pytest.mark.usefixtures("environment")
def test_a_build_of_uncommitted_sources_says_so(hub, uid, caplog):
    """B028: what nobody can build again is not loaded silently."""
    variants = {
        version: variant_files(f"{uid}{version}", provenance={"kernel": {"commit": "0" * 40, "dirty": dirty}})
        for version, dirty in ((1, True), (2, False))
    }
    for version, files in variants.items():
        publish(hub, REPO, f"v{version}", {"torch-cpu": files})
    kernel_loader.get_kernel(REPO, version=2, hub=hub)
    assert "uncommitted" not in caplog.text
    kernel_loader.get_kernel(REPO, version=1, hub=hub)
    assert "acme/toy v1: torch-cpu was built from uncommitted sources" in caplog.text


@pytest.mark.usefixtures("environment")
@pytest.mark.parametrize(
    "provenance", [{}, {"kernel": None}, {"kernel": "clean"}, {"kernel": {"sha": "0"}}, {"kernel": {"dirty": "yes"}}]
)
def test_what_others_write_about_their_sources_is_no_fault(provenance, hub, uid):
    """B079: a newer publisher's way to write it neither stops a load nor is misread."""
    publish(hub, REPO, "v1", {"torch-cpu": variant_files(uid, provenance=provenance)})
    kernel_loader.get_kernel(REPO, version=1, hub=hub)
    assert kernel_loader.get_loaded_kernels()[-1].metadata.dirty is None
