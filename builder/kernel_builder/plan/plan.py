"""Kernels × matrix × selection → Plan."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.errors import NothingSelectedError, UsageError
from kernel_builder.plan.archs import VARIABLE, choose, parse_list
from kernel_builder.plan.matrix import default_matrix
from kernel_builder.plan.model import Plan, PlanNote, VariantPlan
from kernel_builder.plan.rows import label, rows_of
from kernel_builder.plan.support import refuse_framework, refuse_sources
from kernel_builder.spec.identity import uid

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kernel_builder.plan.archs import DeviceArchs
    from kernel_builder.plan.matrix import Matrix, Row, ToolkitArchs
    from kernel_builder.plan.selection import Selection
    from kernel_builder.spec.model import Kernel
    from kernel_loader.format.archs import Arch


def make_plan(
    kernels: Sequence[Kernel],
    *,
    selection: Selection,
    cuda_archs: str | None = None,
    matrix: Matrix | None = None,
) -> Plan:
    """Decide which variants are built and for which architectures.

    Args:
        kernels: Kernels with distinct names.
        selection: What the user picks.
        cuda_archs: Raw TORCH_CUDA_ARCH_LIST, which narrows the architectures of every device source.
        matrix: Rows to plan from; default: those of this package.

    Raises:
        SpecError: A kernel cannot be built by this version, or its stable ABI is newer than every row.
        UsageError: The selection names what does not exist, or ``cuda_archs`` is malformed.
        NothingSelectedError: No variant is left.
    """
    matrix = matrix or default_matrix()
    listed = parse_list(cuda_archs)
    offered, notes = _offered(kernels, matrix)
    selection.check(matrix, [label(kernel, row) for kernel, row in offered])
    variants = []
    for kernel, row in offered:
        if selection.rejects(row) or selection.rejects_label(label(kernel, row)):
            continue
        toolkit = matrix.toolkits[row.backend.version] if row.backend.version else None
        archs, said = _archs(kernel, row, toolkit, listed)
        notes += said
        if archs is not None:
            variants.append(_variant(kernel, row, archs))
    if not variants:
        raise _nothing(offered, notes)
    for variant in variants:
        refuse_sources(variant)
    return Plan(variants=tuple(sorted(variants, key=lambda v: (v.kernel.name, str(v.variant)))), notes=tuple(notes))


def _offered(kernels: Sequence[Kernel], matrix: Matrix) -> tuple[list[tuple[Kernel, Row]], list[PlanNote]]:
    offered: list[tuple[Kernel, Row]] = []
    notes: list[PlanNote] = []
    for kernel in sorted(kernels, key=lambda kernel: kernel.name):
        refuse_framework(kernel)
        rows, excluded = rows_of(kernel, matrix)
        offered += [(kernel, row) for row in rows]
        notes += excluded
    labels = [label(kernel, row) for kernel, row in offered]
    if len(set(labels)) != len(labels):
        raise UsageError("Two of the kernels have one name.", hint="plan them one after the other")
    return offered, notes


def _archs(
    kernel: Kernel, row: Row, toolkit: ToolkitArchs | None, listed: tuple[Arch, ...] | None
) -> tuple[dict[str, tuple[Arch, ...]] | None, list[PlanNote]]:
    """Architectures by device, None when a device source is left with none; and what was dropped."""
    if toolkit is None:
        return {}, []
    chosen = {device.name: choose(device.capabilities, toolkit, listed) for device in kernel.devices}
    notes = [
        PlanNote(label=label(kernel, row), text=f"device {name}: {text}")
        for name, archs in chosen.items()
        for text in _said(archs)
    ]
    empty = [name for name, archs in chosen.items() if not archs.kept]
    if empty:
        text = f"not built: CUDA {toolkit.version} knows no architecture of device {', '.join(empty)}"
        return None, [*notes, PlanNote(label=label(kernel, row), text=text)]
    return {name: archs.kept for name, archs in chosen.items()}, notes


def _said(archs: DeviceArchs) -> Iterator[str]:
    if archs.list_ignored:
        yield f"{VARIABLE} names none of {', '.join(map(str, archs.kept))} and does not narrow it"
    yield from map(str, archs.dropped)


def _variant(kernel: Kernel, row: Row, archs: dict[str, tuple[Arch, ...]]) -> VariantPlan:
    return VariantPlan(
        kernel=kernel,
        variant=row.variant,
        uid=uid(kernel, row.backend.name),
        sdk=row.sdk,
        toolkit=row.backend.version,
        archs=archs,
    )


def _nothing(offered: list[tuple[Kernel, Row]], notes: list[PlanNote]) -> NothingSelectedError:
    count = len(offered)
    return NothingSelectedError(
        f"No variant is left to build; {count} {'was' if count == 1 else 'were'} offered.",
        hint="`kernel-builder plan` without options lists all",
        detail="\n".join([*map(str, notes), *(label(kernel, row) for kernel, row in offered)]),
    )
