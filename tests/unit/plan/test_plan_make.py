"""make_plan: rows of a kernel, their order, and why something is not planned."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest
from plan_samples import SMALL_MATRIX, archs, kernel, version

from kernel_builder.errors import NothingSelectedError, SpecError, UsageError
from kernel_builder.plan.matrix import parse
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection
from kernel_builder.spec.identity import uid
from kernel_builder.spec.model import Component, Device
from kernel_loader.format.archs import Arch

SMALL = parse(SMALL_MATRIX)


def plan(*kernels, matrix=SMALL, cuda_archs=None, **words):
    return make_plan(kernels, selection=Selection.parse(**words), cuda_archs=cuda_archs, matrix=matrix)


def names(made) -> list[str]:
    return [str(variant.variant).removesuffix("-x86_64-linux") for variant in made.variants]


def notes(made) -> list[str]:
    return [str(note).replace("-x86_64-linux", "") for note in made.notes]


def test_the_default_plan_of_a_stable_kernel():
    made = make_plan([kernel()], selection=Selection())
    assert [variant.label for variant in made.variants] == [
        "demo/torch-stable-abi210-cpu-x86_64-linux",
        "demo/torch-stable-abi210-cu128-x86_64-linux",
        "demo/torch-stable-abi210-cu130-x86_64-linux",
        "demo/torch213-cxx11-cpu-x86_64-linux",
    ]
    assert made.notes == ()


def test_what_a_variant_plan_says():
    demo = kernel()
    variant = make_plan([demo], selection=Selection(), cuda_archs=None).variants[1]
    assert (variant.backend, variant.stable, variant.sdk, variant.toolkit) == (
        "cuda",
        True,
        version("2.10"),
        version("12.8"),
    )
    assert variant.uid == uid(demo, "cuda")
    assert variant.archs == {"op": archs("8.0")}
    assert [component.key for component in variant.components] == ["launch"]


def test_the_oldest_stable_row_that_is_new_enough_is_used():
    assert names(plan(kernel(stable="2.9"), cuda=["12.6", "13.0"])) == [
        "torch-stable-abi212-cu130",
        "torch-stable-abi29-cu126",
        "torch29-cxx11-cu126",
    ]
    assert names(plan(kernel(stable="2.10"), only=["*stable*"])) == [
        "torch-stable-abi212-cpu",
        "torch-stable-abi212-cu126",
        "torch-stable-abi212-cu130",
    ]


def test_a_backend_without_stable_abi_uses_full_rows_only():
    mixed = kernel(torch={"stable_abi": {"cuda": version("2.9")}})
    assert names(plan(mixed, backends=["cpu"])) == ["torch210-cxx11-cpu", "torch29-cxx11-cpu"]
    assert names(plan(kernel(stable=None))) == ["torch210-cxx11-cpu", "torch29-cxx11-cpu", "torch29-cxx11-cu126"]


def test_a_stable_abi_newer_than_every_row_is_an_error():
    with pytest.raises(SpecError, match=r"stable ABI of torch 2\.13 is newer than every stable row") as caught:
        plan(kernel(stable="2.13"))
    assert caught.value.where == "/kernels/demo/build.toml: torch.stable-abi"
    assert caught.value.hint == "stable rows for cu126: 2.9, 2.12"


def test_a_backend_that_no_row_builds_is_noted():
    made = plan(kernel(backends=("cpu", "rocm")))
    assert notes(made) == ["demo: backend rocm: not built by this version"]
    assert notes(make_plan([kernel(stable=None)], selection=Selection())) == [
        "demo: backend cuda: no row has it with the full ABI"
    ]


@pytest.mark.parametrize(
    ("bounds", "expected", "reason"),
    [
        (
            {"torch": {"minver": version("2.10")}},
            ["torch-stable-abi212-cpu", "torch-stable-abi212-cu126", "torch-stable-abi212-cu130", "torch210-cxx11-cpu"],
            "demo/torch29-cxx11-cpu: not built: torch.minver is 2.10",
        ),
        (
            {"torch": {"maxver": version("2.9")}},
            ["torch-stable-abi29-cu126", "torch29-cxx11-cpu", "torch29-cxx11-cu126"],
            "demo/torch-stable-abi212-cu130: not built: torch.maxver is 2.9",
        ),
        (
            {"cuda_minver": version("12.8"), "backends": ("cuda",)},
            ["torch-stable-abi212-cu130"],
            "demo/torch29-cxx11-cu126: not built: general.cuda.minver is 12.8",
        ),
        (
            {"cuda_maxver": version("12.9"), "backends": ("cuda",)},
            ["torch-stable-abi29-cu126", "torch29-cxx11-cu126"],
            "demo/torch-stable-abi212-cu130: not built: general.cuda.maxver is 12.9",
        ),
    ],
)
def test_version_bounds_of_the_kernel_exclude_rows_and_say_so(bounds, expected, reason):
    made = plan(kernel(stable="2.9", **bounds))
    assert names(made) == expected
    assert reason in notes(made)


def test_a_row_whose_toolkit_knows_no_asked_architecture_is_left_out():
    made = plan(kernel(stable="2.9", capabilities="12.0"), backends=["cuda"])
    assert names(made) == ["torch-stable-abi212-cu130"]
    assert notes(made) == [
        "demo/torch29-cxx11-cu126: device op: 12.0: unknown to CUDA 12.6",
        "demo/torch29-cxx11-cu126: not built: CUDA 12.6 knows no architecture of device op",
        "demo/torch-stable-abi29-cu126: device op: 12.0: unknown to CUDA 12.6",
        "demo/torch-stable-abi29-cu126: not built: CUDA 12.6 knows no architecture of device op",
    ]


def test_architectures_are_chosen_per_device():
    two = kernel(
        devices=(
            Device(name="a", source="csrc/a.cu", capabilities=archs("8.0 9.0a 12.0+PTX")),
            Device(name="b", source="csrc/b.cu"),
        )
    )
    made = plan(two, only=["*stable*cu1*"], cuda_archs="8.0;9.0")
    assert [variant.archs for variant in made.variants] == [
        {"a": archs("8.0 9.0a"), "b": archs("8.0 9.0a")},
        {"a": archs("8.0 9.0a"), "b": archs("8.0")},
    ]


def test_the_environments_list_cannot_change_what_a_kernel_asks_for(monkeypatch):
    """B011: only the argument counts, it never adds, and it never empties."""
    monkeypatch.setenv("TORCH_CUDA_ARCH_LIST", "7.5")
    asked = kernel(capabilities="8.0 9.0a")
    assert plan(asked, cuda=["13.0"]).variants[0].archs == {"op": archs("8.0 9.0a")}

    made = plan(asked, cuda=["13.0"], cuda_archs=os.environ["TORCH_CUDA_ARCH_LIST"])
    assert made.variants[0].archs == {"op": archs("8.0 9.0a")}
    assert notes(made) == [
        "demo/torch-stable-abi212-cu130: device op: TORCH_CUDA_ARCH_LIST names none of 8.0, 9.0a and does not narrow it"
    ]


def test_without_gpu_and_without_a_list_the_defaults_are_planned(monkeypatch):
    """B012: nothing asks for a device."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    made = make_plan([kernel(capabilities=None)], selection=Selection.parse(cuda=["12.8"]))
    assert made.variants[0].archs == {"op": archs("8.0 9.0a 10.0 12.0 12.0+PTX")}


