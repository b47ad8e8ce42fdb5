"""CUDA's headers, for sources of variants that an nvcc compiles: torch's headers include them, and kernels do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.toolchain.model import Nvcc, Toolchain


@dataclass(frozen=True, kw_only=True, slots=True)
class CudaView:
    """The headers of one nvcc; nothing for variants without one.

    Attributes:
        label: ``, CUDA 13.0``, or empty.
        include: Include arguments.
        prefix_map: What ``__FILE__`` gives for these headers instead of this machine's folder.
    """

    label: str = ""
    include: tuple[str, ...] = ()
    prefix_map: tuple[str, ...] = ()
    places: Mapping[str, str] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)


def cuda_view(variant: VariantPlan, toolchain: Toolchain) -> CudaView:
    """The headers of the variant's nvcc."""
    if variant.nvcc is None:
        return CudaView()
    nvcc = toolchain.nvccs[variant.nvcc]
    return CudaView(
        label=f", CUDA {nvcc.version}",
        include=cuda_include(nvcc),
        prefix_map=("-ffile-prefix-map=@cuda@/=cuda/",),
        places={"cuda": str(nvcc.root)},
        tools={f"nvcc {nvcc.version}": nvcc.digest},
    )


def cuda_include(nvcc: Nvcc) -> tuple[str, ...]:
    """Include arguments of its headers, as system folders."""
    folders = [f"@cuda@/{folder.relative_to(nvcc.root).as_posix()}" for folder in nvcc.include]
    return tuple(word for folder in folders for word in ("-isystem", folder))
