"""Selecting rows by version, backend and pattern; what names nothing is refused with the nearest name."""

from __future__ import annotations

import pytest
from plan_samples import kernel, version

from kernel_builder.errors import NothingSelectedError, UsageError
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection, expand, matches

STABLE_CPU = "torch-stable-abi210-cpu-x86_64-linux"
STABLE_128 = "torch-stable-abi210-cu128-x86_64-linux"
STABLE_130 = "torch-stable-abi210-cu130-x86_64-linux"
FULL_CPU = "torch213-cxx11-cpu-x86_64-linux"


def selected(**words) -> list[str]:
    plan = make_plan([kernel()], selection=Selection.parse(**words))
    return [str(variant.variant) for variant in plan.variants]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({}, [STABLE_CPU, STABLE_128, STABLE_130, FULL_CPU]),
        ({"torch": ["2.10"]}, [STABLE_CPU, STABLE_128, STABLE_130]),
        ({"torch": ["2.13"]}, [FULL_CPU]),
        ({"torch": ["2.10,2.13"], "backends": ["cpu"]}, [STABLE_CPU, FULL_CPU]),
        ({"torch": ["2.13.0"]}, [FULL_CPU]),
        ({"cuda": ["12.8"]}, [STABLE_128]),
        ({"cuda": ["12.8", "13.0"]}, [STABLE_128, STABLE_130]),
        ({"cuda": ["12.8"], "backends": ["cpu,cuda"]}, [STABLE_CPU, STABLE_128, FULL_CPU]),
        ({"backends": ["cpu"]}, [STABLE_CPU, FULL_CPU]),
        ({"only": ["*cu130*"]}, [STABLE_130]),
        ({"only": ["torch-*-{cpu,cu128}-*"]}, [STABLE_CPU, STABLE_128]),
        ({"only": ["demo/*cu13?-*"]}, [STABLE_130]),
        ({"only": ["*-cpu-*", "*cu13*"]}, [STABLE_CPU, STABLE_130, FULL_CPU]),
        ({"skip": ["*-cu*"]}, [STABLE_CPU, FULL_CPU]),
        ({"only": ["*-cu*"], "skip": ["*cu130*"]}, [STABLE_128]),
    ],
)
def test_what_is_selected(words, expected):
    assert selected(**words) == expected


@pytest.mark.parametrize(
    ("words", "message", "where", "hint"),
    [
        ({"torch": ["2.1"]}, "torch 2.1 is not in the matrix", "--torch", "known are 2.10, 2.13"),
        ({"torch": ["new"]}, "'new' is not a version", "--torch", ""),
        ({"torch": ["2.10;"]}, "'2.10;' is not a version", "--torch", ""),
        ({"cuda": ["12.4"]}, "CUDA 12.4 is not in the matrix", "--cuda", "known are 12.8, 13.0"),
        ({"cuda": ["128"]}, "'128' is not a version", "--cuda", ""),
        ({"backends": ["cud"]}, "backend 'cud' is not known", "--backend", "did you mean 'cuda'?"),
        ({"backends": ["rocm"]}, "backend 'rocm' is not built by this version", "--backend", "known are cpu, cuda"),
        ({"only": ["*cu129*"]}, "pattern '\\*cu129\\*' matches no variant", "--only", ""),
        ({"skip": [STABLE_128 + "x"]}, "matches no variant", "--skip", f"did you mean '{STABLE_128}'?"),
        ({"only": ["dmo/" + STABLE_128]}, "matches no variant", "--only", f"did you mean 'demo/{STABLE_128}'?"),
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
        {"torch": ["2.13"], "cuda": ["13.0"]},
        {"only": ["*cu130*"], "skip": ["*cu13*"]},
        {"backends": ["cpu"], "only": ["*cu128*"]},
    ],
)
def test_a_selection_of_nothing_has_its_own_exit_code(words):
    with pytest.raises(NothingSelectedError, match="No variant is left to build; 4 were offered") as caught:
        selected(**words)
    assert caught.value.exit_code == 3
    assert f"demo/{STABLE_130}" in caught.value.detail


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
