"""make_plan: what a kernel is built for, and why something is not planned."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from plan_samples import SMALL_MATRIX, archs, kernel, version

from kernel_builder.errors import NothingSelectedError, SpecError, UsageError
from kernel_builder.plan.cells import Offer
from kernel_builder.plan.matrix import parse
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection
from kernel_builder.spec.identity import uid
from kernel_builder.spec.model import Component, Device
from kernel_loader.format.archs import Arch

SMALL = parse(SMALL_MATRIX)
CLASSIC = (
    Component(key="host", backend="cpu", depends=(), sources=("csrc/op_cpu.cpp",)),
    Component(key="launch", backend="cuda", depends=("torch",), sources=("csrc/op.cu", "csrc/op.h")),
)


def plan(*kernels, matrix=SMALL, cuda_archs=None, strategy="cover", nvccs=None, existing=None, **words):
    return make_plan(
        kernels,
        selection=Selection.parse(**words),
        cuda_archs=cuda_archs,
        matrix=matrix,
        strategy=strategy,
        nvccs=nvccs,
        existing=existing,
    )


def names(made) -> list[str]:
    return [str(variant.variant).removesuffix("-x86_64-linux") for variant in made.variants]


def notes(made) -> list[str]:
    return [str(note).replace("-x86_64-linux", "") for note in made.notes]


def test_the_default_plan_of_a_stable_kernel_serves_the_whole_window():
    made = make_plan([kernel(stable="2.9", capabilities=None)], selection=Selection())
    assert names(made) == [
        "torch-stable-abi27-cpu",
        "torch-stable-abi27-cu126",
        "torch-stable-abi27-cu128",
        "torch-stable-abi27-cu130",
    ]
    assert made.notes == ()


def test_what_a_variant_plan_says():
    demo = kernel(stable="2.9")
    variant = make_plan([demo], selection=Selection.parse(cuda=["13.0"])).variants[0]
    assert (variant.backend, variant.stable, str(variant.sdk), str(variant.target), str(variant.toolkit)) == (
        "cuda",
        True,
        "2.13",
        "2.9",
        "13.0",
    )
    assert variant.nvcc is None
    assert variant.uid == uid(demo, "cuda")
    assert variant.archs == {"op": archs("8.0")}
    assert [component.key for component in variant.components] == ["launch"]


def test_the_oldest_stable_binding_that_is_new_enough_is_used_and_the_full_abi_below_it():
    assert names(plan(kernel(stable="2.9"), backends=["cpu"])) == ["torch-stable-abi29-cpu", "torch28-cxx11-cpu"]
    assert names(plan(kernel(stable="2.10"), backends=["cpu"])) == [
        "torch-stable-abi210-cpu",
        "torch28-cxx11-cpu",
        "torch29-cxx11-cpu",
    ]


def test_a_backend_without_stable_abi_has_the_full_abi_of_every_torch():
    mixed = kernel(torch={"stable_abi": {"cuda": version("2.9")}})
    assert names(plan(mixed, backends=["cpu"])) == ["torch210-cxx11-cpu", "torch28-cxx11-cpu", "torch29-cxx11-cpu"]
    assert names(plan(kernel(stable=None), backends=["cuda"])) == [
        "torch210-cxx11-cu130",
        "torch28-cxx11-cu126",
        "torch29-cxx11-cu126",
        "torch29-cxx11-cu130",
    ]


def test_the_full_matrix_has_one_full_abi_variant_per_torch_build():
    made = plan(kernel(stable="2.9"), strategy="full")
    assert names(made) == [
        "torch210-cxx11-cpu",
        "torch210-cxx11-cu130",
        "torch210-cxx11-cu132",
        "torch28-cxx11-cpu",
        "torch28-cxx11-cu126",
        "torch29-cxx11-cpu",
        "torch29-cxx11-cu126",
        "torch29-cxx11-cu130",
    ]
    assert all(variant.sdk == variant.variant.framework.version and variant.target is None for variant in made.variants)


def test_a_stable_abi_newer_than_every_binding_is_an_error():
    with pytest.raises(SpecError, match=r"stable ABI of torch 2\.13 is newer than every stable binding") as caught:
        plan(kernel(stable="2.13"))
    assert caught.value.where == "/kernels/demo/build.toml: torch.stable-abi"
    assert caught.value.hint == "known are 2.9, 2.10"


def test_a_backend_that_nothing_is_built_for_is_noted():
    made = plan(kernel(backends=("cpu", "rocm")))
    assert notes(made)[0] == "demo: backend rocm: not built by this version"


@pytest.mark.parametrize(
    ("bounds", "expected", "reason"),
    [
        (
            {"torch": {"minver": version("2.10")}},
            ["torch-stable-abi210-cpu", "torch-stable-abi210-cu130"],
            "demo: not for torch 2.8 … 2.9: torch.minver is 2.10",
        ),
        (
            {"torch": {"maxver": version("2.8")}},
            ["torch28-cxx11-cpu", "torch28-cxx11-cu126"],
            "demo: not for torch 2.9: torch.maxver is 2.8",
        ),
        (
            {"cuda_minver": version("12.8"), "backends": ("cuda",)},
            ["torch-stable-abi29-cu130"],
            "demo: not for CUDA 12.6: general.cuda.minver is 12.8",
        ),
        (
            {"cuda_maxver": version("12.9"), "backends": ("cuda",)},
            ["torch-stable-abi29-cu126", "torch28-cxx11-cu126"],
            "demo: not for CUDA 13.0 … 13.2: general.cuda.maxver is 12.9",
        ),
    ],
)
def test_version_bounds_of_the_kernel_say_what_they_leave_out(bounds, expected, reason):
    made = plan(kernel(stable="2.9", **bounds))
    assert names(made) == expected
    assert reason in notes(made)


def test_a_row_whose_toolkit_knows_no_asked_architecture_cannot_be_built():
    made = plan(kernel(stable="2.9", capabilities="12.0"), backends=["cuda"])
    assert names(made) == ["torch-stable-abi29-cu130"]
    with pytest.raises(NothingSelectedError) as caught:
        plan(kernel(stable="2.9", capabilities="12.0"), cuda=["12.6"])
    assert "CUDA 12.6 knows no architecture of device op" in caught.value.detail


def test_architectures_are_chosen_per_device():
    two = kernel(
        stable="2.9",
        devices=(
            Device(name="a", source="csrc/a.cu", capabilities=archs("8.0 9.0a 12.0+PTX")),
            Device(name="b", source="csrc/b.cu"),
        ),
    )
    made = plan(two, only=["*stable*cu1*"], cuda_archs="8.0+PTX;9.0+PTX")
    assert [variant.archs for variant in made.variants] == [
        {"a": archs("8.0 8.0+PTX 9.0a"), "b": archs("8.0 9.0+PTX 9.0a")},
        {"a": archs("8.0 9.0a"), "b": archs("8.0")},
    ]


def test_the_environments_list_cannot_change_what_a_kernel_asks_for(monkeypatch):
    """B011: only the argument counts, it never adds, and it never empties."""
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "7.5")
    asked = kernel(stable="2.9", capabilities="8.0 9.0a")
    assert plan(asked, cuda=["13.0"]).variants[0].archs == {"op": archs("8.0 9.0a")}

    made = plan(asked, cuda=["13.0"], cuda_archs=os.environ["TORCH_CUDA_ARCH_LIST"])
    assert made.variants[0].archs == {"op": archs("8.0 9.0a")}
    assert notes(made) == [
        "demo/torch-stable-abi29-cu130: device op: TORCH_CUDA_ARCH_LIST names none of 8.0, 9.0a and does not narrow it"
    ]


def test_notes_that_many_variants_share_are_said_once():
    made = plan(kernel(stable=None, capabilities="8.0 12.0+PTX"), cuda=["12.6"])
    assert names(made) == ["torch28-cxx11-cu126", "torch29-cxx11-cu126"]
    assert notes(made) == [
        "demo: 2 variants: device op: 12.0: unknown to CUDA 12.6",
        "demo: 2 variants: device op: 12.0+PTX: unknown to CUDA 12.6, 8.0+PTX instead",
    ]


def test_without_gpu_and_without_a_list_the_defaults_are_planned(monkeypatch):
    """B012: nothing asks for a device."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    made = make_plan([kernel(capabilities=None)], selection=Selection.parse(cuda=["12.8"]), strategy="full")
    assert made.variants[0].archs == {"op": archs("8.0 9.0a 10.0 12.0 12.0+PTX")}


