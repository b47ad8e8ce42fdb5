"""Hugging Face's ``kernels`` and this loader read each other's files."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

import kernel_loader
from kernel_loader.environment import Environment
from kernel_loader.format.archs import Arch
from kernel_loader.format.digest import digest_of
from kernel_loader.format.metadata import Metadata, dump_metadata
from kernel_loader.integrity import hash_folder
from kernel_loader.select import select

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "loader"))
from kernel_fakes import files_of, publish, variant_files, write_files

pytestmark = pytest.mark.filterwarnings("ignore:Failed to initialize NumPy:UserWarning")
RUST = pytest.importorskip("kernels._rust")


def python(code, *arguments, **variables):
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)],
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_their_parser_reads_our_metadata():
    metadata = Metadata(
        name="flash-attn2",
        id="_flash_attn2_cuda_0123456789",
        version=3,
        license="BSD-3-Clause",
        backend="cuda",
        archs=(Arch(8, 0), Arch(9, 0, "a"), Arch(12, 0, "", ptx=True)),
        python_depends=("einops",),
        kernel_depends=({"repo-id": "acme/other", "version": 1},),
        upstream="https://example.org/up.git",
        source="https://example.org/src.git",
        digest=digest_of({"__init__.py": b"x"}),
        provenance={"kernel-builder": {"version": "0.1.0", "commit": "a" * 40, "dirty": False}},
        minver="0.17.0",
        builder={"floors": {"glibc": "2.17"}},
    )
    theirs = RUST.Metadata.from_bytes(dump_metadata(metadata))
    assert str(theirs.name) == "flash-attn2"
    assert (theirs.id, theirs.version, theirs.license) == (metadata.id, 3, "BSD-3-Clause")
    assert theirs.backend.backend_type == RUST.Backend.CUDA
    assert theirs.backend.archs == ["8.0", "9.0a", "12.0+PTX"]
    assert str(theirs.kernels_minver) == "0.17.0"
    minimal = Metadata(name="toy", id="_toy", version=0, license="MIT", backend="cpu")
    assert RUST.Metadata.from_bytes(dump_metadata(minimal)).id == "_toy"


def test_both_hash_a_folder_alike(tmp_path):
    files = {
        "a.txt": b"hello world",
        ".hidden": b"",
        "sub/metadata.json": b"",
        "metadata.json": b"",
        "metadata.json.sigstore": b"",
        "__pycache__/x.py": b"",
        "sub/x.pyc": b"",
        "sub/ü b.py": b"",
    }
    folder = write_files(tmp_path / "torch-cpu", files)
    digest = hash_folder(folder)
    metadata = Metadata(name="toy", id="_toy", version=1, license="MIT", backend="cpu", digest=digest)
    (folder / "metadata.json").write_bytes(dump_metadata(metadata))
    theirs = RUST.Metadata.from_bytes(dump_metadata(metadata)).digest
    theirs.validate(RUST.Digest.hash_variant(RUST.DigestAlgorithm.SHA256, folder))


def test_their_loader_loads_our_folder(tmp_path):
    write_files(tmp_path / "build" / "torch-cpu", variant_files("theirs1"))
    load = "kernels.get_local_kernel(pathlib.Path(sys.argv[1]), backend='cpu')"
    code = f"import kernels, sys, pathlib; print({load}.scale(2))"
    assert python(code, tmp_path).splitlines()[-1] == "21"


@pytest.mark.parametrize("wanted", ["version=1", "revision=sys.argv[1]"])
def test_their_loader_loads_offline_what_we_cached(tmp_path, monkeypatch, wanted):
    hub = tmp_path / "hub"
    monkeypatch.setenv("KERNELS_CACHE", str(tmp_path / "cache"))
    commit = publish(hub, "acme/toy", "v1", {"torch-cpu": variant_files("theirs2")})
    kernel_loader.install_kernel("acme/toy", version=1, backend="cpu", hub=hub)
    arguments = f"'acme/toy', {wanted}, backend='cpu', trust_remote_code=True"
    code = f"import kernels, sys; print(kernels.get_kernel({arguments}).scale(2))"
    variables = {"KERNELS_CACHE": str(tmp_path / "cache"), "HF_HUB_OFFLINE": "1"}
    assert python(code, commit, **variables).splitlines()[-1] == "21"


def test_our_loader_finds_this_process():
    code = "import kernel_loader.probe as p, json; print(json.dumps(p.probe().to_json()))"
    env = Environment.from_dict(json.loads(python(code).splitlines()[-1]))
    assert env.torch is not None
    assert env.cpu == {"AMD64": "x86_64"}.get(platform.machine(), platform.machine())
    assert env.cxx11 is True
    assert (env.glibc is None) == (platform.libc_ver()[0] != "glibc")


PARITY = """
import json, sys
from packaging.version import Version as version
from kernels.backends import CPU, CUDA
from kernels.variants import _resolve_variant_for_system, parse_variant
names, rows = json.loads(sys.argv[1])
for torch, cuda in rows:
    backend = CUDA(version=version(cuda)) if cuda else CPU()
    found = _resolve_variant_for_system(
        [parse_variant(name) for name in names], backend, "x86_64", "linux", version(torch), True, version("0.1")
    )
    print(json.dumps([variant.variant_str for variant in found[0]]))
"""


def test_both_loaders_choose_alike():
    """Except where we differ on purpose: tvm-ffi beside Python-only ties in theirs; theirs takes stable ABI 2 on 3."""
    backends = ("cpu", "cu118", "cu126", "cu128", "cu129", "cu130", "cu132")
    frameworks = ("torch29", "torch212", "torch212-cxx11", "torch213-cxx98", "torch213-cxx11")
    stable = ("torch-stable-abi29", "torch-stable-abi210", "torch-stable-abi213")
    names = [f"{kind}-{backend}-{tail}" for kind in (*frameworks, *stable) for backend in backends
             for tail in ("x86_64-linux", "aarch64-linux", "x86_64-windows")]  # fmt: skip
    names += ["torch-cpu", "torch-cuda", "torch-rocm", "torch-universal"]
    rows = [(torch, cuda) for torch in ("2.9", "2.10", "2.12", "2.13") for cuda in (None, "12.6", "12.8", "13.0")]
    theirs = [json.loads(line) for line in python(PARITY, json.dumps([names, rows])).splitlines()]
    assert len(theirs) == len(rows)
    for (torch, cuda), expected in zip(rows, theirs, strict=True):
        env = Environment.from_dict({"torch": f"{torch}.0", "cuda": cuda, "tvm_ffi": "0.1"})
        assert [d.name for d in select(names, env).decisions if d.accepted] == expected


def test_our_loader_loads_their_cache_layout(tmp_path, monkeypatch):
    """Their downloads are links into a blob folder."""
    monkeypatch.setenv("KERNELS_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    repo, commit = tmp_path / "kernels--acme--toy", "c" * 40
    folder = repo / "snapshots" / commit / "build" / "torch-cpu"
    for number, (path, data) in enumerate(variant_files("ours1", files=files_of(value=4)).items()):
        write_files(repo / "blobs", {f"blob{number}": data})
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).symlink_to(os.path.relpath(repo / "blobs" / f"blob{number}", (folder / path).parent))
    module = kernel_loader.get_kernel("acme/toy", revision=commit, backend="cpu")
    assert module.value == 4
