"""What a classic kernel is compiled with, and what its objects depend on."""

from __future__ import annotations

import pytest
from classic_kernel import ARCHS, BUILD, CPU, FULL, STABLE, Classic, make_nvcc

from kernel_builder.compile import nvcc as nvcc_module
from kernel_builder.errors import CompileError
from kernel_loader.format.versions import MajorMinor

SOURCES = ("csrc/plain.cu", "csrc/seeing.cu", "csrc/host.cpp", "torch-ext/binding.cpp")


@pytest.fixture
def accepting(monkeypatch):
    """An nvcc that knows every flag."""
    monkeypatch.setattr(nvcc_module, "unsupported_flags", lambda nvcc, flags: ())
    nvcc_module._unsupported.cache_clear()


def with_flags(*flags: str) -> str:
    listed = ", ".join(f'"{flag}"' for flag in flags)
    return BUILD.replace("[kernel.seeing]", f"cuda-flags = [{listed}]\n[kernel.seeing]")


def keys(units, sources=SOURCES):
    return {source: units[source].key for source in sources}


def test_one_object_per_torch_only_where_the_source_sees_torch(tmp_path):
    classic = Classic(tmp_path)
    variants = [classic.variant(FULL.format(torch)) for torch in ("212", "213")]
    older, newer = map(keys, classic.units(*variants))

    assert {source for source in SOURCES if older[source] != newer[source]} == {*SOURCES} - {"csrc/plain.cu"}


def test_sources_without_torch_are_compiled_once_for_stable_and_full_abi(tmp_path):
    classic = Classic(tmp_path)
    stable, full = map(keys, classic.units(classic.variant(STABLE), classic.variant(FULL.format("213"))))

    assert stable["csrc/plain.cu"] == full["csrc/plain.cu"]
    assert stable["csrc/seeing.cu"] != full["csrc/seeing.cu"]


def test_each_nvcc_makes_its_own_objects(tmp_path):
    classic = Classic(tmp_path)
    old, new = map(keys, classic.units(classic.variant(nvcc="12.4"), classic.variant(nvcc="13.0")))

    assert all(old[source] != new[source] for source in SOURCES), "the headers of CUDA are read by all of them"


def test_exactly_the_planned_architectures_are_asked_for(tmp_path):
    argv = Classic(tmp_path).unit().argv

    assert [word for word in argv if "arch" in word or "sm_" in word] == [
        "-gencode=arch=compute_80,code=[sm_80]",
        "-gencode=arch=compute_90a,code=[sm_90a]",
        "-gencode=arch=compute_120,code=[sm_120,compute_120]",
    ]


def test_nothing_of_this_machine_is_in_a_command(tmp_path):
    for unit in Classic(tmp_path).units()[0].values():
        assert not [word for word in unit.argv if str(tmp_path) in word or "/usr/bin" in word], unit.label


def test_the_same_kernel_elsewhere_has_the_same_units(tmp_path):
    here = Classic(tmp_path / "here").units()[0]
    there = Classic(tmp_path / "far" / "away" / "there").units()[0]

    assert keys(here, here) == keys(there, here)


def test_nvcc_runs_its_own_host_compiler_with_that_compilers_options(tmp_path):
    unit = Classic(tmp_path).unit()
    argv = " ".join(unit.argv)

    assert argv.startswith("@cuda@/bin/nvcc -ccbin @ccbin@ ")
    assert unit.places["ccbin"] == "/usr/bin/g++-12"
    assert "-Xcompiler -m64" in argv
    assert "gcc 12.2.0" in unit.tools.values()


def test_another_host_compiler_of_nvcc_makes_other_objects(tmp_path):
    classic = Classic(tmp_path)
    before = classic.unit().key
    version = MajorMinor(13, 0)
    classic.nvccs[version] = make_nvcc(tmp_path / "cuda", host="/usr/bin/g++-13")

    assert classic.unit().key != before


@pytest.mark.parametrize(("torch", "expected"), [("213", "-std=c++17"), ("214", "-std=c++20")], ids=["2.13", "2.14"])
def test_the_standard_is_the_one_that_torch_needs(tmp_path, torch, expected):
    classic = Classic(tmp_path)
    (units,) = classic.units(classic.variant(FULL.format(torch)))

    assert expected in units["csrc/seeing.cu"].argv
    assert "-std=c++17" in units["csrc/plain.cu"].argv


