"""Cells: what the loader picks, how well it serves, and that the cover serves as well as everything would."""

from __future__ import annotations

from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from plan_samples import SMALL_MATRIX, archs, kernel, version

from kernel_builder.plan.cells import Offer, cells_of, existing_offer, serve, summary
from kernel_builder.plan.cover import cover
from kernel_builder.plan.matrix import default_matrix, parse
from kernel_builder.plan.plan import make_plan, services_of
from kernel_builder.plan.selection import Selection
from kernel_loader.format.metadata import Metadata
from kernel_loader.select import select

SMALL = parse(SMALL_MATRIX)
CELLS = cells_of(SMALL)
ARCHS = ("8.0", "9.0", "9.0a", "8.0 9.0+PTX", "12.0", "8.0 12.0 12.0+PTX", "9.0+PTX")


def cell(torch: str, backend: str, gpu: str = ""):
    return next(
        c
        for c in CELLS
        if (str(c.torch), str(c.backend)) == (torch, backend)
        and (c.gpu is None or ".".join(map(str, c.gpu.capability)) == gpu)
    )


def offer(name: str, *devices: str, driver: str = "") -> Offer:
    return Offer(
        name=f"{name}-x86_64-linux",
        backend="cuda" if "-cu" in name else "cpu",
        devices=tuple(map(archs, devices)),
        driver=driver,
    )


def test_every_torch_build_and_gpu_of_the_window_is_a_cell():
    matrix = default_matrix()
    builds = sum(len(torch.cuda) for torch in matrix.torches)
    assert len(cells_of(matrix)) == len(matrix.torches) + builds * len(matrix.gpus)


@pytest.mark.parametrize(
    ("gpu", "devices", "grade"),
    [
        ("8.0", ["8.0"], "native"),
        ("9.0", ["9.0a"], "native"),
        ("9.0", ["8.0 8.0+PTX"], "PTX"),
        ("12.0", ["9.0+PTX"], "PTX"),
        ("9.0", ["8.0"], "unserved"),
        ("9.0", ["9.0", "8.0 8.0+PTX"], "PTX"),
        ("9.0", ["9.0", "8.0"], "unserved"),
    ],
)
def test_grades_follow_the_worst_device_source(gpu, devices, grade):
    service = serve(cell("2.9", "cu130", gpu), [offer("torch29-cxx11-cu130", *devices, driver="580")])
    assert service.grade == grade
    assert service.driver == ("580" if grade == "PTX" else "")


def test_an_unserved_cell_gives_the_loaders_nearest_miss():
    service = serve(cell("2.8", "cu126", "8.0"), [offer("torch-stable-abi29-cu126", "8.0"), offer("torch29-cxx11-cpu")])
    assert (service.variant, service.grade, service.reason) == (
        None,
        "unserved",
        "needs torch 2.9 or newer, this is torch 2.8",
    )
    assert serve(cell("2.8", "cpu"), []).reason == "nothing is built"


def test_a_python_only_variant_is_noarch():
    service = serve(cell("2.8", "cu126", "8.0"), [Offer(name="torch-cuda", backend="cuda")])
    assert (service.variant, service.grade) == ("torch-cuda", "noarch")


def test_ptx_marks_in_metadata_mean_machine_code_too():
    metadata = Metadata(name="a", id="_a", version=1, license="", backend="cuda", archs=archs("8.0 9.0+PTX"))
    hub = existing_offer("torch29-cxx11-cu130-x86_64-linux", metadata)
    assert serve(cell("2.9", "cu130", "9.0"), [hub]).grade == "native"
    assert serve(cell("2.9", "cu130", "12.0"), [hub]).grade == "PTX"


def test_the_shipped_window_is_served_natively_wherever_torch_itself_is():
    demo = kernel(stable="2.9", capabilities="7.5 8.0 9.0 10.0 12.0+PTX")
    made = make_plan([demo], selection=Selection())
    services = services_of(made, selection=Selection())["demo"]
    assert [s for s in services if s.cell.in_torch and s.grade != "native"] == []
    assert {s.grade for s in services} == {"native", "PTX"}
    assert summary(services) == "243 cells: 207 native, 36 PTX"


