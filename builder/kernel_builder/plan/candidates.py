"""Every variant that a kernel could have, with its architectures; and why some rows are none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.plan.archs import VARIABLE, choose
from kernel_builder.plan.cells import offer
from kernel_builder.plan.model import PlanNote, VariantPlan
from kernel_builder.plan.rows import label, rows_of
from kernel_builder.spec.identity import uid
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from kernel_builder.plan.archs import DeviceArchs
    from kernel_builder.plan.matrix import Matrix, Row, ToolkitArchs
    from kernel_builder.plan.rows import Strategy
    from kernel_builder.spec.model import Component, Kernel
    from kernel_loader.format.archs import Arch


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidates:
    """Variants that a kernel could have.

    Attributes:
        notes: About the kernel as a whole.
        said: Variant label → what its architectures lack.
    """

    kernel: Kernel
    variants: tuple[VariantPlan, ...]
    notes: tuple[PlanNote, ...]
    said: Mapping[str, tuple[PlanNote, ...]]

    def notes_of(self, chosen: Iterable[VariantPlan]) -> list[PlanNote]:
        """Notes that matter for a choice of variants, equal ones merged; without a choice, why some cannot be built."""
        labels = {variant.label for variant in chosen} or self.said.keys()
        by_text: dict[str, list[PlanNote]] = {}
        for note in (note for key in self.said if key in labels for note in self.said[key]):
            by_text.setdefault(note.text, []).append(note)
        merged = (
            notes[0] if len(notes) == 1 else PlanNote(label=self.kernel.name, text=f"{len(notes)} variants: {text}")
            for text, notes in by_text.items()
        )
        return [*self.notes, *merged]


def candidates_of(
    kernel: Kernel,
    matrix: Matrix,
    strategy: Strategy,
    listed: tuple[Arch, ...] | None,
    nvccs: Sequence[MajorMinor],
) -> Candidates:
    """Plan every row of a kernel.

    Args:
        kernel: The kernel.
        matrix: The window.
        strategy: Which rows there are.
        listed: TORCH_CUDA_ARCH_LIST, read.
        nvccs: CUDA versions of the nvccs that can be had.

    Raises:
        SpecError: Its stable ABI is newer than every binding.
    """
    rows, notes = rows_of(kernel, matrix, strategy)
    variants, said = [], {}
    for row in rows:
        variant, own = _variant(kernel, row, matrix, listed, nvccs)
        said[label(kernel, row)] = tuple(PlanNote(label=label(kernel, row), text=text) for text in own)
        variants += [] if variant is None else [variant]
    own_notes = tuple(PlanNote(label=kernel.name, text=text) for text in kernel.notes)
    return Candidates(kernel=kernel, variants=tuple(variants), notes=(*own_notes, *notes), said=said)


def nvcc_components(kernel: Kernel, backend: str) -> tuple[Component, ...]:
    """Components of a backend with sources that nvcc compiles."""
    return tuple(c for c in kernel.components if c.backend == backend and any(s.endswith(".cu") for s in c.sources))


def _variant(
    kernel: Kernel, row: Row, matrix: Matrix, listed: tuple[Arch, ...] | None, nvccs: Sequence[MajorMinor]
) -> tuple[VariantPlan | None, list[str]]:
    cuda = row.backend.version
    nvcc = None
    if cuda is not None and nvcc_components(kernel, row.backend.name):
        least = kernel.cuda_minver or MajorMinor(0, 0)
        nvcc = max((v for v in nvccs if v.major == cuda.major and least <= v <= cuda), default=None)
        if nvcc is None:
            wanted = f"CUDA {cuda}" + (f" that is not older than {least}" if kernel.cuda_minver else "")
            return None, [f"not built: no nvcc for {wanted} can be had; there are {_listed(nvccs)}"]
    toolkit = cuda if kernel.devices else None
    chosen = dict(_archs(kernel, row, matrix, listed, toolkit, nvcc))
    said = [f"{_source(name)}: {text}" for name, archs in chosen.items() for text in _said(archs)]
    empty = [_source(name) for name, archs in chosen.items() if not archs.kept]
    if empty:
        return None, [*said, f"not built: CUDA {nvcc or toolkit} knows no architecture of {', '.join(empty)}"]
    variant = VariantPlan(
        kernel=kernel,
        variant=row.variant,
        uid=uid(kernel, row.backend.name),
        sdk=row.sdk,
        target=row.target,
        toolkit=toolkit,
        nvcc=nvcc,
        archs={name: archs.kept for name, archs in chosen.items()},
    )
    if chosen and not offer(variant, matrix).metadata.archs:
        said.append(f"no GPU runs all of {', '.join(map(_source, chosen))}: they have no architecture in common")
    return variant, said


def _archs(
    kernel: Kernel,
    row: Row,
    matrix: Matrix,
    listed: tuple[Arch, ...] | None,
    toolkit: MajorMinor | None,
    nvcc: MajorMinor | None,
) -> Iterator[tuple[str, DeviceArchs]]:
    if toolkit is not None:
        for device in kernel.devices:
            yield device.name, choose(device.capabilities, matrix.toolkits[toolkit], listed)
    if nvcc is not None:
        for component in nvcc_components(kernel, row.backend.name):
            if component.cuda_minver is None or component.cuda_minver <= nvcc:
                yield f"kernel.{component.key}", choose(component.cuda_capabilities, _known(matrix, nvcc), listed)


def _known(matrix: Matrix, nvcc: MajorMinor) -> ToolkitArchs:
    """What an nvcc compiles; one newer than the matrix knows at least what the newest known one does."""
    older = [version for version in matrix.toolkits if version <= nvcc]
    return matrix.toolkits[max(older) if older else min(matrix.toolkits)]


def _source(name: str) -> str:
    return name if name.startswith("kernel.") else f"device {name}"


def _said(archs: DeviceArchs) -> Iterator[str]:
    if archs.list_ignored:
        yield f"{VARIABLE} names none of {', '.join(map(str, archs.kept))} and does not narrow it"
    yield from map(str, archs.dropped)


def _listed(versions: Sequence[MajorMinor]) -> str:
    return ", ".join(map(str, versions)) or "none"
