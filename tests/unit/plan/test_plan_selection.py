"""Selecting rows by version, backend and pattern; what names nothing is refused with the nearest name."""

from __future__ import annotations

import pytest
from plan_samples import kernel, version

from kernel_builder.errors import NothingSelectedError, UsageError
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection, expand, matches

CPU = "torch-stable-abi27-cpu-x86_64-linux"
CU126 = "torch-stable-abi27-cu126-x86_64-linux"
CU128 = "torch-stable-abi27-cu128-x86_64-linux"
CU130 = "torch-stable-abi27-cu130-x86_64-linux"
CU132 = "torch-stable-abi27-cu132-x86_64-linux"


def selected(strategy="cover", **words) -> list[str]:
    demo = kernel(stable="2.9", capabilities="8.0 12.0")
    plan = make_plan([demo], selection=Selection.parse(**words), strategy=strategy)
    return [str(variant.variant) for variant in plan.variants]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, [CPU, CU126, CU128, CU130]),
        ({"torch": ["2.10"]}, [CPU, CU126, CU128, CU130]),
        ({"torch": ["2.15"]}, [CPU, CU126, CU130]),
        ({"torch": ["2.10,2.13"], "backends": ["cpu"]}, [CPU]),
        ({"torch": ["2.13.0"]}, [CPU, CU126, CU130]),
        ({"cuda": ["12.8"]}, [CU128]),
        ({"cuda": ["12.9"]}, [CU128]),
        ({"cuda": ["13.2"]}, [CU130]),
        ({"cuda": ["12.8", "13.0"]}, [CU128, CU130]),
        ({"cuda": ["12.8"], "backends": ["cpu,cuda"]}, [CPU, CU128]),
        ({"backends": ["cpu"]}, [CPU]),
        ({"only": ["*cu130*"]}, [CU130]),
        ({"only": ["torch-*-{cpu,cu128}-*"]}, [CPU, CU128]),
        ({"only": ["demo/*cu13?-*"]}, [CU130]),
        ({"only": ["*-cpu-*", "*cu13*"]}, [CPU, CU130]),
        ({"only": ["*cu132*"]}, [CU132]),
        ({"skip": ["*-cu*"]}, [CPU]),
        ({"only": ["*-cu*"], "skip": ["*cu130*"]}, [CU126, CU128]),
    ],
)
def test_what_is_selected(words, expected):
    assert selected(**words) == expected


def test_in_the_full_matrix_torch_and_cuda_are_those_of_the_variants():
    assert selected("full", torch=["2.9"], cuda=["12.8"]) == ["torch29-cxx11-cu128-x86_64-linux"]
    assert selected("full", torch=["2.11"], backends=["cpu", "cuda"], only=["*-cu1*"]) == [
        "torch211-cxx11-cu126-x86_64-linux",
        "torch211-cxx11-cu128-x86_64-linux",
        "torch211-cxx11-cu130-x86_64-linux",
    ]


@pytest.mark.parametrize(
    ("words", "message", "where", "hint"),
    [
        ({"torch": ["2.1"]}, "torch 2.1 is not in the matrix", "--torch", "did you mean '2.1"),
        ({"torch": ["3.9"]}, "torch 3.9 is not in the matrix", "--torch", "did you mean '2.9'"),
        ({"torch": ["new"]}, "'new' is not a version", "--torch", ""),
        ({"torch": ["2.10;"]}, "'2.10;' is not a version", "--torch", ""),
        ({"cuda": ["12.4"]}, "CUDA 12.4 is not in the matrix", "--cuda", "did you mean '12."),
        ({"cuda": ["128"]}, "'128' is not a version", "--cuda", ""),
        ({"backends": ["cud"]}, "backend 'cud' is not known", "--backend", "did you mean 'cuda'?"),
        ({"backends": ["rocm"]}, "backend 'rocm' is not built by this version", "--backend", "known are cpu, cuda"),
        ({"only": ["*cu131*"]}, "pattern '\\*cu131\\*' matches no variant", "--only", ""),
        ({"skip": [CU128 + "x"]}, "matches no variant", "--skip", f"did you mean '{CU128}'?"),
        ({"only": ["dmo/" + CU128]}, "matches no variant", "--only", f"did you mean 'demo/{CU128}'?"),
        ({"only": ["{a,b,c,d}" * 8]}, "too many patterns", "", "use *"),
    ],
)
def test_what_names_nothing_is_a_usage_error(words, message, where, hint):
    with pytest.raises(UsageError, match=message) as caught:
        selected(**words)
    assert caught.value.exit_code == 2
    assert caught.value.where == where
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    "words",
    [
        {"torch": ["2.7"], "cuda": ["13.0"]},
        {"only": ["*cu130*"], "skip": ["*cu13*"]},
        {"backends": ["cpu"], "only": ["*cu128*"]},
    ],
)
def test_a_selection_of_nothing_has_its_own_exit_code(words):
    with pytest.raises(NothingSelectedError, match="No variant is left to build; 6 were possible") as caught:
        selected(**words)
    assert caught.value.exit_code == 3
    assert f"demo/{CU130}" in caught.value.detail


def test_versions_are_compared_as_numbers():
    """B021: 2.10 is neither 2.1 nor older than 2.9."""
    assert Selection.parse(torch=["2.10, 2.9"]).torch == (version("2.10"), version("2.9"))
    assert version("2.9") < version("2.10")


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("a", ["a"]),
        ("{a,b}c", ["ac", "bc"]),
        ("{a,b}{c,d}", ["ac", "ad", "bc", "bd"]),
        ("x{a,{b,c}}", ["xa", "xb", "xc"]),
        ("{a", ["{a"]),
        ("a}{b", ["a}{b"]),
        ("{,x}y", ["xy", "y"]),
    ],
)
def test_braces(pattern, expected):
    assert expand(pattern) == expected


def test_a_pattern_without_slash_is_about_the_variant():
    assert matches("torch*", "demo/torch213-cxx11-cpu-x86_64-linux")
    assert not matches("demo*", "demo/torch213-cxx11-cpu-x86_64-linux")
    assert matches("demo/*", "demo/torch213-cxx11-cpu-x86_64-linux")
