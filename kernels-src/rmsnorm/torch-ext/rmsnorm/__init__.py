"""RMSNorm over the last dimension: y = x / sqrt(mean(x²) + eps) · (weight + offset)."""

from __future__ import annotations

from . import layers
from .functional import rms_norm

__all__ = ["layers", "rms_norm"]