@pytest.mark.parametrize("flags", [("-std=c++20", "-O2"), ("-std", "c++20", "-O2"), ("--std=c++20", "-O2")])
def test_the_authors_standard_and_level_take_the_place_of_ours(tmp_path, accepting, flags):
    argv = Classic(tmp_path, build=with_flags(*flags)).unit().argv

    assert [word for word in argv if "std" in word or word == "c++20"] == ["-std=c++20"]
    assert [word for word in argv if word.startswith("-O")] == ["-O2"]


def test_a_standard_older_than_torchs_does_not_win(tmp_path, accepting):
    build = with_flags("-std=c++17").replace(
        'depends = []\nsrc = ["csrc/plain.cu', 'depends = ["torch"]\nsrc = ["csrc/plain.cu'
    )
    classic = Classic(tmp_path, build=build)
    (units,) = classic.units(classic.variant(FULL.format("214")))

    assert [word for word in units["csrc/plain.cu"].argv if "std" in word] == ["-std=c++20"]


def test_device_code_is_left_as_it_was_compiled_unless_the_author_compresses_it(tmp_path, accepting):
    assert "--no-compress" in Classic(tmp_path / "a").unit().argv
    for number, flags in enumerate(
        [("-compress-mode=size",), ("--compress-mode", "size"), ("-Xfatbin=-compress-all",)]
    ):
        assert "--no-compress" not in Classic(tmp_path / f"b{number}", build=with_flags(*flags)).unit().argv


def test_line_tables_are_for_development_builds(tmp_path, accepting):
    classic = Classic(tmp_path, build=with_flags("-lineinfo"))

    assert "-lineinfo" not in classic.unit().argv
    assert "-lineinfo" in classic.unit(lineinfo=True).argv
    assert "-lineinfo" in classic.unit("csrc/seeing.cu", lineinfo=True).argv


def test_a_flag_that_this_nvcc_does_not_know_stops_the_build_before_it_compiles(tmp_path, monkeypatch):
    def refuse(nvcc, flags):
        return ("-compress-mode=size",) if nvcc.version < MajorMinor(12, 8) else ()

    monkeypatch.setattr(nvcc_module, "unsupported_flags", refuse)
    nvcc_module._unsupported.cache_clear()
    classic = Classic(tmp_path, build=with_flags("-compress-mode=size"))

    assert classic.units(classic.variant(nvcc="13.0"))
    with pytest.raises(CompileError, match=r"nvcc 12\.4\.88 does not know -compress-mode=size") as caught:
        classic.units(classic.variant(nvcc="12.4"))
    assert caught.value.where.endswith("build.toml: kernel.plain.cuda-flags")
    assert "cuda-minver" in caught.value.hint


def test_only_variants_with_cuda_sources_link_the_run_time(tmp_path):
    classic = Classic(tmp_path)
    cuda, cpu = classic.units(classic.variant(), classic.variant(CPU))

    assert "@cuda@/lib/libcudart.so.13" in cuda["link"].argv
    assert "-lnvcc" in cuda["link"].argv
    assert not [word for word in cpu["link"].argv if "cuda" in word or word == "-lnvcc"]
    assert not [source for source in cpu if source.endswith(".cu")]


def test_host_sources_of_such_a_variant_find_cudas_headers(tmp_path):
    units = Classic(tmp_path).units()[0]

    for source in ("csrc/host.cpp", "torch-ext/binding.cpp"):
        assert "-isystem @cuda@/include -isystem @cuda@/include/cccl" in " ".join(units[source].argv)


def test_labels_tell_units_apart(tmp_path):
    classic = Classic(tmp_path)
    variants = [classic.variant(FULL.format(torch), nvcc=nvcc) for torch in ("212", "213") for nvcc in ("12.4", "13.0")]
    units = {unit.key: unit for each in classic.units(*variants, classic.variant()) for unit in each.values()}
    compiled = [unit.label for unit in units.values() if unit.kind != "link"]

    assert len(set(compiled)) == len(compiled)
    assert ARCHS
