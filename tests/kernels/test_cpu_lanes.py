"""The CPU kernels' own float16 and bfloat16 conversions, on both instruction sets, against Python's arithmetic."""

from __future__ import annotations

import itertools
import math
import random
import struct
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.toolchain
INCLUDE = Path(__file__).parents[2] / "kernels-src/common/include"
PROGRAM = r"""
#include <cstdio>
#include "kb/cpu/lanes.h"
using namespace kb::cpu;

// Reads floats from stdin; writes for each its f16 and bf16 bits, then the float that those f16 bits are.
KB_INLINE void convert() {
  f32 in[8];
  while (std::fread(in, sizeof in, 1, stdin) == 1) {
    f16 half[8];
    bf16 brain[8];
    f32 back[8];
    store(half, load(in));
    store(brain, load(in));
    store(back, load(half));
    std::fwrite(half, sizeof half, 1, stdout);
    std::fwrite(brain, sizeof brain, 1, stdout);
    std::fwrite(back, sizeof back, 1, stdout);
  }
}
void portable() { convert(); }
#ifdef KB_AVX2
KB_AVX2 void avx2() { convert(); }
#endif
int main(int count, char**) {
#ifdef KB_AVX2
  if (count > 1) return has_avx2() ? (avx2(), 0) : 77;
#endif
  portable();
}
"""


def _f32(bits: int) -> float:
    return struct.unpack("<f", struct.pack("<I", bits))[0]


def _rounded(value: float, mantissa: int, lowest: int, highest: float) -> float:
    """Nearest value, ties to even, with ``mantissa`` bits after the point and 2^lowest as the smallest normal."""
    if not math.isfinite(value) or value == 0:
        return value
    unit = 2.0 ** (max(math.frexp(value)[1] - 1, lowest) - mantissa)
    nearest = math.copysign(round(value / unit) * unit, value)
    return math.copysign(math.inf, value) if abs(nearest) > highest else nearest


def _inputs() -> list[float]:
    draw = random.Random(0)
    halves = [struct.unpack("<e", struct.pack("<H", bits))[0] for bits in range(65536)]
    finite = sorted({abs(h) for h in halves if math.isfinite(h)})
    ties = [(a + b) / 2 for a, b in itertools.pairwise(finite)]  # exact in float32
    edges = [65504.0, 65519.99, 65520.0, 65536.0, 3.4e38, 2.0**-24, 2.0**-25, 2.0**-26, 1e-40, math.inf, -math.inf]
    values = [*halves, *ties, *(-t for t in ties), *edges, *(_f32(draw.getrandbits(32)) for _ in range(50000))]
    return values + [0.0] * (-len(values) % 8)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lanes")
    (folder / "lanes.cpp").write_text(PROGRAM)
    argv = ["g++", "-std=c++17", "-O2", "-Wall", "-Wextra", "-Werror", f"-I{INCLUDE}", "lanes.cpp", "-o", "lanes"]
    subprocess.run(argv, cwd=folder, check=True)
    return folder / "lanes"


@pytest.mark.parametrize("arguments", [[], ["avx2"]], ids=["portable", "avx2"])
def test_conversions_round_to_nearest_even(program: Path, arguments: list[str]) -> None:
    values = _inputs()
    run = subprocess.run([program, *arguments], input=struct.pack(f"<{len(values)}f", *values), capture_output=True)
    if run.returncode == 77:
        pytest.skip("this processor has no AVX2")
    assert run.returncode == 0
    for at in range(0, len(values), 8):
        block = struct.unpack_from("<8e8H8f", run.stdout, at * 8)
        for value, half, brain, back in zip(values[at : at + 8], block[:8], block[8:16], block[16:], strict=True):
            want = _rounded(value, 10, -14, 65504.0), _rounded(value, 7, -126, _f32(0x7F7F0000))
            for got, expected in ((half, want[0]), (_f32(brain << 16), want[1]), (back, want[0])):
                same = got == expected and math.copysign(1, got) == math.copysign(1, expected)
                assert same or (math.isnan(got) and math.isnan(value)), value
