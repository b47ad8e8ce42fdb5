"""GPU code as the provisioned toolkits really write it: architectures and resources read back from the bytes."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing, contextmanager, suppress
from typing import TYPE_CHECKING

import pytest

from kernel_builder.check.cubin import Cubin, read_cubin
from kernel_builder.check.elf import NotAnElfError
from kernel_builder.check.fatbin import Region, read_fatbins
from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.nvrtc import provide_toolkit
from kernel_builder.toolchain.supply import Supply
from kernel_loader.format.archs import Arch
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel_builder.toolchain.model import Toolkit

pytestmark = pytest.mark.toolchain

# Static shared memory, an array indexed at run time (local memory), a promise of 256 threads, and neither.
SOURCE = """
extern "C" __global__ void __launch_bounds__(256) tile(float* x, float a) {
  __shared__ float s[128];
  s[threadIdx.x % 128] = x[threadIdx.x];
  __syncthreads();
  x[threadIdx.x] = s[(threadIdx.x + 1) % 128] * a;
}
extern "C" __global__ void local(float* x, int n) {
  float v[64];
  for (int i = 0; i < 64; i++) v[i] = x[i];
  for (int i = 0; i < n; i++) v[(i * 7 + n) % 64] += v[i % 64];
  x[0] = v[n % 64];
}
"""
# NVRTC and nvFatbin in a process of their own: two releases cannot share one.
PROGRAM = r"""
import ctypes as c, re, sys
nvrtc, builtins, nvfatbin, source, output, *archs = sys.argv[1:]
c.CDLL(builtins, mode=c.RTLD_GLOBAL)
rtc, fat = c.CDLL(nvrtc), c.CDLL(nvfatbin)
suffix = re.search(rb"__nvFatbinCreate(_\d+_\d+)\0", open(nvfatbin, "rb").read())
def pack(name, *arguments):
    names = ["nvFatbin" + name] + (["__nvFatbin" + name + suffix[1].decode()] if suffix else [])
    call = next(getattr(fat, n) for n in names if hasattr(fat, n))
    assert call(*arguments) == 0, name
handle = c.c_void_p()
pack("Create", c.byref(handle), (c.c_char_p * 2)(b"-64", b"-compress=false"), 2)
for arch in archs:
    program, size = c.c_void_p(), c.c_size_t()
    assert rtc.nvrtcCreateProgram(c.byref(program), source.encode(), b"k.cu", 0, None, None) == 0
    option = ("--gpu-architecture=" + arch).encode()
    assert rtc.nvrtcCompileProgram(program, 1, (c.c_char_p * 1)(option)) == 0, arch
    kind = "PTX" if arch.startswith("compute") else "CUBIN"
    getattr(rtc, f"nvrtcGet{kind}Size")(program, c.byref(size))
    code = c.create_string_buffer(size.value)
    getattr(rtc, f"nvrtcGet{kind}")(program, code)
    arguments = (handle, code, c.c_size_t(size.value), arch.partition("_")[2].encode(), b"sample")
    pack("AddPTX", *arguments, None) if kind == "PTX" else pack("AddCubin", *arguments)
size = c.c_size_t()
pack("Size", handle, c.byref(size))
data = c.create_string_buffer(size.value)
pack("Get", handle, data)
open(output, "wb").write(data.raw)
"""


@contextmanager
def supply() -> Iterator[Supply]:
    with closing(Supply(Settings.from_environment(), SilentReporter())) as opened:
        yield opened


# What each release can compile for; 12.6 is older than Blackwell, families came with 12.9.
ARCHS = {
    "12.6": ("8.0", "9.0", "9.0a", "9.0+PTX", "9.0a+PTX"),
    "12.8": ("8.0", "9.0", "9.0a", "10.0", "10.0a", "12.0", "9.0+PTX", "9.0a+PTX"),
    "13.0": ("8.0", "9.0", "9.0a", "10.0", "10.0a", "10.0f", "12.0", "9.0+PTX", "10.0f+PTX"),
}


@pytest.fixture(scope="module", params=ARCHS)
def toolkit(request: pytest.FixtureRequest) -> Toolkit:
    with supply() as opened:
        return provide_toolkit(read_lock().toolkit(MajorMinor.parse(request.param)), opened)


@pytest.fixture(scope="module")
def regions(toolkit: Toolkit, tmp_path_factory: pytest.TempPathFactory) -> tuple[Region, ...]:
    output = tmp_path_factory.mktemp("code") / "sample.fatbin"
    archs = [f"{'compute' if a.ptx else 'sm'}_{a.sm}" for a in map(Arch.parse, ARCHS[str(toolkit.version)])]
    libraries = [toolkit.nvrtc, toolkit.nvrtc_builtins, toolkit.nvfatbin]
    subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, libraries), SOURCE, str(output), *archs], check=True, timeout=300
    )
    containers = read_fatbins(output.read_bytes())
    assert len(containers) == 1
    return containers[0]


@pytest.fixture(scope="module")
def cubins(regions: tuple[Region, ...]) -> dict[str, Cubin]:
    return {str(r.arch): read_cubin(r.code) for r in regions if r.code is not None and not r.arch.ptx}


def test_every_architecture_is_read_back_with_its_suffix(regions: tuple[Region, ...], toolkit: Toolkit) -> None:
    assert tuple(str(r.arch) for r in regions) == ARCHS[str(toolkit.version)]
    assert {r.name for r in regions} == {"sample"}


def test_a_cubin_itself_tells_its_architecture(cubins: dict[str, Cubin]) -> None:
    for text, cubin in cubins.items():
        arch = Arch.parse(text)
        assert (cubin.sm, cubin.accelerated) == (arch.major * 10 + arch.minor, arch.feature == "a")


def test_resources_of_each_kernel_are_read(cubins: dict[str, Cubin]) -> None:
    for cubin in cubins.values():
        entries = {entry.name: entry for entry in cubin.entries}
        assert entries.keys() == {"tile", "local"}
        assert (entries["tile"].shared_bytes, entries["local"].shared_bytes) == (512, 0)
        assert (entries["tile"].stack_bytes, entries["local"].stack_bytes) == (0, 256)
        assert (entries["tile"].max_threads, entries["local"].max_threads) == (256, None)
        assert all(4 <= entry.registers <= 255 for entry in cubin.entries)


def test_a_flipped_byte_anywhere_never_ends_in_a_traceback(regions: tuple[Region, ...]) -> None:
    code = next(r.code for r in regions if str(r.arch) == "9.0a")
    assert code is not None
    for at in range(0, len(code), max(1, len(code) // 400)):
        changed = bytearray(code)
        changed[at] ^= 0xFF
        with suppress(NotAnElfError):
            assert read_cubin(bytes(changed)).sm >= 0
