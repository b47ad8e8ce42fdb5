"""Real nvccs out of an empty store: they compile a classic ``.cu``, alone, and alike in any folder."""

from __future__ import annotations

import io
import json
import re
import shlex
import subprocess
import tarfile
from contextlib import closing
from dataclasses import replace
from shutil import which
from typing import TYPE_CHECKING

import pytest

from kernel_builder.files import sha256_of
from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.toolchain.floor import make_floor
from kernel_builder.toolchain.host import find_host_compiler
from kernel_builder.toolchain.nvcc.flags import unsupported_flags
from kernel_builder.toolchain.nvcc.provide import provide_nvcc
from kernel_builder.toolchain.store import folder_digest
from kernel_builder.toolchain.supply import Supply
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

SOURCE = """
#include <cuda_bf16.h>
template <typename T>
__global__ void scale(T* to, const T* from, float factor, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = static_cast<T>(static_cast<float>(from[i]) * factor);
}
namespace { __global__ void nothing() {} }
int launch(__nv_bfloat16* to, const __nv_bfloat16* from, float factor, int n, cudaStream_t stream) {
  scale<<<(n + 255) / 256, 256, 0, stream>>>(to, from, factor, n);
  nothing<<<1, 1, 0, stream>>>();
  return cudaGetLastError();
}
"""
HEADERS = """
#include <cub/version.cuh>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda.h>
#include <cuda/std/type_traits>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <cufft.h>
#include <curand.h>
#include <cusolverDn.h>
#include <cusparse.h>
#include <nvrtc.h>
#include <nvtx3/nvToolsExt.h>
#include <thrust/version.h>
"""
ARCHS = ("-gencode", "arch=compute_80,code=sm_80", "-gencode", "arch=compute_90a,code=sm_90a")
DEBIAN = pytest.mark.skipif(which("apt-get") is None, reason="nvcc 12.4 comes from a Debian package")
# Only what finds the host's assembler: no nvcc, nothing that nvcc reads.
BARE = {"PATH": "/usr/bin:/bin"}


def provide(version: str, source, settings: Settings):
    with closing(Supply(settings, SilentReporter())) as supply:
        host = find_host_compiler(settings)
        return provide_nvcc(MajorMinor.parse(version), source, host, settings, supply, SilentReporter())


@pytest.fixture(scope="module")
def settings() -> Settings:
    return replace(Settings.from_environment(), path=BARE["PATH"])


def command(nvcc, source: Path) -> list[str]:
    return [
        *(str(nvcc.nvcc), "-ccbin", shlex.split(nvcc.host)[0], "-std=c++17", "-O3", *ARCHS, "--objdir-as-tempdir"),
        *("-Xcudafe", f"--orig_src_path_name={source.name}", "-Xcompiler"),
        f"-fPIC,-ffile-prefix-map={source.parent}=.",
        *(word for folder in nvcc.include for word in ("-isystem", str(folder))),
        *("-c", str(source), "-o", str(source.with_suffix(".o"))),
    ]


def compiled(nvcc, folder: Path) -> bytes:
    folder.mkdir(parents=True)
    source = folder / "scale.cu"
    source.write_text(SOURCE)
    done = subprocess.run(command(nvcc, source), capture_output=True, text=True, check=False, env=BARE, cwd=folder)
    assert done.returncode == 0, done.stderr
    return source.with_suffix(".o").read_bytes()


@pytest.mark.parametrize("version", [pytest.param("12.4", marks=DEBIAN), "13.0"])
def test_a_locked_nvcc_compiles_alone_and_alike_in_any_folder(version, settings, tmp_path) -> None:
    nvcc = provide(version, "locked", settings)
    assert folder_digest(nvcc.root) == nvcc.digest
    assert compiled(nvcc, tmp_path / "a") == compiled(nvcc, tmp_path / "much/deeper/b")
    dry = subprocess.run(
        [*command(nvcc, tmp_path / "a/scale.cu"), "--dryrun"], capture_output=True, text=True, check=True, env=BARE
    ).stderr
    assert all(f"-arch {arch}" in dry or f"-arch={arch}" in dry for arch in ("sm_80", "sm_90a"))
    allowed = (str(nvcc.root), str(tmp_path), "/usr/bin", "/bin", "/dev/null")
    named = re.findall(r"(?:^|[\s=:,])(/[^\s:;,]+)", dry.replace('"', ""))
    assert len(named) > 20
    assert [path for path in named if not path.startswith(allowed)] == []


