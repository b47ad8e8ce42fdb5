"""build.toml of editions 3 and 4 is read as edition 5, and the author is told what to change."""

from __future__ import annotations

import pytest
from kernels._rust import Build
from spec_samples import BUILD, replaced

from kernel_builder.errors import SpecError
from kernel_builder.spec.read import read_kernel

EDITION_4 = replaced("edition = 5\n", "")
EDITION_3 = (
    EDITION_4.replace('license = "Apache-2.0"\n', "").replace("version = 2\n", "").replace('stable-abi = "2.10"\n', "")
)


def faults(folder):
    with pytest.raises(SpecError) as caught:
        read_kernel(folder)
    return [line.partition(".toml: ")[2] for line in caught.value.detail.splitlines()]


def test_edition_4_is_edition_5_without_the_key(kernel_folder):
    root = kernel_folder(build=EDITION_4)
    kernel = read_kernel(root)

    assert (kernel.version, kernel.license, kernel.torch.stable_abi.keys()) == (2, "Apache-2.0", {"cpu", "cuda"})
    (note,) = kernel.notes
    assert note.endswith("to bring it up to date, add edition = 5 to [general]")
    assert "edition 4" in note
    Build.open(root)


def test_a_file_of_edition_5_has_nothing_to_note(kernel_folder):
    assert read_kernel(kernel_folder()).notes == ()


def test_doing_what_the_note_says_changes_nothing_but_the_note(kernel_folder, tmp_path):
    old = read_kernel(kernel_folder(build=EDITION_4))
    new = read_kernel(kernel_folder())

    assert (old.torch, old.components, old.version, old.license) == (
        new.torch,
        new.components,
        new.version,
        new.license,
    )


def test_edition_3_gets_its_defaults_and_each_is_named(kernel_folder):
    kernel = read_kernel(kernel_folder(build=EDITION_3))

    assert (kernel.version, kernel.license, kernel.framework) == (1, "unknown", "torch")
    (note,) = kernel.notes
    for words in ("edition 3", "version = 1", "add the license", "edition = 5"):
        assert words in note


def test_edition_3_without_a_framework_compiles_nothing(kernel_folder):
    build = EDITION_4[: EDITION_4.index("[torch]")]
    kernel = read_kernel(kernel_folder(build=build, builder=None))

    assert kernel.framework == "torch-noarch"
    assert kernel.version == 2
    assert "[torch-noarch]" in kernel.notes[0]


@pytest.mark.parametrize(
    ("build", "where"),
    [
        (
            EDITION_4.replace("backends", 'kernel-depends = [{repo-id = "a/b", version = 1}]\nbackends', 1),
            "general.kernel-depends",
        ),
        (EDITION_4.replace("[torch]", "[general.tpu]\n[torch]", 1), "general.tpu"),
        (EDITION_4.replace("[torch]", "[general.xpu]\nkernel-depends = []\n[torch]", 1), "general.xpu.kernel-depends"),
        (EDITION_4.replace('stable-abi = "2.10"', 'stable-abi = {cuda = "2.10"}'), "torch.stable-abi"),
    ],
)  # fmt: skip
def test_a_key_that_came_with_edition_5_is_refused_where_it_stands(kernel_folder, build, where):
    root = kernel_folder(build=build)

    assert any(fault.startswith(f"{where}: ") and "edition 5" in fault for fault in faults(root)), faults(root)
    with pytest.raises(ValueError, match="Cannot parse"):
        Build.open(root)


@pytest.mark.parametrize("key", ['license = "Apache-2.0"\n', "version = 2\n"])
def test_what_only_edition_4_knows_makes_its_required_keys_required(kernel_folder, key):
    root = kernel_folder(build=EDITION_4.replace(key, ""))

    with pytest.raises(SpecError, match=f"{key.split()[0]} is missing"):
        read_kernel(root)


def test_faults_of_an_older_file_keep_their_paths(kernel_folder):
    root = kernel_folder(build=EDITION_4.replace('backend = "cuda"', 'backend = "cudda"'))

    assert any(fault.startswith("kernel.launch.backend: 'cudda'") for fault in faults(root))


def test_editions_before_3_are_refused_by_name(kernel_folder):
    root = kernel_folder(build=EDITION_4.replace('backends = ["cpu", "cuda"]\n', ""))

    with pytest.raises(SpecError, match="edition 1 or 2") as caught:
        read_kernel(root)
    assert caught.value.exit_code == 2


def test_line_tables_are_left_to_development_builds_and_the_author_is_told(kernel_folder):
    build = BUILD.replace('src = ["csrc/op_cuda.cpp", "csrc/op.h"]', 'src = ["csrc/op.cu"]\ncuda-flags = ["-lineinfo"]')
    kernel = read_kernel(kernel_folder(build=build, builder=None))

    assert kernel.notes == ("kernel.launch: line tables hold paths of this machine; only build --dev makes them",)
