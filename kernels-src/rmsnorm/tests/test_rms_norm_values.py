"""What rms_norm computes: against float64, and bit for bit against each casting order."""

from __future__ import annotations

import itertools
import random

import pytest
import torch

F16, BF16, F32 = torch.float16, torch.bfloat16, torch.float32
DTYPES = (F16, BF16, F32)
CASTINGS = ("llama", "gemma", "none")
# Every kernel of csrc/rms_norm_table.h: parts of a warp, whole blocks, rows read twice; each with 16-byte accesses and,
# at odd sizes, with single elements.
SAMPLES = 16384  # elements whose largest errors are compared: that of a few dozen says little
HIDDEN = (
    1,
    2,
    3,
    7,
    8,
    60,
    64,
    100,
    127,
    128,
    256,
    1000,
    1024,
    3584,
    4095,
    4096,
    4097,
    5120,
    8192,
    16384,
    16385,
    32768,
)


def assert_as_good_as_plain(got: torch.Tensor, exact: torch.Tensor, plain: torch.Tensor) -> None:
    """The largest error is at most twice that of plain PyTorch, plus half a unit of the largest value."""
    assert got.dtype == plain.dtype
    assert got.shape == plain.shape
    error, allowed = ((t.double() - exact).abs().max().item() for t in (got, plain))
    half_unit = torch.finfo(got.dtype).eps * exact.abs().max().item() / 2
    assert error <= 2 * allowed + half_unit


