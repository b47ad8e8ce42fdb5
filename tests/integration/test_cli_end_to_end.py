"""The whole command line on the first kernel: build, stage, check, test, load; then again, and with a broken source."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain

KERNELS = Path(__file__).parents[2] / "kernels-src"
CPU_ONLY = ("--only", "torch-stable-abi*-cpu-*")


def kernel_builder(*arguments: str | Path, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    argv = [sys.executable, "-m", "kernel_builder", *map(str, arguments)]
    environment = {**os.environ, **env}
    return subprocess.run(argv, cwd=cwd, env=environment, capture_output=True, text=True, check=False)


def build(cwd: Path, *arguments: str | Path) -> dict:
    done = kernel_builder("build", "rmsnorm", *arguments, "--json", cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the kernel sources, outside of any repository, where the whole matrix was built and staged."""
    root = tmp_path_factory.mktemp("matrix")
    ignore = shutil.ignore_patterns("__pycache__", "results")
    for name in ("rmsnorm", "common"):
        shutil.copytree(KERNELS / name, root / "kernels-src" / name, ignore=ignore)
    made = build(root, "--stage", "dist/hub")
    assert len(made["variants"]) == 4
    assert made["findings"] == [] or {f["severity"] for f in made["findings"]} <= {"note", "warning"}
    assert made["staged"][0]["status"] == "committed"
    return root


def test_a_second_build_does_nothing_and_says_so(place) -> None:
    before = tree(place / "dist")
    again = build(place, "--stage", "dist/hub")
    assert (again["compiled"], again["downloaded"], again["staged"][0]["status"]) == ([], 0, "no-changes")
    assert tree(place / "dist") == before


def test_every_variant_keeps_its_promises(place) -> None:
    done = kernel_builder("check", "dist/rmsnorm", "--json", cwd=place)
    assert done.returncode == 0, done.stdout
    assert [variant["ok"] for variant in json.loads(done.stdout)["variants"]] == [True] * 4


def test_the_printed_line_loads_the_kernel(place) -> None:
    done = kernel_builder("build", "rmsnorm", "--stage", "dist/hub", cwd=place)
    line = done.stdout.strip().splitlines()[-1]
    assert line.startswith('python -c "')
    code = line.removeprefix('python -c "').removesuffix('"')
    env = {**os.environ, "KERNELS_CACHE": str(place / "cache")}
    argv = [sys.executable, "-c", code]
    loaded = subprocess.run(argv, cwd=place, env=env, capture_output=True, text=True, check=False)
    assert loaded.returncode == 0, loaded.stderr
    assert "<module '_rmsnorm_" in loaded.stdout


def test_tests_write_receipts_that_staging_takes_along(place) -> None:
    small = place / "some-tests"
    small.mkdir()
    (small / "test_rms_norm_once.py").write_text(
        "import os\nfrom pathlib import Path\nfrom kernel_loader import get_local_kernel\n"
        "def test_rms_norm():\n"
        "    import torch\n"
        "    kernel = get_local_kernel(Path(os.environ['KERNEL_UNDER_TEST']))\n"
        "    x = torch.randn(4, 64)\n"
        "    with torch.no_grad():\n"
        "        y = kernel.rms_norm(x, torch.ones(64), 1e-6)\n"
        "    torch.testing.assert_close(y, torch.nn.functional.rms_norm(x, (64,), torch.ones(64), 1e-6))\n"
    )
    done = kernel_builder("test", "rmsnorm", "--device", "cpu", "--tests", small, "--json", cwd=place)
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    assert [receipt["result"] for receipt in told["receipts"]] == ["passed"]
    assert {entry["reason"] for entry in told["unfit"]} == {"built for cuda, wanted is cpu"}
    staged = build(place, "--stage", "dist/hub")["staged"][0]
    assert staged["status"] == "committed"
    assert all("cu" in name for name in staged["untested"])


def test_the_same_sources_elsewhere_give_the_same_bytes(place, tmp_path) -> None:
    deeper = tmp_path / "some" / "deeper" / "folder"
    shutil.copytree(place / "kernels-src", deeper / "kernels-src")
    build(deeper, *CPU_ONLY)
    name = "build/torch-stable-abi27-cpu-x86_64-linux"
    assert tree(deeper / "dist" / "rmsnorm" / name) == tree(place / "dist" / "rmsnorm" / name)


def test_a_broken_source_fails_its_variant_and_keeps_the_others(place, tmp_path) -> None:
    shutil.copytree(place / "kernels-src", tmp_path / "kernels-src")
    source = tmp_path / "kernels-src" / "rmsnorm" / "csrc" / "rms_norm_cpu.cpp"
    source.write_text(source.read_text() + "\nint broken = no_such_name;\n")
    arguments = ("--only", "torch-stable-abi27-{cpu,cu128}-*", "--keep-going", "--stage", "hub", "--json")
    done = kernel_builder("build", "rmsnorm", *arguments, cwd=tmp_path)
    assert done.returncode == 5
    assert "no_such_name" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    made = json.loads(done.stdout)
    assert [variant["variant"] for variant in made["variants"]] == ["torch-stable-abi27-cu128-x86_64-linux"]
    assert list(made["failed"]) == ["rmsnorm/torch-stable-abi27-cpu-x86_64-linux"]


def test_without_keep_going_a_broken_source_is_one_error(place, tmp_path) -> None:
    shutil.copytree(place / "kernels-src", tmp_path / "kernels-src")
    source = tmp_path / "kernels-src" / "rmsnorm" / "csrc" / "rms_norm_cpu.cpp"
    source.write_text(source.read_text() + "\nint broken = no_such_name;\n")
    done = kernel_builder("build", "rmsnorm", *CPU_ONLY, cwd=tmp_path)
    assert done.returncode == 5
    assert done.stdout == ""
    assert "no_such_name" in done.stderr
    assert "rms_norm_cpu.cpp" in done.stderr
