"""What will be built: a Plan is a tuple of VariantPlans; both print as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.spec.model import Component, Kernel
    from kernel_loader.format.archs import Arch
    from kernel_loader.format.variants import ArchVariant
    from kernel_loader.format.versions import MajorMinor


@dataclass(frozen=True, kw_only=True, slots=True)
class VariantPlan:
    """One variant to build.

    Attributes:
        uid: First 10 hex digits of the identity digest (kernel name, version, backend, source digests).
        sdk: Torch version whose headers the binding is compiled with, e.g. 2.10.
        toolkit: CUDA toolkit (NVRTC) of the device sources; None for cpu, and for kernels without device sources.
        archs: Device name, or ``kernel.<key>`` for a component with ``.cu`` sources → architectures compiled for it,
            in order; empty for cpu.
        target: TORCH_TARGET_VERSION of a stable-ABI binding. The variant's name carries the oldest torch that has what
            this target imports, which may be older. None for the full ABI.
        nvcc: CUDA version of the nvcc that compiles ``.cu`` sources of components; None when there are none. It may
            be older than the variant's CUDA version, never newer.
        lineinfo: Device code carries line numbers (``build --dev``); never in what is published.
    """

    kernel: Kernel
    variant: ArchVariant
    uid: str
    sdk: MajorMinor
    toolkit: MajorMinor | None
    archs: Mapping[str, tuple[Arch, ...]]
    target: MajorMinor | None = None
    nvcc: MajorMinor | None = None
    lineinfo: bool = False

    @property
    def backend(self) -> str:
        """``cpu`` or ``cuda``."""
        return self.variant.backend.name

    @property
    def stable(self) -> bool:
        """Whether the binding uses the stable ABI."""
        return self.variant.framework.kind == "torch-stable-abi"

    @property
    def op_id(self) -> str:
        """Module name and op namespace: ``_rmsnorm_cuda_0123456789``."""
        return f"_{self.kernel.python_name}_{self.backend}_{self.uid}"

    @property
    def components(self) -> tuple[Component, ...]:
        """Components of this backend, without those that need a newer CUDA than what compiles them."""
        cuda = self.nvcc or self.variant.backend.version
        return tuple(
            component
            for component in self.kernel.components
            if component.backend == self.backend
            and (cuda is None or component.cuda_minver is None or component.cuda_minver <= cuda)
        )

    @property
    def label(self) -> str:
        """``rmsnorm/torch-stable-abi210-cu128-x86_64-linux``, for people and logs."""
        return f"{self.kernel.name}/{self.variant}"

    def to_json(self) -> dict[str, Any]:
        """The plan row as plain data."""
        return {
            "kernel": self.kernel.name,
            "version": self.kernel.version,
            "variant": str(self.variant),
            "backend": self.backend,
            "id": self.op_id,
            "sdk": str(self.sdk),
            "target": None if self.target is None else str(self.target),
            "toolkit": None if self.toolkit is None else str(self.toolkit),
            "nvcc": None if self.nvcc is None else str(self.nvcc),
            "archs": {name: [str(a) for a in archs] for name, archs in self.archs.items()},
        }


@dataclass(frozen=True, kw_only=True, slots=True)
class PlanNote:
    """Something that a plan leaves out although nobody asked for that: ``label`` is the variant, ``text`` says why."""

    label: str
    text: str

    def __str__(self) -> str:
        return f"{self.label}: {self.text}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Plan:
    """All variants of one run, ordered by kernel name, then variant name; and what the plan left out and why."""

    variants: tuple[VariantPlan, ...]
    notes: tuple[PlanNote, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The plan as plain data."""
        return {"version": 1, "variants": [v.to_json() for v in self.variants], "notes": [str(n) for n in self.notes]}
