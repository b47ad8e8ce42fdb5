"""RMSNorm in plain PyTorch: the exact answer and the one that each casting order rounds to."""

from __future__ import annotations

import torch


def exact(
    x: torch.Tensor, weight: torch.Tensor | None = None, eps: float = 1e-6, *, offset: float = 0.0
) -> torch.Tensor:
    """The formula in float64, unrounded."""
    normalised = x.double() * torch.rsqrt(x.double().square().mean(-1, keepdim=True) + eps)
    return normalised if weight is None else normalised * (weight.double() + offset)


def rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None = None,
    eps: float = 1e-6,
    *,
    offset: float = 0.0,
    casting: str = "llama",
) -> torch.Tensor:
    """The formula with the roundings of one casting order, as a model's own module computes it."""
    rstd = torch.rsqrt(x.float().square().mean(-1, keepdim=True) + eps)
    normalised = x * rstd.to(x.dtype) if casting == "none" else x.float() * rstd
    if casting == "llama":
        normalised = normalised.to(x.dtype)
    if weight is not None:
        scale = weight.float() if casting == "gemma" else weight
        normalised = normalised * (scale + offset if offset else scale)
    return normalised.to(x.dtype)
