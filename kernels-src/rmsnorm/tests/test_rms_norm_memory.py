"""Which memory rms_norm reads and writes: strides, offsets, alignment, padding."""

from __future__ import annotations

import pytest
import torch

DTYPES = (torch.float16, torch.bfloat16, torch.float32)


def _randn(device, dtype, *shape):
    return torch.randn(*shape, device=device).to(dtype)


@pytest.mark.parametrize("hidden", [1, 2, 3, 7, 8, 60, 127, 128, 1000, 3584, 16384])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_misaligned_rows_and_weight(kernel, device, dtype, hidden):
    base, weights = _randn(device, dtype, 5 * hidden + 1), _randn(device, dtype, hidden + 1)
    x, weight = base[1:].view(5, hidden), weights[1:]
    got = kernel.rms_norm(x, weight)
    torch.testing.assert_close(got, kernel.rms_norm(x.clone(), weight.clone()))


def _views(device, dtype):
    return {
        "transposed": _randn(device, dtype, 64, 128).t(),
        "every second element": _randn(device, dtype, 128, 128)[:, ::2],
        "every second row": _randn(device, dtype, 128, 128)[::2],
        "columns": _randn(device, dtype, 33, 300)[:, 7:135],
        "heads of a fused projection": _randn(device, dtype, 3, 5, 12, 64)[:, :, :8],
        "heads in front": _randn(device, dtype, 3, 5, 12, 64).transpose(1, 2),
        "three levels": _randn(device, dtype, 4, 6, 8, 64)[:, ::2, ::3],
        "expanded rows": _randn(device, dtype, 1, 96).expand(7, 96),
        "expanded elements": _randn(device, dtype, 7, 1).expand(7, 96),
        "one dimension": _randn(device, dtype, 96),
        "size-one dimensions": _randn(device, dtype, 9, 1, 1, 96)[::3],
        "one element a row, strided": _randn(device, dtype, 40, 8)[:, 3:4],
    }


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_strides_do_not_change_the_result(kernel, device, dtype):
    for name, x in _views(device, dtype).items():
        weight = _randn(device, dtype, x.shape[-1])
        got = kernel.rms_norm(x, weight)
        assert got.is_contiguous(), name
        torch.testing.assert_close(got, kernel.rms_norm(x.contiguous(), weight), msg=name)


def test_strided_weight(kernel, device):
    x, weights = torch.randn(4, 64, device=device), torch.randn(64, 3, device=device)
    assert torch.equal(kernel.rms_norm(x, weights[:, 1]), kernel.rms_norm(x, weights[:, 1].contiguous()))


@pytest.mark.parametrize("hidden", [5, 64, 100, 5000])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_memory_around_the_arguments_is_left_alone(kernel, device, dtype, hidden):
    padded = torch.full((6, hidden + 24), float("nan"), device=device, dtype=dtype)
    weights = torch.full((hidden + 16,), float("nan"), device=device, dtype=dtype)
    x, weight = padded[1:5, 8 : hidden + 8], weights[8 : hidden + 8]
    x.copy_(torch.randn(4, hidden, device=device))
    weight.fill_(1.5)
    before = padded.clone(), weights.clone()
    assert not kernel.rms_norm(x, weight).isnan().any()
    for now, then in zip((padded, weights), before, strict=True):
        assert torch.equal(now.isnan(), then.isnan())
        assert torch.equal(now.nan_to_num(), then.nan_to_num())


@pytest.mark.parametrize("shape", [(0, 64), (2, 0, 64), (0, 0, 3)])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_no_rows_give_an_empty_result(kernel, device, dtype, shape):
    got = kernel.rms_norm(torch.empty(shape, device=device, dtype=dtype), torch.ones(shape[-1], device=device))
    assert (got.shape, got.dtype, got.device.type) == (shape, dtype, device.type)
