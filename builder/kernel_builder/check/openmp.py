"""OpenMP without linking it: libtorch_cpu needs a run time of its own, and what needs libtorch_cpu finds that one.

Linking one would bring a second run time into the process wherever torch's has another name, as in most of its wheels.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

_TABLE = Path(__file__).with_name("policies") / "openmp_4_5.txt"


@cache
def torch_openmp() -> frozenset[str]:
    """OpenMP functions that the run time beside every torch has."""
    lines = _TABLE.read_text("utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))