def test_a_malformed_list_is_refused_even_for_cpu():
    with pytest.raises(UsageError, match="not a GPU architecture"):
        plan(kernel(), backends=["cpu"], cuda_archs="sm_90")


def test_cuda_sources_with_host_code_take_the_newest_nvcc_that_is_not_newer():
    made = plan(kernel(stable="2.9", devices=(), components=CLASSIC), backends=["cuda"])
    assert [(name, str(v.nvcc), v.toolkit) for name, v in zip(names(made), made.variants, strict=True)] == [
        ("torch-stable-abi29-cu126", "12.4", None),
        ("torch-stable-abi29-cu130", "13.0", None),
        ("torch28-cxx11-cu126", "12.4", None),
    ]
    assert made.variants[0].archs == {"kernel.launch": archs("8.0 9.0+PTX")}


def test_a_build_without_any_nvcc_says_which_there_are():
    with pytest.raises(NothingSelectedError) as caught:
        plan(kernel(stable="2.9", devices=(), components=CLASSIC), cuda=["13.0"], nvccs=[version("12.4")])
    assert "no nvcc for CUDA 13.0 can be had; there are 12.4" in caught.value.detail


def test_an_nvcc_older_than_the_kernels_bound_is_not_used():
    classic = kernel(stable="2.9", devices=(), components=CLASSIC, cuda_minver=version("12.6"))
    made = plan(classic, backends=["cuda"])
    assert names(made) == ["torch-stable-abi29-cu130"]
    with pytest.raises(NothingSelectedError) as caught:
        plan(classic, cuda=["12.6"])
    assert "no nvcc for CUDA 12.6 that is not older than 12.6 can be had; there are 12.4" in caught.value.detail
    made = plan(classic, cuda=["12.6"], nvccs=[version("12.4"), version("12.6")])
    assert {str(variant.nvcc) for variant in made.variants} == {"12.6"}


