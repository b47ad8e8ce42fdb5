"""How rms_norm behaves as a function, an op and a layer."""

from __future__ import annotations

import inspect

import pytest
import torch


def _x(device, *shape, dtype=torch.float32):
    return torch.randn(*shape, device=device).to(dtype)


@pytest.mark.parametrize(
    ("x", "weight", "keywords", "error", "text"),
    [
        ([1.0], None, {}, TypeError, "x: a torch.Tensor is needed, not list"),
        (
            torch.ones(2, 4, dtype=torch.float64),
            None,
            {},
            TypeError,
            "x: float16, bfloat16 or float32 .* torch.float64",
        ),
        (torch.ones(2, 4, dtype=torch.int32), None, {}, TypeError, "x: .* torch.int32"),
        (torch.tensor(1.0), None, {}, ValueError, "x: a last dimension with elements"),
        (torch.ones(2, 0), None, {}, ValueError, "x: a last dimension with elements"),
        (torch.ones(2, 4), [1.0] * 4, {}, TypeError, "weight: a torch.Tensor is needed, not list"),
        (torch.ones(2, 4), torch.ones(4, dtype=torch.float64), {}, TypeError, "weight: .* torch.float64"),
        (torch.ones(2, 4), torch.ones(3), {}, ValueError, r"weight: shape \(4,\) is needed, not \(3,\)"),
        (torch.ones(2, 4), torch.ones(1, 4), {}, ValueError, r"weight: shape \(4,\) is needed, not \(1, 4\)"),
        (torch.ones(2, 4), torch.ones(4, device="meta"), {}, ValueError, "weight: it is on meta"),
        (torch.ones(2, 4), None, {"offset": 1.0}, ValueError, "offset: there is no weight"),
        (torch.ones(2, 4), torch.ones(4), {"casting": "fp8"}, ValueError, "casting: 'fp8' is none of"),
        (torch.ones(2, 4), torch.ones(4), {"eps": -1.0}, ValueError, "eps: -1.0 is negative"),
        (torch.ones(2, 4), torch.ones(4), {"eps": float("nan")}, ValueError, "eps: nan"),
    ],
)
def test_wrong_arguments_are_named(kernel, device, x, weight, keywords, error, text):
    x, weight = (t.to(device) if isinstance(t, torch.Tensor) and t.device.type != "meta" else t for t in (x, weight))
    with pytest.raises(error, match=text):
        kernel.rms_norm(x, weight, **keywords)


@pytest.mark.parametrize(
    ("x", "weight", "rest", "text"),
    [
        (torch.ones(2, 4, dtype=torch.float64), None, (1e-6, 0.0, 0), "x: float16, bfloat16 or float32 is needed"),
        (torch.ones(2, 0), None, (1e-6, 0.0, 0), "x: the last dimension is empty"),
        (torch.tensor(1.0), None, (1e-6, 0.0, 0), "x: at least one dimension"),
        (torch.ones(2, 4), torch.ones(5), (1e-6, 0.0, 0), "weight: a vector of 4 elements"),
        (torch.ones(2, 4), torch.ones(4, dtype=torch.int32), (1e-6, 0.0, 0), "weight: float16"),
        (torch.ones(2, 4), None, (1e-6, 1.0, 0), "offset: there is no weight"),
        (torch.ones(2, 4), None, (1e-6, 0.0, 3), "casting: 3 is not"),
    ],
)
def test_the_op_checks_for_itself(kernel, device, x, weight, rest, text):
    op = _op(kernel)
    with pytest.raises(ValueError, match=text):
        op(x.to(device), weight if weight is None else weight.to(device), *rest)


def _op(kernel):
    return inspect.getmodule(kernel.rms_norm).ops.rms_norm_forward


def test_a_needed_gradient_is_refused(kernel, device):
    x, weight = _x(device, 2, 8), torch.nn.Parameter(torch.ones(8, device=device))
    with torch.enable_grad():
        with pytest.raises(NotImplementedError, match="no backward yet"):
            kernel.rms_norm(x, weight)
        with pytest.raises(NotImplementedError, match="no backward yet"):
            kernel.rms_norm(x.clone().requires_grad_(), None)
        kernel.rms_norm(x, weight.detach())
    with torch.inference_mode():
        kernel.rms_norm(x, weight)


def test_arguments_are_not_changed(kernel, device):
    x, weight = _x(device, 5, 96), _x(device, 96)
    copies = x.clone(), weight.clone()
    kernel.rms_norm(x, weight, offset=1.0, casting="gemma")
    assert torch.equal(x, copies[0])
    assert torch.equal(weight, copies[1])


@pytest.mark.parametrize("weight_dtype", [None, torch.float32, torch.bfloat16], ids=str)
def test_opcheck(kernel, device, weight_dtype):
    weight = None if weight_dtype is None else torch.ones(64, device=device, dtype=weight_dtype)
    for x in (_x(device, 3, 64), _x(device, 0, 64), _x(device, 64, 3).t(), _x(device, 2, 5, 64).transpose(0, 1)):
        torch.library.opcheck(_op(kernel), (x, weight, 1e-6, 0.0, 0))


def test_meta_tensors_give_shape_and_dtype(kernel):
    x = torch.empty(7, 3, 64, device="meta", dtype=torch.bfloat16).transpose(0, 1)
    got = kernel.rms_norm(x, torch.empty(64, device="meta"))
    assert (got.shape, got.dtype, got.is_contiguous()) == ((3, 7, 64), torch.bfloat16, True)


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning")  # torch's own
def test_compiles_whole_and_for_any_number_of_rows(kernel, device):
    def normalise(x, weight):
        return kernel.rms_norm(x * 2, weight, 1e-5, offset=1.0, casting="gemma") + 1

    compiled = torch.compile(normalise, fullgraph=True)
    weight = _x(device, 64)
    for rows in (7, 9, 12):
        x = _x(device, rows, 64)
        torch.testing.assert_close(compiled(x, weight), normalise(x, weight))


class LlamaRMSNorm(torch.nn.Module):
    """The module whose place the layer takes."""

    def __init__(self, hidden_size):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(hidden_size))
        self.variance_epsilon = 1e-5

    def forward(self, hidden_states):
        wide = hidden_states.to(torch.float32)
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + self.variance_epsilon)
        return self.weight * wide.to(hidden_states.dtype)


def test_layer_takes_the_place_of_llamas(kernel, device):
    module = LlamaRMSNorm(256).to(device, torch.bfloat16)
    x = _x(device, 50, 256, dtype=torch.bfloat16)
    got = kernel.layers.RMSNorm.forward(module, x)
    assert (got != module(x)).float().mean().item() < 1e-3


def test_layer_keeps_the_rules_for_exchanged_layers(kernel):
    layer = kernel.layers.RMSNorm
    assert layer.__init__ is torch.nn.Module.__init__
    members = {name for name, _ in inspect.getmembers(layer)} - {
        name for name, _ in inspect.getmembers(torch.nn.Module)
    }
    assert members <= {"can_torch_compile", "has_backward"}
    assert inspect.signature(layer.forward).parameters.keys() == {"self", "hidden_states"}


def test_public_names(kernel):
    assert sorted(kernel.__all__) == ["layers", "rms_norm"]
    parameters = inspect.signature(kernel.rms_norm).parameters
    assert list(parameters) == ["x", "weight", "eps", "offset", "casting"]
