"""Builds that share no compiled unit give the same bytes, and no CUDA install of the machine takes part."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_builder.settings import Settings

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[2]
CUDA_PROGRAMS = ("nvcc", "ptxas", "cudafe++", "fatbinary", "nvlink", "cicc", "cuobjdump", "nvdisasm", "bin2c")


def build(*arguments: object, cwd: Path = ROOT, env: dict[str, str], umask: int = 0o022) -> dict:
    """What one ``kernel-builder build --json`` says."""
    done = subprocess.run(
        [sys.executable, "-m", "kernel_builder", "build", *map(str, arguments), "--json"],
        cwd=cwd,
        env={**os.environ, **env},
        capture_output=True,
        text=True,
        umask=umask,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _link(source: str, target: str) -> None:
    try:
        os.link(source, target)
    except OSError:
        shutil.copy2(source, target)


def store_without_units(target: Path) -> Path:
    """Toolkits and SDKs as they were downloaded, and nothing that was compiled."""
    source = Settings.from_environment().store
    for name in ("toolkits", "sdks"):
        shutil.copytree(source / name, target / name, copy_function=_link)
    return target


@pytest.fixture(scope="module", autouse=True)
def _provisioned(tmp_path_factory: pytest.TempPathFactory) -> None:
    build("rmsnorm", "--out", tmp_path_factory.mktemp("warm"), env={})


def _isolated_build(place: Path, store: Path, *, jobs: int, umask: int, **env: str) -> dict[str, str]:
    shutil.copytree(ROOT / "kernels-src", place / "kernels-src", ignore=shutil.ignore_patterns("__pycache__"))
    scratch, home = place / "scratch", place / "home"
    scratch.mkdir()
    home.mkdir()
    env = {"KERNEL_BUILDER_CACHE": str(store), "HOME": str(home), "TMPDIR": str(scratch), **env}
    built = build("--out", "out", "--jobs", jobs, cwd=place, env=env, umask=umask)
    assert built["reused"] == 0, "a unit came from a store that was meant to be empty"
    assert len(built["variants"]) >= 4
    files = sorted(p for p in (place / "out").rglob("*") if p.is_file())
    assert files
    return {p.relative_to(place).as_posix(): f"{p.stat().st_mode:o} {_sha256(p)}" for p in files}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_builds_from_empty_stores_are_byte_identical(tmp_path: Path) -> None:
    shallow, deep = tmp_path / "a", tmp_path / "much" / "deeper" / "a place with spaces"
    shallow.mkdir()
    deep.mkdir(parents=True)
    first = _isolated_build(shallow, store_without_units(tmp_path / "s1"), jobs=2, umask=0o022)
    second = _isolated_build(
        deep, store_without_units(deep / "another store"), jobs=1, umask=0o077, LANG="tr_TR.UTF-8", TZ="Asia/Tokyo"
    )
    assert first == second


def _path_with_traps(folder: Path) -> str:
    """PATH with every program but CUDA's, behind a folder of CUDA programs that tell on their caller and fail."""
    traps, rest = folder / "traps", folder / "rest"
    traps.mkdir()
    rest.mkdir()
    for name in CUDA_PROGRAMS:
        (traps / name).write_text('#!/bin/sh\necho called > "$0.called"\nexit 1\n')
        (traps / name).chmod(0o755)
    for entry in os.environ["PATH"].split(os.pathsep):
        for program in Path(entry).iterdir() if Path(entry).is_dir() else ():
            if program.name not in CUDA_PROGRAMS and not (rest / program.name).is_symlink():
                (rest / program.name).symlink_to(program)
    return f"{traps}{os.pathsep}{rest}"


def test_every_compiler_but_the_hosts_lies_in_the_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.delenv(name, raising=False)
    store = store_without_units(tmp_path / "store")
    built = build(
        "rmsnorm",
        "--out",
        tmp_path / "out",
        env={"PATH": _path_with_traps(tmp_path), "KERNEL_BUILDER_CACHE": str(store)},
    )
    assert not list((tmp_path / "traps").glob("*.called"))
    words = Path(built["log"]).read_text().replace("=", " ").split()
    device_compilers = {word for word in words if "libnvrtc" in word or "libnvfatbin" in word}
    assert device_compilers, "the log shows no device compiler"
    assert [word for word in device_compilers if not word.startswith(str(store))] == []
    assert [word for word in words if Path(word).name in CUDA_PROGRAMS] == []


def test_the_builder_process_never_imports_torch(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from kernel_builder.cli.main import run\n"
        "hub, out = sys.argv[1:]\n"
        "status = run(['build', 'rmsnorm', '--out', out, '--stage', hub, '-q'])\n"
        "explain = ['explain', 'kernel-builder/rmsnorm', '--version', '1', '--backend', 'cpu', '--hub', hub]\n"
        "status = status or run(explain)\n"
        "heavy = {'torch', 'numpy', 'triton'} & set(sys.modules)\n"
        "sys.exit(f'imported {heavy}' if heavy else status)\n"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "hub"), str(tmp_path / "out")]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "-> torch-stable-abi27-cpu-" in done.stdout