def test_a_malformed_list_is_refused_even_for_cpu():
    with pytest.raises(UsageError, match="not a GPU architecture"):
        plan(kernel(), backends=["cpu"], cuda_archs="sm_90")


def test_labels_are_unique_and_ordered_whatever_the_order_of_kernels():
    kernels = [kernel("bb"), kernel("aa"), kernel("cc-d")]
    made = plan(*kernels)
    labels = [variant.label for variant in made.variants]
    assert labels == sorted(set(labels))
    assert plan(*reversed(kernels)).to_json() == made.to_json()


def test_two_kernels_of_one_name_are_refused():
    with pytest.raises(UsageError, match="one name"):
        plan(kernel(), kernel())


def test_no_kernel_is_nothing_selected():
    with pytest.raises(NothingSelectedError, match="0 were offered"):
        plan()


def test_json_is_plain_and_stable():
    made = plan(kernel(stable="2.9", capabilities="8.0 12.0+PTX"), only=["*stable*cu130*"], cuda_archs="12.0")
    assert json.loads(json.dumps(made.to_json())) == {
        "version": 1,
        "variants": [
            {
                "kernel": "demo",
                "version": 1,
                "variant": "torch-stable-abi212-cu130-x86_64-linux",
                "backend": "cuda",
                "id": f"_demo_cuda_{uid(kernel(), 'cuda')}",
                "sdk": "2.12",
                "toolkit": "13.0",
                "archs": {"op": ["12.0"]},
            }
        ],
        "notes": [
            "demo/torch-stable-abi212-cu130-x86_64-linux: device op: 8.0: not in TORCH_CUDA_ARCH_LIST",
            "demo/torch-stable-abi212-cu130-x86_64-linux: device op: 12.0+PTX: not in TORCH_CUDA_ARCH_LIST",
        ],
    }


@pytest.mark.parametrize("framework", ["torch-noarch", "tvm-ffi"])
def test_frameworks_that_are_not_built_are_refused(framework):
    with pytest.raises(SpecError, match="valid, but not built by this version") as caught:
        plan(kernel(framework=framework))
    assert caught.value.where == f"/kernels/demo/build.toml: {framework}"


@pytest.mark.parametrize(
    ("change", "message", "where"),
    [
        ({"sources": ("csrc/old.cu",)}, r"csrc/old\.cu needs nvcc", "kernel.launch.src[0]"),
        ({"cuda_flags": ("-O3",)}, r"cuda-flags is for \.cu sources", "kernel.launch.cuda-flags"),
        (
            {"cuda_capabilities": (Arch.parse("9.0"),)},
            r"cuda-capabilities is for \.cu sources",
            "kernel.launch.cuda-capabilities",
        ),
        ({"depends": ("torch", "cutlass_4_0")}, "cutlass_4_0 is valid, but not provided", "kernel.launch.depends"),
    ],
)
def test_components_that_this_version_cannot_build_are_refused(change, message, where):
    demo = kernel()
    broken = replace(demo, components=(demo.components[0], replace(demo.components[1], **change)))
    with pytest.raises(SpecError, match=message) as caught:
        plan(broken)
    assert caught.value.where == f"/kernels/demo/build.toml: {where}"
    assert plan(broken, backends=["cpu"]).variants, "other backends can still be built"


def test_a_component_for_newer_cuda_is_left_out_of_older_variants():
    newer = Component(key="newer", backend="cuda", depends=(), sources=("a.cpp",), cuda_minver=version("12.8"))
    demo = kernel()
    made = plan(replace(demo, components=(*demo.components, newer)), only=["*stable*"])
    assert [[component.key for component in variant.components] for variant in made.variants] == [
        ["host"],
        ["launch"],
        ["launch", "newer"],
    ]