def test_sources_without_a_common_architecture_are_explained():
    a, b = (Device(name=name, source=f"{name}.cu", capabilities=archs(c)) for name, c in (("a", "8.0"), ("b", "9.0a")))
    with pytest.raises(NothingSelectedError) as caught:
        plan(kernel(stable="2.9", devices=(a, b)), backends=["cuda"])
    assert "no GPU runs all of device a, device b" in caught.value.detail
    broken = Component(key="c", backend="cuda", depends=("cutlass_4_0",), sources=("c.cpp",))
    with pytest.raises(SpecError, match="cutlass_4_0 is valid, but not provided"):
        plan(kernel(stable="2.9", devices=(a, b), components=(broken,)), backends=["cuda"])


def test_a_binding_for_the_stable_abi_alone_has_no_full_abi():
    """Such a binding includes torch's stable headers itself, and does not compile with those of ATen."""
    foreign = kernel(stable="2.10", sources={"build.toml": "00"})
    made = plan(foreign)
    assert {variant.stable for variant in made.variants} == {True}
    assert [note for note in notes(made) if "full ABI" in note] == [
        f"demo: backend {name}: not with the full ABI, since the binding does not speak to torch through kb/torch.h"
        for name in ("cpu", "cuda")
    ]
    with pytest.raises(NothingSelectedError, match="0 were possible"):
        plan(foreign, strategy="full")
    mixed = kernel(torch={"stable_abi": {"cuda": version("2.10")}}, sources={"build.toml": "00"})
    assert {variant.stable for variant in plan(mixed, backends=["cpu"]).variants} == {False}


