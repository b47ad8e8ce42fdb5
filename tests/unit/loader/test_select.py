"""Which variant is chosen, and the reasons for the others."""

from __future__ import annotations

import random

import pytest

from kernel_loader.environment import Environment
from kernel_loader.format.archs import Arch
from kernel_loader.format.metadata import Metadata
from kernel_loader.select import refine, select


def env(torch="2.12.0", cuda="12.8", **values):
    return Environment.from_dict({"torch": torch, "cuda": cuda, **values})


def names(*cuda, torch="212-cxx11"):
    return [f"torch{torch}-cu{version}-x86_64-linux" for version in cuda]


def best(variants, environment, backend=None):
    decision = select(variants, environment, backend).best
    return decision and decision.name


def reason(name, environment, backend=None):
    (decision,) = select([name], environment, backend).decisions
    return decision.reason


@pytest.mark.parametrize(
    ("cuda", "offered", "chosen"),
    [("12.8", [126, 128, 129, 130], 128), ("12.8", [126], 126), ("12.8", [129], None), ("13.0", [128], None)],
)
def test_cuda_minor_versions_are_compatible_in_one_direction(cuda, offered, chosen):
    expected = chosen and names(chosen)[0]
    for _ in range(50):
        shuffled = random.sample(names(*offered), len(offered))
        assert best(shuffled, env(cuda=cuda)) == expected


def test_the_order_of_preference_has_no_ties():
    ordered = [
        "torch-stable-abi211-cu128-x86_64-linux",
        "torch-stable-abi211-cu126-x86_64-linux",
        "torch-stable-abi29-cu126-x86_64-linux",
        "torch212-cu126-x86_64-linux",
        "torch212-cxx11-cu128-x86_64-linux",
        "torch212-cxx11-cu126-x86_64-linux",
        "tvm-ffi01-cu120-x86_64-linux",
        "torch-cuda",
        "torch-universal",
    ]
    environment = env(tvm_ffi="0.1")
    for _ in range(50):
        selection = select(random.sample(ordered, len(ordered)), environment)
        assert [decision.name for decision in selection.decisions] == ordered
        assert all(decision.accepted for decision in selection.decisions)


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("torch212-cxx11-cu128-x86_64-linux", {}, ""),
        ("torch212-cxx11-cu128-x86_64-windows", {}, "os"),
        ("torch212-cxx11-cu128-aarch64-linux", {}, "cpu"),
        ("torch211-cxx11-cu128-x86_64-linux", {}, "torch-version"),
        ("torch212-cxx98-cu128-x86_64-linux", {}, "cxx-abi"),
        ("torch212-cxx98-cu128-x86_64-linux", {"cxx11": False}, ""),
        ("torch212-cxx11-cu128-x86_64-linux", {"cxx11": False}, "cxx-abi"),
        ("torch-stable-abi212-cu128-x86_64-linux", {}, ""),
        ("torch-stable-abi213-cu128-x86_64-linux", {}, "stable-abi-newer"),
        ("torch-stable-abi210-cu128-x86_64-linux", {"torch": "3.0.0"}, "stable-abi-major"),
        ("torch-stable-abi29-cu128-x86_64-linux", {"torch": "2.10.0"}, ""),
        ("torch-stable-abi210-cu128-x86_64-linux", {"torch": "2.9.1"}, "stable-abi-newer"),
        ("torch212-cxx11-cu118-x86_64-linux", {}, "cuda-major"),
        ("torch212-cxx11-cu129-x86_64-linux", {}, "cuda-minor"),
        ("torch212-cxx11-cpu-x86_64-linux", {}, "backend"),
        ("torch-cpu", {}, "backend"),
        ("torch-cuda", {}, ""),
        ("torch-universal", {}, ""),
        ("tvm-ffi01-cu128-x86_64-linux", {}, "tvm-ffi"),
        ("torch-stable-abi3x-cu128-x86_64-linux", {}, "unknown-name"),
    ],
)
def test_reasons(name, values, expected):
    assert reason(name, env(**values)) == expected


def test_without_torch():
    bare = Environment(torch=None)
    assert reason("torch212-cxx11-cpu-x86_64-linux", bare) == "no-torch"
    assert reason("torch-stable-abi29-cpu-x86_64-linux", bare) == "no-torch"


@pytest.mark.parametrize(("python", "expected"), [("3.13", "free-threaded"), ("3.14", "free-threaded"), ("3.15", "")])
def test_free_threaded_python_below_3_15_takes_python_only_kernels(python, expected):
    environment = env(python=python, free_threaded=True)
    assert reason("torch-stable-abi29-cu128-x86_64-linux", environment) == expected
    assert reason("torch-cuda", environment) == ""


