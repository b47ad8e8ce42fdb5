"""RMSNorm forward on one GPU against torch's own: GB/s by shape, µs of host time per call, JSON on stdout.

    KERNEL_UNDER_TEST=dist/rmsnorm/build/<variant> python benchmark.py

Bytes are x read once and y written once. The ceiling is a copy of as many bytes. Ours and the peers take turns, three
rounds; a figure is the median of its rounds. Results are checked in the run that times them; inputs are random.
"""

from __future__ import annotations

import importlib.util
import json
import os
import statistics
import sys
import time
from pathlib import Path

import torch
from triton.testing import do_bench

from kernel_loader import get_local_kernel

SHAPES = (
    (1048576, 128),
    (32768, 1024),
    (32768, 4096),
    (16384, 5120),
    (16384, 8192),
    (4096, 16384),
    (4096, 32768),
    (512, 262144),
    (16384, 4097),
)
ROUNDS = 3
CALLS = 500


def load_reference():
    spec = importlib.util.spec_from_file_location("rmsnorm_reference", Path(__file__).parents[1] / "reference.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def take_turns(runs, measure):
    """Name → median over rounds in which every run had its turn."""
    rounds = [{name: measure(run) for name, run in runs.items()} for _ in range(ROUNDS)]
    return {name: statistics.median(r[name] for r in rounds) for name in runs}


def milliseconds(run):
    return do_bench(run, warmup=25, rep=100, return_mode="median")


def host_microseconds(run):
    torch.cuda.synchronize()
    start = time.perf_counter()
    for _ in range(CALLS):
        run()
    elapsed = time.perf_counter() - start
    torch.cuda.synchronize()
    return elapsed / CALLS * 1e6


def arguments(rows, hidden, dtype):
    x = torch.randn(rows, hidden, device="cuda").to(dtype)
    return x, torch.randn(hidden, device="cuda").to(dtype)


def check(kernel, reference, x, weight):
    part = x[-64:]
    got, exact = kernel.rms_norm(x, weight)[-64:], reference.exact(part, weight)
    allowed = 2 * (reference.rms_norm(part, weight).double() - exact).abs().max()
    assert (got.double() - exact).abs().max() <= allowed + torch.finfo(x.dtype).eps * exact.abs().max() / 2


def bandwidth(kernel, reference, rows, hidden, dtype):
    x, weight = arguments(rows, hidden, dtype)
    check(kernel, reference, x, weight)
    copy = torch.empty_like(x)
    runs = {
        "copy": lambda: copy.copy_(x),
        "eager": lambda: torch.nn.functional.rms_norm(x, (hidden,), weight, 1e-6),
        "ours": lambda: kernel.rms_norm(x, weight),
    }
    size = 2 * x.numel() * x.element_size()
    figures = {name: round(size / t / 1e6) for name, t in take_turns(runs, milliseconds).items()}
    case = f"forward {rows} x {hidden} {str(dtype).removeprefix('torch.')}"
    return {"case": case, "metric": "gbps", "ours": figures.pop("ours"), "peers": figures}


def host_time(kernel):
    x, weight = arguments(16, 4096, torch.bfloat16)
    runs = {
        "eager": lambda: torch.nn.functional.rms_norm(x, (4096,), weight, 1e-6),
        "ours": lambda: kernel.rms_norm(x, weight),
    }
    figures = {name: round(t, 2) for name, t in take_turns(runs, host_microseconds).items()}
    return {"case": "host time 16 x 4096 bfloat16", "metric": "us", "ours": figures.pop("ours"), "peers": figures}


def main() -> None:
    torch.set_grad_enabled(False)
    kernel, reference = get_local_kernel(Path(os.environ["KERNEL_UNDER_TEST"])), load_reference()
    rows = [bandwidth(kernel, reference, *shape, torch.bfloat16) for shape in SHAPES]
    rows.append(bandwidth(kernel, reference, 16384, 4096, torch.float32))
    rows.append(host_time(kernel))
    name = torch.cuda.get_device_name()
    json.dump({"version": 1, "gpu": name, "torch": torch.__version__, "rows": rows}, sys.stdout, indent=1)


if __name__ == "__main__":
    main()
