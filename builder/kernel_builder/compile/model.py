"""Compile steps and what they leave behind."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernel_builder.plan.model import VariantPlan
    from kernel_loader.format.archs import Arch


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceCode:
    """One compiled device source for one architecture: a cubin, or PTX when ``arch.ptx``."""

    device: str
    arch: Arch
    path: Path


@dataclass(frozen=True, kw_only=True, slots=True)
class Artefact:
    """A built library and what went into it.

    Attributes:
        library: The shared object in the store (read-only).
        filename: Its name inside the variant, ``_rmsnorm_cuda_<uid>.abi3.so``.
        device_code: What the fatbins inside were packed from.
        objects: Host object files that were linked, label → path; for naming the culprit of a finding.
    """

    plan: VariantPlan
    library: Path
    filename: str
    device_code: tuple[DeviceCode, ...]
    objects: Mapping[str, Path]


@dataclass(frozen=True, kw_only=True, slots=True)
class BuildResult:
    """Outcome of the compile stage.

    Attributes:
        failed: Variant label → error sentence, for variants that could not be built (``--keep-going``).
        compiled: Labels of the units that ran; empty when everything came from the store.
        reused: Number of units taken from the store.
        log: Log of the commands that ran, None if none did.
    """

    artefacts: tuple[Artefact, ...]
    failed: Mapping[str, str]
    compiled: tuple[str, ...]
    reused: int
    log: Path | None
