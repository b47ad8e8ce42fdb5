from __future__ import annotations

import torch

from ._ops import add_op_namespace_prefix, ops

_CASTINGS = {"llama": 0, "gemma": 1, "none": 2}
_DTYPES = frozenset({torch.float16, torch.bfloat16, torch.float32})


def rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    eps: float = 1e-6,
    *,
    offset: float = 0.0,
    casting: str = "llama",
) -> torch.Tensor:
    """Divides every row of the last dimension by its root mean square, then multiplies by ``weight + offset``.

    Sums are accumulated in float32. With x̂ = x / sqrt(mean(x²) + eps), ``casting`` says where values are rounded:

    - ``"llama"``: x̂ is computed in float32 and rounded to x's dtype, then multiplied by ``weight + offset`` in weight's
      dtype. Bit for bit what ``LlamaRMSNorm`` computes, but for the order of the sum.
    - ``"gemma"``: everything, ``weight + offset`` too, is float32; the result is rounded once. ``GemmaRMSNorm`` is
      ``offset=1.0, casting="gemma"``.
    - ``"none"``: the reciprocal root, x̂ and the product are each rounded to x's dtype.

    Args:
        x: ``[..., hidden]``, float16, bfloat16 or float32, any strides, 1 ≤ hidden ≤ 2^30. Copied if its last dimension
            is not contiguous or its other dimensions merge into more than two levels of strides.
        weight: ``[hidden]`` of any of the three dtypes, on x's device; None multiplies by nothing.
        eps: Added to the mean of squares, not negative.
        offset: Added to every weight; must be 0 without one.
        casting: ``"llama"``, ``"gemma"`` or ``"none"``.

    Returns:
        A contiguous tensor of x's shape and dtype. Where x has no rows it is empty.

    Raises:
        TypeError: An argument has an unsupported type or dtype.
        ValueError: An argument has a wrong shape, device or value.
        NotImplementedError: A gradient is needed: this version computes the forward direction only.
    """
    _check_tensors(x, weight)
    if weight is None and offset != 0:
        raise ValueError("offset: there is no weight to add it to")
    if not eps >= 0:
        raise ValueError(f"eps: {eps} is negative")
    if casting not in _CASTINGS:
        raise ValueError(f"casting: {casting!r} is none of 'llama', 'gemma' and 'none'")
    if torch.is_grad_enabled() and (x.requires_grad or (weight is not None and weight.requires_grad)):
        raise NotImplementedError("rms_norm has no backward yet: call it under torch.no_grad() or on detached tensors")
    try:
        return ops.rms_norm_forward(x, weight, eps, offset, _CASTINGS[casting])
    except NotImplementedError as e:  # torch's dispatcher found no kernel for the device
        raise ValueError(f"x: this build has no code for {x.device.type} tensors") from e


def _check_tensors(x: torch.Tensor, weight: torch.Tensor | None) -> None:
    _check_dtype("x", x)
    if x.dim() == 0 or x.shape[-1] == 0:
        raise ValueError(f"x: a last dimension with elements is needed, not shape {tuple(x.shape)}")
    if weight is None:
        return
    _check_dtype("weight", weight)
    if weight.dim() != 1 or weight.shape[0] != x.shape[-1]:
        raise ValueError(f"weight: shape ({x.shape[-1]},) is needed, not {tuple(weight.shape)}")
    if weight.device != x.device:
        raise ValueError(f"weight: it is on {weight.device}, x is on {x.device}")


def _check_dtype(name: str, tensor: torch.Tensor) -> None:
    if not isinstance(tensor, torch.Tensor):
        raise TypeError(f"{name}: a torch.Tensor is needed, not {type(tensor).__name__}")
    if tensor.dtype not in _DTYPES:
        raise TypeError(f"{name}: float16, bfloat16 or float32 is needed, not {tensor.dtype}")


@torch.library.register_fake(add_op_namespace_prefix("rms_norm_forward"))
def _rms_norm_forward_fake(x: torch.Tensor, *_: object) -> torch.Tensor:
    return x.new_empty(x.shape)