@pytest.mark.parametrize("version", [pytest.param("12.4", marks=DEBIAN), "13.0"])
def test_the_headers_that_torchs_headers_include_are_there(version, settings, tmp_path) -> None:
    nvcc = provide(version, "locked", settings)
    source = tmp_path / "headers.cpp"
    source.write_text(HEADERS)
    includes = [word for folder in nvcc.include for word in ("-isystem", str(folder))]
    done = subprocess.run(
        [*shlex.split(nvcc.host), "-std=c++17", "-fsyntax-only", *includes, source],
        capture_output=True,
        text=True,
        check=False,
        env=BARE,
    )
    assert done.returncode == 0, done.stderr


def test_a_shared_library_of_it_holds_the_floor_and_names_its_run_time(settings, tmp_path) -> None:
    nvcc = provide("13.0", "locked", settings)
    compiled(nvcc, tmp_path / "a")
    floor = make_floor(find_host_compiler(settings), settings, SilentReporter())
    library = tmp_path / "scale.so"
    subprocess.run(
        ["g++", "-shared", "-Wl,-z,defs", tmp_path / "a/scale.o", nvcc.cudart, *floor.link["nvcc"], "-o", library],
        check=True,
        env=BARE,
    )
    shown = subprocess.run(["readelf", "-dV", library], capture_output=True, text=True, check=True, env=BARE).stdout
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", shown))
    assert {"libcudart.so.13", "libc10_cuda.so", "libtorch_cuda.so", "libc10.so"} <= needed
    assert all(tuple(map(int, found.split("."))) <= (2, 28) for found in re.findall(r"GLIBC_(\d+\.\d+)", shown))


@DEBIAN
def test_flags_are_known_by_release(settings) -> None:
    flags = ["-O3", "-compress-mode=size", "--expt-relaxed-constexpr", *ARCHS]
    assert unsupported_flags(provide("12.4", "locked", settings), flags) == ("-compress-mode=size",)
    assert unsupported_flags(provide("13.0", "locked", settings), flags) == ()


def test_archives_of_the_published_schema_compile(settings, tmp_path) -> None:
    wheels = provide("13.0", "locked", settings)
    root = wheels.nvcc.parents[1]
    parts = {
        "cuda_nvcc": ("bin", "nvvm", "include/crt"),
        "cuda_cudart": ("include", "lib"),
        "cuda_cccl": ("include/cccl",),
    }
    mirror = tmp_path / "redist"
    rows = {}
    for name, folders in parts.items():
        data = _archive(root, folders)
        path = mirror / name / f"{name}.tar.xz"
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
        pinned = {"relative_path": f"{name}/{path.name}", "sha256": sha256_of(path), "size": str(len(data))}
        rows[name] = {"version": wheels.release, "linux-x86_64": pinned}
    (mirror / "redistrib_13.0.2.json").write_text(json.dumps(rows))
    here = replace(settings, store=tmp_path / "store", redist=(str(mirror / "redistrib_13.0.2.json"),))
    nvcc = provide("13.0", "archive", here)
    assert nvcc.root.is_relative_to(tmp_path / "store")
    assert compiled(nvcc, tmp_path / "a") == compiled(wheels, tmp_path / "b")


def _archive(root: Path, folders: tuple[str, ...]) -> bytes:
    """What lies in these folders; the largest programs are scripts that run the real ones, which pack faster."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz", preset=0) as tar:
        for path in (path for folder in folders for path in sorted((root / folder).rglob("*")) if path.is_file()):
            info = tar.gettarinfo(path, f"component-archive/{path.relative_to(root)}")
            data = path.read_bytes()
            if path.name in ("cicc", "ptxas", "nvlink"):
                data = f'#!/bin/sh\nexec {path} "$@"\n'.encode()
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return buffer.getvalue()
