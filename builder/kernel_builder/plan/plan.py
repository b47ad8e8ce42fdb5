"""Kernels × matrix × selection → Plan."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernel_builder.errors import NothingSelectedError, UsageError
from kernel_builder.plan.archs import parse_list
from kernel_builder.plan.candidates import candidates_of
from kernel_builder.plan.cells import cells_of, offer, serve
from kernel_builder.plan.cover import cover
from kernel_builder.plan.matrix import default_matrix
from kernel_builder.plan.model import Plan, PlanNote
from kernel_builder.plan.rows import out_of_bounds
from kernel_builder.plan.support import refuse_framework, refuse_sources

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel_builder.plan.candidates import Candidates
    from kernel_builder.plan.cells import Cell, Offer, Service
    from kernel_builder.plan.matrix import Matrix
    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.plan.rows import Strategy
    from kernel_builder.plan.selection import Selection
    from kernel_builder.spec.model import Kernel
    from kernel_loader.format.versions import MajorMinor


def make_plan(
    kernels: Sequence[Kernel],
    *,
    selection: Selection,
    cuda_archs: str | None = None,
    matrix: Matrix | None = None,
    strategy: Strategy = "cover",
    nvccs: Sequence[MajorMinor] | None = None,
    existing: Mapping[str, Sequence[Offer]] | None = None,
) -> Plan:
    """Decide which variants are built and for which architectures.

    Args:
        kernels: Kernels with distinct names.
        selection: What the user picks.
        cuda_archs: Raw TORCH_CUDA_ARCH_LIST, which narrows the architectures of every source.
        matrix: The window to plan for; default: that of this package.
        strategy: ``cover``: the fewest variants that serve every selected cell; ``full``: the full ABI of every
            selected torch build.
        nvccs: CUDA versions of the nvccs that can be had; default: the locked ones.
        existing: Kernel name → variants that are there already. Only what they lack is planned.

    Raises:
        SpecError: A kernel cannot be built by this version, or its stable ABI is newer than every binding.
        UsageError: The selection names what does not exist, or ``cuda_archs`` is malformed.
        NothingSelectedError: No variant is left.
    """
    matrix = matrix or default_matrix()
    listed = parse_list(cuda_archs)
    _distinct(kernels)
    found: list[Candidates] = []
    for kernel in sorted(kernels, key=lambda kernel: kernel.name):
        refuse_framework(kernel)
        found.append(candidates_of(kernel, matrix, strategy, listed, matrix.nvccs if nvccs is None else nvccs))
    selection.check(matrix, [variant.label for each in found for variant in each.variants])
    cells = tuple(cell for cell in cells_of(matrix) if not selection.rejects(cell.torch, cell.backend))
    planned, notes = [], []
    for each in found:
        there = tuple((existing or {}).get(each.kernel.name, ()))
        chosen = _chosen(each, cells, there, matrix, selection, strategy)
        planned += chosen
        notes += each.notes_of(chosen)
    if not planned:
        for variant in (variant for each in found for variant in each.variants if not selection.patterns):
            refuse_sources(variant)
        raise _nothing(found, notes, lacking=existing is not None)
    for variant in planned:
        refuse_sources(variant)
    return Plan(variants=tuple(sorted(planned, key=lambda v: (v.kernel.name, str(v.variant)))), notes=tuple(notes))


def services_of(
    plan: Plan,
    *,
    selection: Selection,
    matrix: Matrix | None = None,
    existing: Mapping[str, Sequence[Offer]] | None = None,
) -> dict[str, tuple[Service, ...]]:
    """Kernel name → what the loader does in every selected cell once the plan is built."""
    matrix = matrix or default_matrix()
    offers: dict[str, list[Offer]] = {}
    for variant in plan.variants:
        offers.setdefault(variant.kernel.name, list((existing or {}).get(variant.kernel.name, ()))).append(
            offer(variant, matrix)
        )
    kernels = {variant.kernel.name: variant.kernel for variant in plan.variants}
    cells = [cell for cell in cells_of(matrix) if not selection.rejects(cell.torch, cell.backend)]
    return {
        name: tuple(_served(kernel, cell, offers[name]) for cell in cells if cell.backend.name in kernel.backends)
        for name, kernel in sorted(kernels.items())
    }


def _served(kernel: Kernel, cell: Cell, offers: Sequence[Offer]) -> Service:
    """What the loader does; where that is nothing because the kernel does not want to be there, the kernel's reason."""
    service = serve(cell, offers)
    reason = out_of_bounds(kernel, cell.torch, cell.backend.version)
    return replace(service, reason=reason) if reason and service.grade == "unserved" else service


def _chosen(
    each: Candidates,
    cells: Sequence[Cell],
    existing: Sequence[Offer],
    matrix: Matrix,
    selection: Selection,
    strategy: Strategy,
) -> list[VariantPlan]:
    """Variants of one kernel: of the plan without patterns what they keep, and whatever else they name."""
    if strategy == "full":
        there = {offered.name for offered in existing}
        named = {v.label for v in each.variants if str(v.variant) not in there}
        wanted = {
            v.label for v in each.variants if not selection.rejects(v.variant.framework.version, v.variant.backend)
        } & named
    else:
        there = {offered.name for offered in existing}
        offers = {v.label: offer(v, matrix) for v in each.variants if str(v.variant) not in there}
        wanted_in = [c for c in cells if not out_of_bounds(each.kernel, c.torch, c.backend.version)]
        covering = {offered.name for offered in cover(wanted_in, tuple(offers.values()), existing)}
        wanted = {label for label, offered in offers.items() if offered.name in covering}
        named = {label for label, offered in offers.items() if any(serve(cell, [offered]).rank for cell in cells)}
    wanted = selection.narrowed(wanted, named)
    return [variant for variant in each.variants if variant.label in wanted]


def _distinct(kernels: Sequence[Kernel]) -> None:
    names = [kernel.name for kernel in kernels]
    if len(set(names)) != len(names):
        raise UsageError("Two of the kernels have one name.", hint="plan them one after the other")


def _nothing(found: Sequence[Candidates], notes: Sequence[PlanNote], *, lacking: bool) -> NothingSelectedError:
    labels = [variant.label for each in found for variant in each.variants]
    detail = "\n".join([*map(str, notes), *labels])
    if lacking and labels:
        return NothingSelectedError(
            "Nothing is missing: every selected cell is served as well as it can be.",
            hint="`kernel-builder plan --cells` shows what serves each",
        )
    count = len(labels)
    return NothingSelectedError(
        f"No variant is left to build; {count} {'was' if count == 1 else 'were'} possible.",
        hint="`kernel-builder plan` without options lists all",
        detail=detail,
    )
