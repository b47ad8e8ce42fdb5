"""What holds for every kernel: the cover serves what the full matrix serves, and the loader is the only judge."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st
from plan_samples import SMALL_MATRIX, archs, kernel, version

from kernel_builder.errors import NothingSelectedError
from kernel_builder.plan.candidates import candidates_of
from kernel_builder.plan.cells import cells_of, offer, serve
from kernel_builder.plan.cover import cover
from kernel_builder.plan.matrix import parse
from kernel_builder.plan.plan import make_plan, services_of
from kernel_builder.plan.rows import out_of_bounds
from kernel_builder.plan.selection import Selection
from kernel_builder.spec.model import Component, Device
from kernel_loader.select import refine, select

MATRIX = parse(SMALL_MATRIX)
CELLS = cells_of(MATRIX)
EVERYTHING = Selection()

wanted = st.lists(
    st.sampled_from(["7.0", "7.5", "8.0", "8.0+PTX", "9.0", "9.0a", "9.0+PTX", "12.0", "12.0+PTX", "12.0a"]),
    min_size=1,
    max_size=4,
    unique=True,
).map(" ".join)
bound = st.sampled_from([None, None, None, "2.8", "2.9", "2.10"]).map(lambda text: text and version(text))
cuda_bound = st.sampled_from([None, None, None, "12.6", "13.0", "13.2"]).map(lambda text: text and version(text))


@st.composite
def kernels(draw, name: str = "demo"):
    """Kernels with device sources, classic ones, both; any ABI, any bounds."""
    kind = draw(st.sampled_from(["device", "devices", "classic", "both"]))
    capabilities = [archs(draw(wanted)) for _ in range(3)]
    classic = Component(
        key="old", backend="cuda", depends=("torch",), sources=("a.cu",), cuda_capabilities=capabilities[2]
    )
    devices = tuple(Device(name=n, source=f"{n}.cu", capabilities=c) for n, c in zip("ab", capabilities, strict=False))
    return replace(
        kernel(name, stable=draw(st.sampled_from([None, "2.9", "2.10"])), torch={}),
        devices={"device": devices[:1], "devices": devices, "classic": (), "both": devices[:1]}[kind],
        components=(classic,) if kind in ("classic", "both") else (),
        cuda_minver=draw(cuda_bound),
        cuda_maxver=draw(cuda_bound),
    )


@st.composite
def bounded(draw):
    demo = draw(kernels())
    return replace(demo, torch=replace(demo.torch, minver=draw(bound), maxver=draw(bound)))


def services(demo, strategy):
    try:
        made = make_plan([demo], selection=EVERYTHING, matrix=MATRIX, strategy=strategy)
    except NothingSelectedError:
        return None, {}
    return made, {s.cell: s for s in services_of(made, selection=EVERYTHING, matrix=MATRIX)["demo"]}


@settings(deadline=None, max_examples=60)
@given(bounded())
def test_the_cover_serves_what_the_full_matrix_serves(demo):
    _, full = services(demo, "full")
    _, cover_ = services(demo, "cover")
    for cell, best in full.items():
        if best.grade != "unserved" and not out_of_bounds(demo, cell.torch, cell.backend.version):
            got = cover_[cell]
            assert got.rank >= (best.rank if cell.in_torch else min(best.rank, 2)), (best, got)


@settings(deadline=None, max_examples=40)
@given(bounded(), st.sampled_from(["cover", "full"]))
def test_the_variant_of_every_cell_is_the_loaders_choice_among_the_planned_names(demo, strategy):
    made, served = services(demo, strategy)
    if made is None:
        return
    offers = {str(variant.variant): offer(variant, MATRIX) for variant in made.variants}
    for cell, service in served.items():
        environment = cell.environment
        best = refine(select(offers, environment), lambda name: offers[name].metadata, environment).best
        assert service.variant == (best.name if best else None)


@settings(deadline=None, max_examples=40)
@given(bounded(), st.data())
def test_another_variant_never_serves_a_cell_worse(demo, data):
    """Whatever part of the possible variants is there, one more of them only helps."""
    offers = [offer(v, MATRIX) for v in candidates_of(demo, MATRIX, "cover", None, MATRIX.nvccs).variants]
    some = [each for each in offers if data.draw(st.booleans())]
    more = [*some, *(each for each in offers if each not in some and data.draw(st.booleans()))]
    for cell in CELLS:
        assert serve(cell, more).rank >= serve(cell, some).rank, (cell, some, more)


@settings(deadline=None, max_examples=40)
@given(bounded(), bounded(), st.data())
def test_what_is_added_to_a_version_takes_nothing_away(earlier, now, data):
    there = [offer(v, MATRIX) for v in candidates_of(earlier, MATRIX, "full", None, MATRIX.nvccs).variants]
    there = [each for each in there if data.draw(st.booleans())]
    names = {each.name for each in there}
    possible = [offer(v, MATRIX) for v in candidates_of(now, MATRIX, "cover", None, MATRIX.nvccs).variants]
    added = cover(CELLS, [each for each in possible if each.name not in names], there)
    for cell in CELLS:
        assert serve(cell, [*there, *added]).rank >= serve(cell, there).rank, (cell, there, added)


@settings(deadline=None, max_examples=20)
@given(st.permutations(["aa", "bb", "cc"]), st.data())
def test_a_plan_does_not_depend_on_the_order_of_kernels(order, data):
    made = {name: data.draw(kernels(name)) for name in ("aa", "bb", "cc")}
    try:
        expected = make_plan(list(made.values()), selection=EVERYTHING, matrix=MATRIX)
    except NothingSelectedError:
        return
    assert make_plan([made[name] for name in order], selection=EVERYTHING, matrix=MATRIX) == expected
