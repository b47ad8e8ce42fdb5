"""Runs variants built from other people's sources on this machine's GPU and compares them with torch.

    PYTHONPATH=builder python ci/gpu/community.py DIST

DIST holds what ``ci/community.py --out DIST`` made of relu, activation and rotary, and what ``kernel-builder build
tests/integration/kernels/classic-rmsnorm --out DIST`` made. Prints a line per kernel; fails when one is missing or
wrong.
"""

from __future__ import annotations

import sys
from pathlib import Path

import torch

from kernel_loader import get_local_kernel


def relu(kernel) -> float:
    x = torch.randn(1000, 257, device="cuda")
    return _error(kernel.relu(x), torch.relu(x))


def activation(kernel) -> float:
    x = torch.randn(333, 2 * 512, device="cuda", dtype=torch.bfloat16)
    gate, up = x.chunk(2, dim=-1)
    functions = torch.nn.functional
    cases = {
        kernel.silu_and_mul: functions.silu(gate.float()) * up.float(),
        kernel.mul_and_silu: gate.float() * functions.silu(up.float()),
        kernel.gelu_and_mul: functions.gelu(gate.float()) * up.float(),
        kernel.gelu_tanh_and_mul: functions.gelu(gate.float(), approximate="tanh") * up.float(),
    }
    return max(_error(op(torch.empty_like(gate), x), want) for op, want in cases.items())


def rotary(kernel) -> float:
    x1, x2 = torch.randn(2, 4, 128, 8, 32, device="cuda")
    angle = torch.rand(128, 1, 32, device="cuda") * 6.28
    out1, out2 = torch.empty_like(x1), torch.empty_like(x2)
    kernel.apply_rotary(x1, x2, angle.cos(), angle.sin(), out1, out2, conj=False)
    want1, want2 = x1 * angle.cos() - x2 * angle.sin(), x1 * angle.sin() + x2 * angle.cos()
    return max(_error(out1, want1), _error(out2, want2))


def classic_rmsnorm(kernel) -> float:
    x = torch.randn(300, 4100, device="cuda", dtype=torch.bfloat16)
    weight = torch.randn(4100, device="cuda", dtype=torch.bfloat16)
    want = torch.nn.functional.rms_norm(x.float(), (4100,), weight.float(), 1e-6)
    return _error(kernel.rms_norm(x, weight, 1e-6), want)


KERNELS = {"relu": relu, "activation": activation, "rotary": rotary, "classic-rmsnorm": classic_rmsnorm}


def _error(got: torch.Tensor, want: torch.Tensor) -> float:
    return ((got.float() - want.float()).norm() / want.float().norm()).item()


def main() -> int:
    failed = 0
    for name, test in KERNELS.items():
        try:
            kernel = get_local_kernel(Path(sys.argv[1]) / name, backend="cuda")
            error = test(kernel)
        except Exception as e:
            print(f"{name}: {type(e).__name__}: {e}")
            failed += 1
            continue
        print(f"{name}: {kernel.__name__} relative error {error:.1e}")
        failed += error > 1e-2
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
