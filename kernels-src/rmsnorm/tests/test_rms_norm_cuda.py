"""What only a CUDA device can show: huge tensors, streams, graphs, threads, other devices."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
import torch

pytestmark = pytest.mark.gpu
BF16 = torch.bfloat16


def test_rows_times_hidden_beyond_32_bits(kernel, device):
    rows, hidden = 2**23 + 16, 256
    x = torch.zeros(rows, hidden, device=device, dtype=BF16)
    x[-1] = 1
    y = kernel.rms_norm(x, torch.ones(hidden, device=device, dtype=BF16))
    assert (y[-1] - 1).abs().max().item() < 1e-2
    for at in (0, rows // 2 - 8):
        assert y[at : at + 16].count_nonzero() == 0


def test_single_element_accesses_beyond_32_bits(kernel, device):
    rows, hidden = 600_001, 4097
    x = torch.zeros(rows, hidden, device=device, dtype=BF16)
    x[-1] = 1
    y = kernel.rms_norm(x, None)
    assert (y[-1] - 1).abs().max().item() < 1e-2
    assert y[rows // 2].count_nonzero() == 0


def test_row_strides_beyond_32_bits(kernel, device):
    x = torch.empty(3, 2**31 // 2 + 64, device=device, dtype=BF16)[:, :1024]
    x.copy_(torch.randn(3, 1024, device=device))
    assert torch.equal(kernel.rms_norm(x), kernel.rms_norm(x.contiguous()))


def test_works_on_the_current_stream(kernel, device):
    x, weight = torch.randn(4096, 4096, device=device).to(BF16), torch.ones(4096, device=device, dtype=BF16)
    want = kernel.rms_norm(x, weight)
    later = torch.zeros_like(x)
    torch.cuda.synchronize()
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        torch.cuda._sleep(50_000_000)  # noqa: SLF001 - there is no other way to hold a stream
        later.copy_(x)
        got = kernel.rms_norm(later, weight)
    assert not stream.query()  # queued behind the sleep, not run beside it
    stream.synchronize()
    assert torch.equal(got, want)


def test_graph_replays_with_new_data(kernel, device):
    x, weight = torch.zeros(64, 4096, device=device, dtype=BF16), torch.ones(4096, device=device, dtype=BF16)
    kernel.rms_norm(x, weight)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = kernel.rms_norm(x, weight)
    for _ in range(3):
        x.copy_(torch.randn_like(x))
        graph.replay()
        assert torch.equal(y, kernel.rms_norm(x, weight))


FIRST_CALL_IN_A_GRAPH = """
import os, pathlib, torch
from kernel_loader import get_local_kernel
torch.set_grad_enabled(False)
kernel = get_local_kernel(pathlib.Path(os.environ["KERNEL_UNDER_TEST"]))
x, graph = torch.randn(64, 4096, device="cuda"), torch.cuda.CUDAGraph()
torch.cuda.synchronize()
with torch.cuda.graph(graph):
    y = kernel.rms_norm(x)
graph.replay()
want = torch.nn.functional.rms_norm(x, (4096,), eps=1e-6)
torch.testing.assert_close(y, want)
print("replayed")
"""


def test_the_very_first_call_may_be_captured():
    run = subprocess.run(
        [sys.executable, "-c", FIRST_CALL_IN_A_GRAPH], env=os.environ, capture_output=True, text=True, check=False
    )
    assert run.stdout.strip() == "replayed", run.stderr


def test_a_thread_that_never_used_cuda(kernel, device):
    x = torch.randn(64, 512, device=device)
    want = kernel.rms_norm(x)
    del want  # its block is what the thread's result will take: no allocation makes a context current there
    results = []

    def call():
        with torch.no_grad():
            results.append(kernel.rms_norm(x))

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert torch.equal(results[0], kernel.rms_norm(x))


def test_many_threads_load_the_kernels_once(kernel, device):
    failures = []

    def call(hidden):
        try:
            for _ in range(20):
                x = torch.randn(33, hidden, device=device)
                with torch.no_grad():
                    torch.testing.assert_close(
                        kernel.rms_norm(x), torch.nn.functional.rms_norm(x, (hidden,), eps=1e-6), rtol=1e-5, atol=1e-5
                    )
        except Exception as e:
            failures.append(e)

    threads = [threading.Thread(target=call, args=(hidden,)) for hidden in (7, 64, 1000, 4097, 8192, 40000)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_every_device_while_the_first_is_current(kernel, device):
    for index in range(torch.cuda.device_count()):
        x = torch.randn(8, 4096, device=f"{device.type}:{index}")
        got = kernel.rms_norm(x)
        assert got.device == x.device
        assert torch.cuda.current_device() == 0
        torch.testing.assert_close(got, torch.nn.functional.rms_norm(x, (4096,), eps=1e-6), rtol=1e-5, atol=1e-5)


def test_a_tensor_on_the_cpu_is_refused(kernel, device):
    with pytest.raises(ValueError, match="x: this build has no code for cpu tensors"):
        kernel.rms_norm(torch.ones(2, 8))
    with pytest.raises(ValueError, match="weight: it is on cpu"):
        kernel.rms_norm(torch.ones(2, 8, device=device), torch.ones(8))