@pytest.mark.parametrize("hidden", HIDDEN)
@pytest.mark.parametrize("casting", CASTINGS)
@pytest.mark.parametrize(("x_dtype", "weight_dtype"), [*itertools.product(DTYPES, DTYPES)], ids=str)
def test_close_to_float64(kernel, device, reference, x_dtype, weight_dtype, casting, hidden):
    rows = max(5, SAMPLES // hidden)
    x = torch.randn(rows, hidden, device=device).to(x_dtype)
    weight = (1 + 0.3 * torch.randn(hidden, device=device)).to(weight_dtype)
    got = kernel.rms_norm(x, weight, 1e-6, offset=0.5, casting=casting)
    exact = reference.exact(x, weight, 1e-6, offset=0.5)
    assert_as_good_as_plain(got, exact, reference.rms_norm(x, weight, 1e-6, offset=0.5, casting=casting))


@pytest.mark.parametrize("hidden", [131072, 262143, 262144])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_very_long_rows(kernel, device, reference, dtype, hidden):
    x = torch.randn(3, hidden, device=device).to(dtype)
    weight = torch.randn(hidden, device=device).to(dtype)
    got = kernel.rms_norm(x, weight)
    assert_as_good_as_plain(got, reference.exact(x, weight), reference.rms_norm(x, weight))


def test_shapes_drawn_at_random(kernel, device, reference):
    seed = random.randrange(2**32)  # a new one each time; shown when the test fails
    print("seed", seed)  # noqa: T201
    draw = random.Random(seed)
    for _ in range(40):
        rows, hidden = draw.randint(1, 70), int(2 ** draw.uniform(0, 14))
        dtype, casting = draw.choice(DTYPES), draw.choice(CASTINGS)
        x = torch.randn(rows, hidden, device=device).to(dtype)
        weight = torch.randn(hidden, device=device).to(draw.choice(DTYPES))
        got = kernel.rms_norm(x, weight, 1e-5, casting=casting)
        plain = reference.rms_norm(x, weight, 1e-5, casting=casting)
        assert_as_good_as_plain(got, reference.exact(x, weight, 1e-5), plain)


@pytest.mark.parametrize("casting", CASTINGS)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_without_weight(kernel, device, reference, dtype, casting):
    x = torch.randn(9, 384, device=device).to(dtype)
    plain = reference.rms_norm(x, casting=casting)
    assert_as_good_as_plain(kernel.rms_norm(x, casting=casting), reference.exact(x), plain)


@pytest.mark.parametrize("offset", [0.0, 1.0])
@pytest.mark.parametrize("casting", CASTINGS)
@pytest.mark.parametrize("weight_dtype", DTYPES, ids=str)
@pytest.mark.parametrize("x_dtype", [F16, BF16], ids=str)
def test_casting_order_is_bit_exact(kernel, device, reference, x_dtype, weight_dtype, casting, offset):
    x = torch.randn(200, 512, device=device).to(x_dtype)
    weight = (1 + 0.3 * torch.randn(512, device=device)).to(weight_dtype)
    got = kernel.rms_norm(x, weight, offset=offset, casting=casting)
    want = reference.rms_norm(x, weight, offset=offset, casting=casting)
    # The sum of a row may round otherwise, and then a few elements of it fall to the other side.
    few = 1e-3 if casting != "none" else 1e-2  # "none" rounds 1/rms too, which moves a whole row
    assert (got != want).float().mean().item() < few
    apart = (got.view(torch.int16).int() - want.view(torch.int16).int()).abs().max().item()
    assert apart <= (1 if casting == "gemma" else 4)


def test_orders_differ_where_they_should(kernel, device):
    x = torch.randn(200, 512, device=device).to(BF16)
    weight = (1 + 0.3 * torch.randn(512, device=device)).to(BF16)
    llama, gemma, none = (kernel.rms_norm(x, weight, casting=casting) for casting in CASTINGS)
    assert (llama != gemma).float().mean().item() > 0.05
    assert (llama != none).float().mean().item() > 0.05


def test_gemma_adds_the_offset_in_float32(kernel, device, reference):
    x = torch.randn(4, 64, device=device).to(BF16)
    weight = torch.full((64,), 15.8125, device=device, dtype=BF16)  # 16.8125 is no bfloat16
    got = kernel.rms_norm(x, weight, 1e-6, offset=1.0, casting="gemma")
    assert torch.equal(got, reference.rms_norm(x, weight, 1e-6, offset=1.0, casting="gemma"))
    assert not torch.equal(got, kernel.rms_norm(x, weight, 1e-6, offset=1.0, casting="llama"))


@pytest.mark.parametrize("hidden", [2, 16, 32, 64, 100])
@pytest.mark.parametrize("rows", [1, 2, 31, 32, 33, 47, 48, 49, 65535, 65536, 70000])
def test_every_row_is_computed(kernel, device, reference, rows, hidden):
    x = torch.randn(rows, hidden, device=device)
    weight = torch.randn(hidden, device=device)
    torch.testing.assert_close(kernel.rms_norm(x, weight), reference.rms_norm(x, weight), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_rows_do_not_depend_on_their_number(kernel, device, dtype):
    x = torch.randn(1000, 640, device=device).to(dtype)
    weight = torch.randn(640, device=device).to(dtype)
    every = kernel.rms_norm(x, weight)
    assert torch.equal(every[517:518], kernel.rms_norm(x[517:518], weight))


@pytest.mark.parametrize("hidden", [64, 100, 16385])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_special_values_follow_the_formula(kernel, device, reference, dtype, hidden):
    rows = torch.zeros(5, hidden, device=device)
    rows[1] = 1e-4
    rows[2, hidden // 2] = float("inf")
    rows[3, hidden - 1] = float("nan")
    rows[4] = -6e4
    x = rows.to(dtype)
    got, want = kernel.rms_norm(x, None, 1e-6), reference.rms_norm(x, None, 1e-6)
    torch.testing.assert_close(got, want, equal_nan=True)
    assert got[0].count_nonzero() == 0
    assert got[3].isnan().all()


def test_a_row_of_zeros_without_eps_is_nan_as_in_the_formula(kernel, device):
    assert kernel.rms_norm(torch.zeros(2, 8, device=device), None, 0.0).isnan().all()
