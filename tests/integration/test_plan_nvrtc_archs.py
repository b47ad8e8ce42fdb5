"""matrix.toml against the real compilers: every architecture of every toolkit, and none that it does not list."""

from __future__ import annotations

import subprocess
import sys
from contextlib import closing

import pytest

from kernel_builder.plan.matrix import default_matrix
from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.nvrtc import provide_toolkit
from kernel_builder.toolchain.supply import Supply
from kernel_loader.format.versions import MajorMinor

pytestmark = pytest.mark.toolchain

MATRIX, LOCK = default_matrix(), read_lock()
# The toolkits of the default plan, which other tests need too; of the others, those that the store has.
ALWAYS = {MajorMinor(12, 6), MajorMinor(12, 8), MajorMinor(13, 0)}

ASK = """
import ctypes, sys
builtins, path, *candidates = sys.argv[1:]
ctypes.CDLL(builtins, ctypes.RTLD_GLOBAL)
nvrtc, count = ctypes.CDLL(path), ctypes.c_int()
assert nvrtc.nvrtcGetNumSupportedArchs(ctypes.byref(count)) == 0
archs = (ctypes.c_int * count.value)()
assert nvrtc.nvrtcGetSupportedArchs(archs) == 0
print(*archs)
def compiles(arch):
    program, option = ctypes.c_void_p(), (ctypes.c_char_p * 1)(b"--gpu-architecture=sm_" + arch.encode())
    assert nvrtc.nvrtcCreateProgram(ctypes.byref(program), b"__global__ void probe() {}", b"p.cu", 0, None, None) == 0
    return nvrtc.nvrtcCompileProgram(program, 1, option) == 0
print(*filter(compiles, candidates))
"""


def toolkits() -> list[MajorMinor]:
    with closing(Supply(Settings.from_environment(), SilentReporter())) as supply:
        return [v for v, item in LOCK.toolkits.items() if v in ALWAYS or supply.folder_of(item).is_dir()]


@pytest.mark.parametrize("version", toolkits(), ids=str)
def test_the_matrix_lists_exactly_what_a_toolkit_compiles(version) -> None:
    with closing(Supply(Settings.from_environment(), SilentReporter())) as supply:
        toolkit = provide_toolkit(LOCK.toolkit(version), supply)
    numbers = sorted({(arch.major, arch.minor) for t in MATRIX.toolkits.values() for arch in t.known})
    candidates = [f"{major}{minor}{feature}" for major, minor in numbers for feature in ("", "a", "f")]
    command = [sys.executable, "-c", ASK, str(toolkit.nvrtc_builtins), str(toolkit.nvrtc), *candidates]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    plain, compiled = (set(line.split()) for line in done.stdout.splitlines())
    known = MATRIX.toolkits[version].known
    assert plain == {arch.sm for arch in known if not arch.feature}
    assert compiled == {arch.sm for arch in known}
