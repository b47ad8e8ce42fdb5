from __future__ import annotations

import torch

from .functional import rms_norm


class RMSNorm(torch.nn.Module):
    """Stands in for ``LlamaRMSNorm`` and its kin: reads ``weight`` and ``variance_epsilon`` of the replaced module.

    Llama's casting order; the result keeps the input's dtype, also when the weight's is wider.
    """

    weight: torch.Tensor
    variance_epsilon: float

    can_torch_compile = True
    has_backward = False

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return rms_norm(hidden_states, self.weight, self.variance_epsilon)
