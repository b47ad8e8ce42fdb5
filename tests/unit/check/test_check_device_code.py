"""Architectures and resources of the GPU code inside a library."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from elf_writer import SharedObject, fatbin_section, write_cubin, write_fatbin, write_region
from variant_writer import CUDA, STABLE, codes, make_artefact, write_variant

from kernel_builder.check.check import check_artefact, check_variant
from kernel_builder.check.resources import resources
from kernel_builder.errors import CheckError

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.check.model import Finding


def region(arch: str, *, name: str = "", **cubin: int) -> bytes:
    """Code for ``8.0``, ``9.0a`` or ``12.0+PTX``."""
    bare = arch.removesuffix("+PTX")
    feature = bare[-1] if bare[-1] in "af" else ""
    sm = int(bare.rstrip("af").replace(".", ""))
    if arch.endswith("+PTX"):
        return write_region(sm, b".version 8.7\n", ptx=True, feature=feature, name=name)
    return write_region(sm, write_cubin(sm, feature=feature, **cubin), feature=feature, name=name)


def library(*fatbins: bytes) -> bytes:
    return SharedObject(imports=STABLE, extra=[fatbin_section(*fatbins)]).write()


def variant(
    folder: Path, fatbins: list[list[str]], declared: tuple[str, ...], *, own: bool = True
) -> tuple[Finding, ...]:
    data = library(*(write_fatbin(*map(region, archs)) for archs in fatbins))
    return check_variant(write_variant(folder, CUDA, library=data, archs=declared, own=own), imports=False)


@pytest.mark.parametrize(
    ("inside", "declared"),
    [
        (["8.0", "9.0a", "12.0", "12.0+PTX"], ("8.0", "9.0a", "12.0+PTX")),
        (["8.0", "9.0a", "9.0+PTX"], ("8.0", "9.0a", "9.0+PTX")),
        (["10.0f"], ("10.0f",)),
    ],
)
def test_declared_architectures_that_are_inside_pass(
    tmp_path: Path, inside: list[str], declared: tuple[str, ...]
) -> None:
    assert codes(variant(tmp_path, [inside], declared)) == []


@pytest.mark.parametrize(
    ("inside", "declared", "text"),
    [
        (["8.0"], ("8.0", "9.0a"), "machine code for 9.0a is promised but not inside"),
        (["8.0", "9.0"], ("8.0", "9.0a"), "machine code for 9.0a is promised but not inside"),
        (["8.0", "7.5"], ("8.0",), "machine code for 7.5 is inside but not promised"),
        (["8.0", "12.0"], ("8.0", "12.0+PTX"), "PTX for 12.0 is promised but not inside"),
        (["8.0", "8.0+PTX"], ("8.0",), "PTX for 8.0 is inside but not promised"),
        (["10.0"], ("10.0f",), "machine code for 10.0 is inside but not promised"),
    ],
)
def test_a_difference_is_named_in_either_direction(
    tmp_path: Path, inside: list[str], declared: tuple[str, ...], text: str
) -> None:
    findings = variant(tmp_path, [inside], declared)
    assert set(codes(findings)) == {"archs"}
    assert any(text in f.message for f in findings)


def test_our_variants_declare_what_every_image_serves(tmp_path: Path) -> None:
    assert codes(variant(tmp_path / "a", [["7.5", "8.0"], ["8.0"]], ("8.0",))) == []
    findings = variant(tmp_path / "b", [["7.5", "8.0"], ["8.0"]], ("7.5", "8.0"))
    assert [f.message for f in findings if f.severity == "error"] == [
        "metadata.json: machine code for 7.5 is promised but not inside."
    ]


def test_other_builders_declare_the_union(tmp_path: Path) -> None:
    assert codes(variant(tmp_path, [["8.0"], ["9.0a"]], ("8.0", "9.0a"), own=False)) == []


def test_a_cuda_variant_without_gpu_code_is_noticed(tmp_path: Path) -> None:
    path = write_variant(tmp_path, CUDA)
    assert [(f.code, f.severity) for f in check_variant(path, imports=False) if f.severity != "note"] == [
        ("archs", "warning")
    ]


def test_compressed_code_of_others_is_read_from_its_header(tmp_path: Path) -> None:
    packed = write_fatbin(write_region(90, b"\x28\xb5\x2f\xfd....", feature="a", compressed=True))
    path = write_variant(tmp_path, CUDA, library=library(packed), archs=("9.0a",), own=False)
    assert codes(check_variant(path, imports=False)) == []
    path = write_variant(tmp_path / "b", CUDA, library=library(packed), archs=("9.0",), own=False)
    assert codes(check_variant(path, imports=False)) == ["archs", "archs"]


@pytest.mark.parametrize(
    ("label", "feature", "sm", "inside"), [(80, "", 75, ""), (90, "", 90, "a"), (100, "", 100, "a")]
)
def test_a_label_that_lies_about_its_code_is_refused(
    tmp_path: Path, label: int, feature: str, sm: int, inside: str
) -> None:
    data = library(write_fatbin(write_region(label, write_cubin(sm, feature=inside), feature=feature)))
    declared = (f"{label // 10}.{label % 10}{feature}",)
    path = write_variant(tmp_path, CUDA, library=data, archs=declared)
    assert codes(check_variant(path, imports=False)) == ["fatbin-label"]


@pytest.mark.parametrize("spoil", [lambda d: d[:-20], lambda d: b"junk" + d, lambda d: d + b"x" * 40])
def test_a_damaged_fat_binary_is_a_finding(tmp_path: Path, spoil) -> None:
    data = library(spoil(write_fatbin(region("8.0"))))
    path = write_variant(tmp_path, CUDA, library=data, archs=("8.0",))
    assert codes(check_variant(path, imports=False)) == ["fatbin"]


def test_a_planned_architecture_that_was_not_compiled_is_missing_for_its_device(tmp_path: Path) -> None:
    data = library(write_fatbin(region("8.0", name="norm")), write_fatbin(region("8.0", name="ce")))
    planned = {"norm": ("8.0",), "ce": ("8.0", "9.0a")}
    findings = check_artefact(*make_artefact(tmp_path, data, name=CUDA, archs=planned))
    assert [f.message for f in findings if f.severity == "error"] == [
        "ce: machine code for 9.0a is promised but not inside."
    ]


def test_code_that_nobody_planned_is_found(tmp_path: Path) -> None:
    data = library(write_fatbin(region("7.5", name="norm"), region("8.0", name="norm")))
    findings = check_artefact(*make_artefact(tmp_path, data, name=CUDA, archs={"norm": ("8.0",)}))
    assert [f.message for f in findings if f.severity == "error"] == [
        "norm: machine code for 7.5 is inside but not promised."
    ]
    assert codes(check_artefact(*make_artefact(tmp_path / "b", data, name=CUDA, archs={}))) == ["archs"]


def test_an_image_without_a_name_is_recognised_by_its_cubin(tmp_path: Path) -> None:
    code = write_cubin(80, registers=77)
    data = library(write_fatbin(write_region(80, write_cubin(80))), write_fatbin(write_region(80, code)))
    built = {("norm", "8.0"): write_cubin(80), ("ce", "8.0"): code}
    artefact, toolchain = make_artefact(
        tmp_path, data, name=CUDA, archs={"norm": ("8.0",), "ce": ("8.0",)}, codes=built
    )
    assert codes(check_artefact(artefact, toolchain)) == []
    assert resources(artefact)["ce"]["8.0"]["rms_norm"]["registers"] == 77


def test_resources_are_reported_as_plain_data(tmp_path: Path) -> None:
    fatbin = write_fatbin(
        region("8.0", name="norm", registers=40, shared=2048, stack=16, threads=256), region("9.0", name="norm")
    )
    artefact, _ = make_artefact(tmp_path, library(fatbin), name=CUDA, archs={"norm": ("8.0", "9.0")})
    assert resources(artefact) == {
        "norm": {
            "8.0": {"rms_norm": {"registers": 40, "shared": 2048, "local": 16, "threads": 256}},
            "9.0": {"rms_norm": {"registers": 32, "shared": 0, "local": 0}},
        }
    }


def test_resources_of_a_broken_library_are_an_error_with_a_place(tmp_path: Path) -> None:
    artefact, _ = make_artefact(tmp_path, b"nothing", name=CUDA)
    with pytest.raises(CheckError) as caught:
        resources(artefact)
    assert CUDA in caught.value.where


def fit(folder: Path, arch: str, dynamic: int, **cubin: int) -> list[tuple[str, str]]:
    data = library(write_fatbin(region(arch, name="norm", **cubin)))
    made = make_artefact(folder, data, name=CUDA, archs={"norm": (arch,)}, dynamic_shared=dynamic)
    return [(f.code, f.severity) for f in check_artefact(*made)]


@pytest.mark.parametrize(
    ("arch", "limit"), [("7.5", 64), ("8.9", 99), ("9.0a", 227), ("10.0", 227), ("12.0", 99), ("8.6", 99)]
)
def test_shared_memory_is_held_against_the_limit_of_its_own_gpu(tmp_path: Path, arch: str, limit: int) -> None:
    assert fit(tmp_path / "a", arch, (limit - 1) * 1024, shared=1024) == []
    assert fit(tmp_path / "b", arch, (limit - 1) * 1024, shared=1025) == [("shared-memory", "error")]


def test_code_that_smaller_relatives_would_load_too_is_a_warning(tmp_path: Path) -> None:
    assert fit(tmp_path / "a", "8.0", 99 * 1024) == []
    assert fit(tmp_path / "b", "8.0", 163 * 1024) == [("shared-memory", "warning")]
    assert fit(tmp_path / "c", "8.0", 163 * 1024 + 1) == [("shared-memory", "error")]


def test_more_registers_than_a_block_can_have_are_refused(tmp_path: Path) -> None:
    assert fit(tmp_path / "a", "8.0", 0, registers=64, threads=1024) == []
    assert fit(tmp_path / "b", "8.0", 0, registers=65, threads=1024) == [("registers", "error")]
    assert fit(tmp_path / "c", "8.0", 0, registers=255) == []


def test_local_memory_is_noted(tmp_path: Path) -> None:
    assert fit(tmp_path, "8.0", 0, stack=256) == [("local-memory", "note")]
