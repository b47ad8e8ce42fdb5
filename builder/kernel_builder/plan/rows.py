"""Which rows of the matrix a kernel has, by its ABI, its backends and its version bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.errors import SpecError
from kernel_builder.plan.model import PlanNote
from kernel_builder.spec.schema import BUILD

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel_builder.plan.matrix import Matrix, Row
    from kernel_builder.spec.model import Kernel
    from kernel_loader.format.variants import Backend
    from kernel_loader.format.versions import MajorMinor


def rows_of(kernel: Kernel, matrix: Matrix) -> tuple[tuple[Row, ...], tuple[PlanNote, ...]]:
    """The rows that a kernel is built for, and a note for each row that its bounds exclude.

    A backend with a stable ABI takes, of the stable rows that are new enough, the oldest: it serves every newer torch.
    Every backend takes the full-ABI rows.

    Raises:
        SpecError: No stable row is as new as the stable ABI that the kernel needs.
    """
    candidates = tuple(_candidates(kernel, matrix))
    rows, notes = [], [_unserved(kernel, name, matrix) for name in _without(kernel, candidates)]
    for row in candidates:
        if reason := _out_of_bounds(kernel, row):
            notes.append(PlanNote(label=label(kernel, row), text=f"not built: {reason}"))
        else:
            rows.append(row)
    return tuple(rows), tuple(notes)


def label(kernel: Kernel, row: Row) -> str:
    """``rmsnorm/torch-stable-abi210-cu128-x86_64-linux``."""
    return f"{kernel.name}/{row.variant}"


def _candidates(kernel: Kernel, matrix: Matrix) -> Iterator[Row]:
    yield from (row for row in matrix.rows if row.abi == "full" and row.backend.name in kernel.backends)
    for backend in dict.fromkeys(row.backend for row in matrix.rows):
        needed = kernel.torch.stable_abi.get(backend.name)
        if needed is not None and backend.name in kernel.backends:
            yield _oldest_stable(kernel, matrix, backend, needed)


def _without(kernel: Kernel, candidates: tuple[Row, ...]) -> list[str]:
    served = {row.backend.name for row in candidates}
    return [name for name in kernel.backends if name not in served]


def _unserved(kernel: Kernel, backend: str, matrix: Matrix) -> PlanNote:
    built = backend in matrix.backends
    reason = "no row has it with the full ABI" if built else "not built by this version"
    return PlanNote(label=kernel.name, text=f"backend {backend}: {reason}")


def _oldest_stable(kernel: Kernel, matrix: Matrix, backend: Backend, needed: MajorMinor) -> Row:
    stable = sorted(
        (row for row in matrix.rows if row.abi == "stable" and row.backend == backend), key=lambda row: row.torch
    )
    fitting = [row for row in stable if row.torch >= needed]
    if not fitting:
        known = ", ".join(str(row.torch) for row in stable) or "none"
        raise SpecError(
            f"The stable ABI of torch {needed} is newer than every stable row of the matrix for {backend}.",
            where=f"{kernel.root / BUILD}: torch.stable-abi",
            hint=f"stable rows for {backend}: {known}",
        )
    minver = kernel.torch.minver
    return next((row for row in fitting if minver is None or row.torch >= minver), fitting[-1])


def _out_of_bounds(kernel: Kernel, row: Row) -> str:
    torch, toolkit = kernel.torch, row.backend.version
    if torch.minver is not None and row.torch < torch.minver:
        return f"torch.minver is {torch.minver}"
    if torch.maxver is not None and row.torch > torch.maxver:
        return f"torch.maxver is {torch.maxver}"
    if toolkit is not None and kernel.cuda_minver is not None and toolkit < kernel.cuda_minver:
        return f"general.cuda.minver is {kernel.cuda_minver}"
    if toolkit is not None and kernel.cuda_maxver is not None and toolkit > kernel.cuda_maxver:
        return f"general.cuda.maxver is {kernel.cuda_maxver}"
    return ""