def test_a_cell_served_by_ptx_states_the_driver_that_takes_the_ptx_and_knows_the_gpu():
    demo = kernel(stable="2.9", capabilities="8.0 9.0+PTX")
    services = services_of(make_plan([demo], selection=Selection()), selection=Selection())["demo"]
    on_13 = {s.cell.gpu.capability: s.driver for s in services if s.grade == "PTX" and str(s.cell.backend) == "cu130"}
    on_126 = {s.cell.gpu.capability: s.driver for s in services if s.grade == "PTX" and str(s.cell.backend) == "cu126"}
    assert on_126 == {(10, 0): "570.26", (10, 3): "575.51.03", (12, 0): "570.26", (12, 1): "575.51.03"}
    assert set(on_13) == set(on_126)
    assert set(on_13.values()) == {"580.65.06"}


def test_a_variant_that_gives_no_cell_more_is_not_taken():
    twice = [offer("torch29-cxx11-cu126", "8.0 9.0"), offer("torch29-cxx11-cu128", "8.0 9.0")]
    chosen = cover([c for c in CELLS if c.torch == version("2.9")], twice)
    assert [o.name for o in chosen] == ["torch29-cxx11-cu126-x86_64-linux"]


def test_selected_builds_are_all_that_is_covered():
    made = make_plan([kernel(stable="2.9")], selection=Selection.parse(torch=["2.9"], cuda=["12.8"]))
    assert [str(v.variant) for v in made.variants] == ["torch-stable-abi27-cu126-x86_64-linux"]
    native = kernel(stable="2.9", capabilities="8.0 12.0")
    made = make_plan([native], selection=Selection.parse(torch=["2.9"], cuda=["12.8"]))
    assert [str(v.variant) for v in made.variants] == ["torch-stable-abi27-cu128-x86_64-linux"]


frameworks = st.sampled_from(["torch28-cxx11", "torch29-cxx11", "torch210-cxx11", "torch-stable-abi29"])
backends = st.sampled_from(["cu126", "cu130", "cu132"])
offers = st.lists(
    st.builds(lambda f, b, a: offer(f"{f}-{b}", a), frameworks, backends, st.sampled_from(ARCHS)),
    max_size=5,
    unique_by=lambda o: o.name,
)


@settings(deadline=None, max_examples=60)
@given(offers)
def test_every_cell_has_the_variant_that_the_loader_picks(candidates):
    for each in CELLS[::3]:
        service = serve(each, candidates)
        if service.variant is not None:
            accepted = {d.name for d in select([c.name for c in candidates], each.environment).decisions if d.accepted}
            assert service.variant in accepted


@settings(deadline=None, max_examples=40)
@given(offers)
def test_the_cover_serves_each_cell_that_any_candidate_serves(candidates):
    chosen = cover(CELLS, candidates)
    for each in CELLS:
        alone = max((serve(each, [candidate]).rank for candidate in candidates), default=0)
        needed = alone if each.in_torch else min(alone, 2)
        together = serve(each, candidates).rank
        assert serve(each, chosen).rank >= min(needed, together)


@settings(deadline=None, max_examples=20)
@given(offers)
def test_the_cover_does_not_depend_on_the_order_of_cells(candidates):
    assert cover(CELLS, candidates) == cover(CELLS[::-1], candidates)


@settings(deadline=None, max_examples=15)
@given(offers)
def test_no_smaller_set_would_do(candidates):
    chosen = cover(CELLS, candidates)
    ranks = [serve(each, chosen).rank for each in CELLS]
    for size in range(len(chosen)):
        for fewer in {frozenset(p) for p in permutations(chosen, size)}:
            assert [serve(each, tuple(fewer)).rank for each in CELLS] != ranks


@settings(deadline=None, max_examples=15)
@given(offers, offers)
def test_what_is_there_already_is_not_chosen_again(there, candidates):
    there = [o for o in there if o.name not in {c.name for c in candidates}]
    assert not {o.name for o in cover(CELLS, candidates, there)} & {o.name for o in there}