@pytest.mark.parametrize(
    ("change", "where", "message"),
    [
        (
            {"torch": {"sources": ("torch-ext/binding.cpp", "torch-ext/more.cu")}},
            "torch.src[1]",
            "more.cu is CUDA code, and a binding is C++",
        ),
        (
            {"components": (Component(key="a", backend="cuda", depends=("cutlass_3_9",), sources=("a.cpp",)),)},
            "kernel.a.depends",
            "cutlass_3_9 is valid, but not provided",
        ),
        (
            {"components": (replace(CLASSIC[1], sources=("a.cpp",), cuda_capabilities=archs("8.0")),)},
            "kernel.launch.cuda-capabilities",
            "cuda-capabilities is for .cu sources",
        ),
        ({"components": (replace(CLASSIC[1], backend="cpu"),)}, "kernel.launch.src", "cannot have .cu sources"),
        ({"framework": "tvm-ffi"}, "tvm-ffi", "not built by this version"),
    ],
)
def test_what_this_version_cannot_build_is_refused_before_anything_is_built(change, where, message):
    with pytest.raises(SpecError, match=message) as caught:
        plan(kernel(stable="2.9", **change))
    assert caught.value.where == f"/kernels/demo/build.toml: {where}"


def test_components_that_need_a_newer_cuda_are_left_out():
    components = (
        Component(key="host", backend="cpu", depends=(), sources=("a.cpp",)),
        Component(key="launch", backend="cuda", depends=(), sources=("b.cpp",)),
        Component(key="newer", backend="cuda", depends=(), sources=("c.cpp",), cuda_minver=version("13.0")),
    )
    made = plan(kernel(stable="2.9", components=components), only=["*stable*"])
    assert [[component.key for component in variant.components] for variant in made.variants] == [
        ["host"],
        ["launch"],
        ["launch", "newer"],
    ]


def test_only_what_a_version_lacks_is_planned():
    demo = kernel(stable=None, backends=("cpu",))
    there = [Offer(name=f"torch{torch}-cxx11-cpu-x86_64-linux", backend="cpu") for torch in ("28", "29")]
    assert names(plan(demo, existing={"demo": there})) == ["torch210-cxx11-cpu"]
    assert names(plan(demo, existing={"demo": there}, strategy="full")) == ["torch210-cxx11-cpu"]


def test_machine_code_is_missing_where_there_is_only_ptx():
    demo = kernel(stable="2.9", backends=("cuda",), capabilities="8.0 9.0 12.0")
    ptx = Offer(name="torch-stable-abi28-cu126-x86_64-linux", backend="cuda", devices=(archs("8.0 9.0 9.0+PTX"),))
    other = Offer(name="torch-stable-abi28-cu130-x86_64-linux", backend="cuda", devices=(archs("8.0 8.0+PTX"),))
    assert names(plan(demo, existing={"demo": [ptx, other]})) == ["torch-stable-abi29-cu130"]


def test_a_version_that_lacks_nothing_says_so():
    demo = kernel(stable="2.9", backends=("cpu",))
    there = [Offer(name="torch-stable-abi28-cpu-x86_64-linux", backend="cpu")]
    with pytest.raises(NothingSelectedError, match="Nothing is missing") as caught:
        plan(demo, existing={"demo": there})
    assert caught.value.exit_code == 3


def test_json_is_plain_and_stable():
    made = plan(kernel(stable="2.9"), cuda=["13.0"])
    data = json.loads(json.dumps(made.to_json()))
    assert data["version"] == 1
    assert data["variants"] == [
        {
            "kernel": "demo",
            "version": 1,
            "variant": "torch-stable-abi29-cu130-x86_64-linux",
            "backend": "cuda",
            "id": f"_demo_cuda_{uid(kernel(stable='2.9'), 'cuda')}",
            "sdk": "2.10",
            "target": "2.9",
            "toolkit": "13.0",
            "nvcc": None,
            "archs": {"op": ["8.0"]},
        }
    ]


def test_order_of_kernels_and_names_does_not_depend_on_the_arguments():
    pair = [kernel("b", stable="2.9"), kernel("a", stable="2.9")]
    assert plan(*pair) == plan(*reversed(pair))
    with pytest.raises(UsageError, match="one name"):
        plan(kernel("a"), kernel("a"))


def test_feature_architectures_are_kept_apart():
    assert plan(kernel(stable="2.9", capabilities="9.0a"), cuda=["13.0"]).variants[0].archs == {
        "op": (Arch.parse("9.0a"),)
    }