def test_the_cpu_backend_on_a_cuda_torch():
    variants = ["torch-stable-abi29-cu128-x86_64-linux", "torch-stable-abi29-cpu-x86_64-linux"]
    assert best(variants, env()) == variants[0]
    assert best(variants, env(), "cpu") == variants[1]


@pytest.mark.parametrize(
    ("name", "values", "expected"),
    [
        ("torch212-cxx11-rocm72-x86_64-linux", {"backend": "rocm", "backend_version": "7.2"}, ""),
        ("torch212-cxx11-rocm71-x86_64-linux", {"backend": "rocm", "backend_version": "7.2"}, "backend-version"),
        ("torch212-cxx11-xpu20253-x86_64-linux", {"backend": "xpu", "backend_version": "2025.3"}, ""),
        ("torch-npu", {"backend": "cann", "backend_version": "8.5"}, ""),
        ("torch-cuda", {"backend": "cann"}, "backend"),
        ("torch212-metal-aarch64-darwin", {"backend": "metal", "os": "darwin", "cpu": "aarch64", "macos": "26.1"}, ""),
        (
            "torch212-metal-aarch64-darwin",
            {"backend": "metal", "os": "darwin", "cpu": "aarch64", "macos": "15.3"},
            "macos",
        ),
    ],
)
def test_other_backends(name, values, expected):
    assert reason(name, Environment.from_dict({"torch": "2.12.0", **values})) == expected


def test_rejections_come_nearest_first():
    variants = [
        "torch212-cxx11-cu128-x86_64-windows",
        "torch210-cxx11-cu128-x86_64-linux",
        "torch211-cxx11-cu128-x86_64-linux",
        "torch212-cxx11-cu130-x86_64-linux",
        "torch212-cxx11-cu132-x86_64-linux",
        "torch212-cxx11-cu129-x86_64-linux",
        "what-is-this",
    ]
    ordered = [decision.name for decision in select(variants, env()).decisions]
    assert ordered == [variants[index] for index in (5, 3, 4, 2, 1, 0, 6)]


def metadata(**values):
    archs = tuple(Arch.parse(text) for text in values.pop("archs", ()))
    return Metadata(
        **{"name": "toy", "id": "_toy", "version": 1, "license": "", "backend": "cuda", "archs": archs, **values}
    )


def refined(environment, of, **arguments):
    selection = select(of, environment)
    return refine(selection, of.__getitem__, environment, **arguments)


def test_metadata_is_read_only_until_a_variant_stands():
    variants, read = ["torch-cuda", "torch-stable-abi29-cu128-x86_64-linux", "torch-universal"], []
    environment = env(capabilities=["9.0"])

    def reader(name):
        read.append(name)
        return metadata(archs=["10.0"] if name.startswith("torch-stable") else [])

    selection = refine(select(variants, environment), reader, environment)
    assert selection.best.name == "torch-cuda"
    assert read == [variants[1], variants[0]]
    assert selection.decisions[-1].reason == "arch"


@pytest.mark.parametrize(
    ("capabilities", "archs", "fits"),
    [
        (["9.0"], ["8.0", "9.0a"], True),
        (["10.0"], ["8.0", "9.0a"], False),
        (["10.0", "9.0"], ["9.0a"], True),
        (["10.0"], ["9.0+PTX"], True),
        ([], ["9.0a"], True),
        (["9.0"], [], True),
    ],
)
def test_archs_against_the_visible_gpus(capabilities, archs, fits):
    environment = env(capabilities=capabilities)
    selection = refined(environment, {"torch-cuda": metadata(archs=archs)})
    assert (selection.best is not None) == fits
    assert refined(environment, {"torch-cuda": metadata(archs=archs)}, check_arch=False).best is not None


@pytest.mark.parametrize(
    ("floors", "fits"),
    [
        ({"glibc": "2.17"}, True),
        ({"glibc": "2.28"}, True),
        ({"glibc": "2.34"}, False),
        ({"glibcxx": "3.4.30"}, True),
        ({"glibcxx": "3.4.32"}, False),
        ({"driver": "12.8"}, True),
        ({"driver": "13.0"}, False),
        ({"glibc": "new"}, False),
        ({"another": "9"}, True),
        ("nonsense", True),
    ],
)
def test_floors(floors, fits):
    environment = env(glibc="2.28", glibcxx="3.4.30", driver="12.9")
    assert (refined(environment, {"torch-cuda": metadata(builder={"floors": floors})}).best is not None) == fits


def test_floors_that_cannot_be_compared_do_not_reject():
    assert refined(env(), {"torch-cuda": metadata(builder={"floors": {"glibc": "9.9"}})}).best is not None
