"""Two builds that share nothing give the same bytes, and no compiler of the machine's CUDA install is used."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import pytest

from conftest import ROOT, copy_downloads, kernel_builder

pytestmark = pytest.mark.toolchain
CUDA_PROGRAMS = ("nvcc", "ptxas", "cudafe++", "fatbinary", "nvlink", "cicc", "cuobjdump", "nvdisasm", "bin2c")


def _digests(folder: Path) -> dict[str, str]:
    return {
        p.relative_to(folder).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in sorted(folder.rglob("*"))
        if p.is_file()
    }


def _build(place: Path, store: Path, *, jobs: int, umask: int, extra: dict[str, str]) -> dict[str, str]:
    shutil.copytree(ROOT / "kernels-src", place / "kernels-src")
    scratch = place / "scratch"
    scratch.mkdir()
    env = {"KERNEL_BUILDER_CACHE": str(store), "HOME": str(place), "TMPDIR": str(scratch), **extra}
    built = kernel_builder("build", "--out", "out", "--jobs", jobs, "--json", env=env, cwd=place, umask=umask)
    assert built.status == 0, built.stderr
    assert built.json["reused"] == 0, "a unit came from a store that should be empty"
    assert len(built.json["variants"]) >= 4
    return _digests(place / "out")


def test_builds_from_empty_stores_are_byte_identical(provisioned: Path, tmp_path: Path) -> None:
    shallow, deep = tmp_path / "a", tmp_path / "some" / "much" / "deeper place" / "b"
    for place in (shallow, deep):
        place.mkdir(parents=True)
    first = _build(shallow, copy_downloads(provisioned, tmp_path / "s1"), jobs=2, umask=0o022, extra={})
    second = _build(
        deep, copy_downloads(provisioned, deep / "store two"), jobs=1, umask=0o077, extra={"LANG": "tr_TR.UTF-8", "TZ": "Asia/Tokyo"}
    )
    assert first == second


def _path_without_cuda(tmp_path: Path) -> str:
    """PATH of links to every program but CUDA's; a fake nvcc that fails comes first."""
    traps, clean = tmp_path / "traps", tmp_path / "bin"
    traps.mkdir()
    clean.mkdir()
    for name in CUDA_PROGRAMS:
        (traps / name).write_text("#!/bin/sh\necho called >> \"$0.called\"\nexit 1\n")
        (traps / name).chmod(0o755)
    for folder in os.environ["PATH"].split(os.pathsep):
        for program in Path(folder).iterdir() if Path(folder).is_dir() else ():
            link = clean / program.name
            if program.name not in CUDA_PROGRAMS and not link.is_symlink():
                link.symlink_to(program)
    return f"{traps}{os.pathsep}{clean}"


def test_no_compiler_outside_the_store_but_the_host_one(empty_store: Path, tmp_path: Path) -> None:
    env = {"PATH": _path_without_cuda(tmp_path), "KERNEL_BUILDER_CACHE": str(empty_store), "CUDA_HOME": "/nowhere", "CUDA_PATH": ""}
    built = kernel_builder("build", "rmsnorm", "--out", tmp_path / "out", "--json", env=env)
    assert built.status == 0, built.stderr
    assert not list((tmp_path / "traps").glob("*.called"))
    log = Path(built.json["log"]).read_text()
    libraries = {word for line in log.splitlines() for word in line.split() if "libnvrtc" in word or "libnvfatbin" in word}
    assert libraries, "the log shows no device compiler"
    assert all(str(empty_store) in word for word in libraries)
    assert not [word for word in log.split() if Path(word).name in CUDA_PROGRAMS]


def test_the_builder_process_never_imports_torch(provisioned: Path, tmp_path: Path) -> None:
    poison = tmp_path / "poison"
    (poison / "torch").mkdir(parents=True)
    (poison / "torch" / "__init__.py").write_text("raise SystemExit('the builder imported torch')\n")
    out = tmp_path / "out"
    built = kernel_builder("build", "rmsnorm", "--out", out, "--json", env={"PYTHONPATH": str(poison)})
    assert built.status == 0, built.stderr
    assert "imported torch" not in built.stderr + built.stdout
    assert built.json["variants"]
