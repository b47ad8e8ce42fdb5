"""Which rows a kernel can be built for, by its ABI, its backends and its version bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kernel_builder.errors import SpecError
from kernel_builder.plan.matrix import CPU, Row
from kernel_builder.plan.model import PlanNote
from kernel_builder.spec.schema import BUILD
from kernel_loader.format.variants import Backend

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kernel_builder.plan.matrix import Matrix, Stable
    from kernel_builder.spec.model import Kernel
    from kernel_loader.format.versions import MajorMinor

Strategy = Literal["cover", "full"]
# The shared header through which one binding source compiles with either ABI.
_BOTH_ABIS = "common/include/kb/torch.h"


def rows_of(kernel: Kernel, matrix: Matrix, strategy: Strategy) -> tuple[tuple[Row, ...], tuple[PlanNote, ...]]:
    """Every row that a kernel could be built for, and notes about what its bounds and backends leave out.

    ``cover``: a backend with a stable ABI has the stable binding for each CUDA version of the window, and the full ABI
    for torches older than that binding serves; other backends have the full ABI. ``full``: the full ABI of every torch
    build. A binding for the stable ABI that does not speak to torch through ``kb/torch.h`` has no full ABI.

    Raises:
        SpecError: No stable binding is as new as the stable ABI that the kernel needs.
    """
    rows: list[Row] = []
    notes = [_unserved(kernel, name) for name in kernel.backends if name not in matrix.backends]
    notes += [_stable_only(kernel, name) for name in kernel.backends if _lacks_full_abi(kernel, name, matrix, strategy)]
    left_out: dict[str, list[MajorMinor | None]] = {}
    for row in _candidates(kernel, matrix, strategy):
        if reason := out_of_bounds(kernel, row.torch, row.backend.version):
            left_out.setdefault(reason, []).append(row.torch if reason.startswith("torch.") else row.backend.version)
        else:
            rows.append(row)
    notes += [
        PlanNote(label=kernel.name, text=f"not for {'torch' if r.startswith('torch.') else 'CUDA'} {_span(v)}: {r}")
        for r, v in left_out.items()
    ]
    return tuple(rows), tuple(notes)


def out_of_bounds(kernel: Kernel, torch: MajorMinor, cuda: MajorMinor | None) -> str:
    """Which of its version bounds a kernel's build.toml sets against a torch build, empty when none."""
    bounds = kernel.torch
    if bounds.minver is not None and torch < bounds.minver:
        return f"torch.minver is {bounds.minver}"
    if bounds.maxver is not None and torch > bounds.maxver:
        return f"torch.maxver is {bounds.maxver}"
    if cuda is not None and kernel.cuda_minver is not None and cuda < kernel.cuda_minver:
        return f"general.cuda.minver is {kernel.cuda_minver}"
    if cuda is not None and kernel.cuda_maxver is not None and cuda > kernel.cuda_maxver:
        return f"general.cuda.maxver is {kernel.cuda_maxver}"
    return ""


def label(kernel: Kernel, row: Row) -> str:
    """``rmsnorm/torch-stable-abi27-cu128-x86_64-linux``."""
    return f"{kernel.name}/{row.variant}"


def _candidates(kernel: Kernel, matrix: Matrix, strategy: Strategy) -> Iterator[Row]:
    for name in (name for name in matrix.backends if name in kernel.backends):
        stable = None if strategy == "full" else _stable(kernel, name, matrix)
        first = None
        if stable is not None:
            minver = kernel.torch.minver
            first = stable.torch if minver is None else max(stable.torch, minver)
            for backend in (CPU,) if name == CPU.name else tuple(Backend(name, version) for version in matrix.cuda):
                yield Row(
                    abi="stable",
                    torch=first,
                    sdk=max(stable.sdk, first),
                    backend=backend,
                    platform=matrix.platform,
                    target=stable.target,
                )
        for torch in matrix.torches if _has_full_abi(kernel, name) else ():
            if first is None or torch.version < first:
                yield from (
                    Row(
                        abi="full",
                        torch=torch.version,
                        sdk=torch.version,
                        backend=backend,
                        platform=matrix.platform,
                    )
                    for backend in torch.backends
                    if backend.name == name
                )


def _stable(kernel: Kernel, backend: str, matrix: Matrix) -> Stable | None:
    needed = kernel.torch.stable_abi.get(backend)
    if needed is None:
        return None
    for stable in matrix.stables:
        if stable.target >= needed:
            return stable
    known = ", ".join(str(stable.target) for stable in matrix.stables) or "none"
    raise SpecError(
        f"The stable ABI of torch {needed} is newer than every stable binding of the matrix.",
        where=f"{kernel.root / BUILD}: torch.stable-abi",
        hint=f"known are {known}",
    )


def _has_full_abi(kernel: Kernel, backend: str) -> bool:
    return backend not in kernel.torch.stable_abi or _BOTH_ABIS in kernel.sources


def _lacks_full_abi(kernel: Kernel, backend: str, matrix: Matrix, strategy: Strategy) -> bool:
    """Whether full-ABI variants would be planned if the binding allowed them."""
    if backend not in matrix.backends or _has_full_abi(kernel, backend):
        return False
    stable = _stable(kernel, backend, matrix)
    return strategy == "full" or stable is None or matrix.torches[0].version < stable.torch


def _stable_only(kernel: Kernel, backend: str) -> PlanNote:
    text = f"backend {backend}: not with the full ABI, since the binding does not speak to torch through kb/torch.h"
    return PlanNote(label=kernel.name, text=text)


def _unserved(kernel: Kernel, backend: str) -> PlanNote:
    return PlanNote(label=kernel.name, text=f"backend {backend}: not built by this version")


def _span(versions: Iterable[MajorMinor | None]) -> str:
    ordered = sorted({version for version in versions if version is not None})
    return str(ordered[0]) if len(ordered) == 1 else f"{ordered[0]} … {ordered[-1]}"
