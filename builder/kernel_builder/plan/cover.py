"""The fewest variants that serve every cell as well as all possible variants together would."""

from __future__ import annotations

from itertools import chain, combinations
from typing import TYPE_CHECKING

from kernel_builder.plan.cells import fitting, serve

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from kernel_builder.plan.cells import Cell, Offer

_PTX = 2  # Service.rank


def cover(cells: Iterable[Cell], candidates: Sequence[Offer], existing: Sequence[Offer] = ()) -> tuple[Offer, ...]:
    """Choose among ``candidates``, in their order.

    A cell needs what the best candidate gives it: machine code where torch's own wheel has machine code for the GPU,
    PTX elsewhere. No cell gets less than ``existing`` alone gives it. Among sets that serve this best, one with the
    fewest variants is taken; among those, one with the fewest compiled architectures; among those, the first.

    Args:
        cells: What has to be served.
        candidates: Variants that can be built.
        existing: Variants that are there already; they cost nothing and stay.
    """
    chosen: set[str] = set()
    for group, names in _independent(cells, candidates, existing):
        chosen.update(offer.name for offer in _fewest(group, [c for c in candidates if c.name in names], existing))
    return tuple(candidate for candidate in candidates if candidate.name in chosen)


def _independent(
    cells: Iterable[Cell], candidates: Sequence[Offer], existing: Sequence[Offer]
) -> Iterator[tuple[dict[Cell, int], frozenset[str]]]:
    """Cells → the rank that they need, in groups that share no candidate; and each group's candidates."""
    groups: list[tuple[dict[Cell, int], set[str]]] = []
    for cell in cells:
        ranks = {c.name: serve(cell, [c]).rank for c in fitting(cell.build, candidates)}
        helpful = {name for name, rank in ranks.items() if rank}
        if not helpful:
            continue
        there = serve(cell, existing).rank
        best = max(there, *ranks.values())
        joined = [group for group in groups if group[1] & helpful]
        groups = [group for group in groups if group not in joined]
        merged: dict[Cell, int] = {cell: best if cell.in_torch else max(there, min(best, _PTX))}
        for other, names in joined:
            merged |= other
            helpful |= names
        groups.append((merged, helpful))
    yield from ((needs, frozenset(names)) for needs, names in groups)


def _fewest(needs: dict[Cell, int], candidates: Sequence[Offer], existing: Sequence[Offer]) -> Sequence[Offer]:
    """The set that serves best; of equals the smallest, the cheapest, the first."""
    before = [serve(cell, existing).rank for cell in needs]

    def score(chosen: Sequence[Offer]) -> tuple[int, int, int, int]:
        after = [serve(cell, (*existing, *chosen)).rank for cell in needs]
        worse = sum(new < old for new, old in zip(after, before, strict=True))
        served = sum(map(min, after, needs.values()))
        return -worse, served, -len(chosen), -_cost(chosen)

    sets = chain.from_iterable(combinations(candidates, size) for size in range(len(candidates) + 1))
    return max(sets, key=score)


def _cost(offers: Iterable[Offer]) -> int:
    return sum(len(device) for offer in offers for device in offer.devices)
