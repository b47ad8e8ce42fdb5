"""Real toolkits and SDKs: the bytes of the lock, a device compiler that works, headers that compile."""

from __future__ import annotations

import shlex
import subprocess
import sys
from types import SimpleNamespace

import pytest

from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.toolchain.provision import provision
from kernel_builder.toolchain.store import file_digests, tree_digest
from kernel_builder.toolchain.symbols.tables import names_of
from kernel_loader.format.versions import MajorMinor

pytestmark = pytest.mark.toolchain

COMPILE = """
import ctypes, sys
builtins, nvrtc, nvfatbin, arch, *includes = sys.argv[1:]
ctypes.CDLL(builtins)
library = ctypes.CDLL(nvrtc)
ctypes.CDLL(nvfatbin)
major, minor = ctypes.c_int(), ctypes.c_int()
assert library.nvrtcVersion(ctypes.byref(major), ctypes.byref(minor)) == 0
source = b'''
#include <cooperative_groups.h>
#include <cub/block/block_reduce.cuh>
#include <cuda/std/type_traits>
#include <cuda_bf16.h>
#include <cuda_fp8.h>
#include <mma.h>
extern "C" __global__ void probe(__nv_bfloat16* to, float from) { *to = __float2bfloat16(from); }
'''
program, size = ctypes.c_void_p(), ctypes.c_size_t()
options = [f"--gpu-architecture={arch}", "--std=c++17", *(f"-I{folder}" for folder in includes)]
assert library.nvrtcCreateProgram(ctypes.byref(program), source, b"probe.cu", 0, None, None) == 0
status = library.nvrtcCompileProgram(program, len(options), (ctypes.c_char_p * len(options))(*map(str.encode, options)))
library.nvrtcGetProgramLogSize(program, ctypes.byref(size))
log = ctypes.create_string_buffer(size.value)
library.nvrtcGetProgramLog(program, log)
assert status == 0, log.value.decode()
library.nvrtcGetCUBINSize(program, ctypes.byref(size))
assert size.value > 500
print(f"{major.value}.{minor.value}")
"""


def row(sdk: str, toolkit: str | None) -> SimpleNamespace:
    return SimpleNamespace(
        variant=SimpleNamespace(cpu="x86_64", os="linux"),
        sdk=MajorMinor.parse(sdk),
        toolkit=toolkit and MajorMinor.parse(toolkit),
        nvcc=None,
        stable=toolkit is not None,
        label="probe/variant",
    )


@pytest.fixture(scope="module")
def toolchain():
    plan = SimpleNamespace(variants=(row("2.10", "12.8"), row("2.10", "13.0"), row("2.13", None)))
    return provision(plan, Settings.from_environment(), SilentReporter())


def test_the_names_that_torch_exports_are_read_for_the_full_abi_only(toolchain) -> None:
    (symbols,) = toolchain.symbols.values()
    assert symbols.release == "2.13.0"
    names = names_of(symbols, "cpu")
    assert len(names) > 70_000
    assert {"aoti_torch_empty_strided", "_ZN2at6Tensor3addERKS0_"} & names == {"aoti_torch_empty_strided"}
    assert len(names_of(symbols, "cuda")) > len(names)


@pytest.mark.parametrize("version", ["12.8", "13.0"])
def test_a_toolkit_holds_the_locked_bytes(version, toolchain) -> None:
    toolkit = toolchain.toolkits[MajorMinor.parse(version)]
    assert tree_digest(file_digests(toolkit.root)) == toolkit.digest


@pytest.mark.parametrize("version", ["2.10", "2.13"])
def test_an_sdk_holds_the_locked_bytes(version, toolchain) -> None:
    sdk = toolchain.sdks[MajorMinor.parse(version)]
    assert tree_digest(file_digests(sdk.root)) == sdk.digest
    assert f"__version__ = '{sdk.release}" in (sdk.root / "torch/version.py").read_text()


@pytest.mark.parametrize("version", ["12.8", "13.0"])
def test_the_device_compiler_compiles(version, toolchain) -> None:
    toolkit = toolchain.toolkits[MajorMinor.parse(version)]
    libraries = [str(toolkit.nvrtc_builtins), str(toolkit.nvrtc), str(toolkit.nvfatbin)]
    done = subprocess.run(
        [sys.executable, "-c", COMPILE, *libraries, "sm_90a", *map(str, toolkit.include)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == version


@pytest.mark.parametrize("version", ["2.10", "2.13"])
def test_stable_abi_headers_compile(version, toolchain, tmp_path) -> None:
    source = tmp_path / "binding.cpp"
    source.write_text("#include <torch/csrc/stable/library.h>\n#include <torch/csrc/stable/tensor.h>\n")
    includes = [f"-I{folder}" for folder in toolchain.sdks[MajorMinor.parse(version)].include]
    command = [*shlex.split(toolchain.host.cxx), "-std=c++17", "-fsyntax-only", *includes, str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_second_run_downloads_nothing(toolchain) -> None:
    again = provision(toolchain.plan, Settings.from_environment(), SilentReporter())
    assert again.downloaded == 0
    assert (again.toolkits, again.sdks, again.floor) == (toolchain.toolkits, toolchain.sdks, toolchain.floor)
