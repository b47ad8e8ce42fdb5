"""Sources in the style of HF's kernel-builder find the header and the macros that they expect; others get none."""

from __future__ import annotations

import pytest
from classic_kernel import BUILD, CPU, FULL, Classic

from kernel_builder.resources import templates

NAME = "-DTORCH_EXTENSION_NAME="
NO_BINDING = {"torch-ext/binding.cpp": '#include "kb/torch.h"\n'}


def words(unit, start: str) -> list[str]:
    return [word for word in unit.argv if word.startswith(start)]


def test_a_binding_with_the_header_is_told_its_backend_and_its_name(tmp_path):
    classic = Classic(tmp_path)
    plans = classic.variant(FULL.format("213")), classic.variant(CPU)
    cuda, cpu = (units["torch-ext/binding.cpp"] for units in classic.units(*plans))

    assert words(cuda, NAME) == [f"{NAME}{plans[0].op_id}"]
    assert words(cpu, NAME) == [f"{NAME}{plans[1].op_id}"]
    assert {"-DCUDA_KERNEL", "-DUSE_CUDA"} <= {*cuda.argv}
    assert "-DCPU_KERNEL" in cpu.argv
    assert "-DUSE_CUDA" not in cpu.argv
    assert cuda.places["registration"] == str(templates() / "build" / "include")


def test_components_are_told_the_backend_but_not_the_name_unless_they_use_it(tmp_path):
    units = Classic(tmp_path, files={"csrc/seeing.cu": "TORCH_LIBRARY_IMPL(TORCH_EXTENSION_NAME, CUDA, m) {}"}).units()[
        0
    ]

    assert {"-DCUDA_KERNEL", "-DENABLE_FP8"} <= {*units["csrc/plain.cu"].argv}
    assert "-DENABLE_FP8" not in units["csrc/host.cpp"].argv
    assert not words(units["csrc/plain.cu"], NAME)
    assert words(units["csrc/seeing.cu"], NAME)


def test_a_changed_python_file_compiles_the_binding_again_and_no_cuda_source(tmp_path):
    before = Classic(tmp_path).units()[0]
    after = Classic(tmp_path, files={"torch-ext/classic/__init__.py": "__all__ = ['x']\n"}).units()[0]

    changed = {source for source in before if before[source].key != after[source].key}
    assert changed == {"torch-ext/binding.cpp", "identity", "link"}


def test_a_changed_header_of_ours_compiles_again(tmp_path):
    unit = Classic(tmp_path).units()[0]["torch-ext/binding.cpp"]

    assert unit.files["template include/registration.h"].path == templates() / "build" / "include" / "registration.h"


@pytest.mark.parametrize("source", ["torch-ext/binding.cpp", "csrc/plain.cu", "csrc/host.cpp"])
def test_kernels_without_the_header_get_none_of_it(tmp_path, source):
    unit = Classic(tmp_path, files=NO_BINDING).units()[0][source]

    assert not [
        word
        for word in unit.argv
        if "_KERNEL" in word or "FP8" in word or "registration" in word or "EXTENSION_NAME" in word
    ]


def test_a_binding_without_the_header_is_one_object_for_every_name(tmp_path):
    before = Classic(tmp_path, files=NO_BINDING).units()[0]
    after = Classic(tmp_path, files={**NO_BINDING, "torch-ext/classic/__init__.py": "__all__ = ['x']\n"}).units()[0]

    assert before["torch-ext/binding.cpp"].key == after["torch-ext/binding.cpp"].key
    assert before["identity"].key != after["identity"].key


def test_a_kernel_with_a_registration_header_of_its_own_keeps_it(tmp_path):
    files = {"csrc/registration.h": "#pragma once\n"}
    unit = Classic(tmp_path, build=BUILD, files=files).units()[0]["torch-ext/binding.cpp"]

    assert "-I@registration@" not in unit.argv
    assert "csrc/registration.h" in unit.files
