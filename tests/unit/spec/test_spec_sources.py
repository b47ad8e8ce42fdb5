"""The inventory holds every build input and nothing else; identities follow it."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import pytest
from spec_samples import replaced

from kernel_builder.errors import SpecError
from kernel_builder.spec.identity import source_digest, uid
from kernel_builder.spec.read import read_kernel


@pytest.fixture
def with_common(kernel_folder):
    """A kernel beside a ``common`` folder; ``common_files`` are written below it."""

    def write(common_files: dict[str, str], **kernel):
        root = kernel_folder(**kernel)
        for path, text in common_files.items():
            (root.parent / "common" / path).parent.mkdir(parents=True, exist_ok=True)
            (root.parent / "common" / path).write_text(text)
        return root

    return write


def test_the_inventory_names_every_build_input_with_its_sha256(kernel_folder):
    root = kernel_folder(
        files={
            "README.md": "x",
            "tests/test_op.py": "x",
            "csrc/unused.h": "x",
            "torch-ext/demo_op/sub/layers.py": "pass\n",
            "torch-ext/demo_op/stub.pyi": "",
            "torch-ext/demo_op/table.json": "{}",
            "torch-ext/demo_op/__pycache__/x.py": "",
        }
    )
    sources = read_kernel(root).sources

    assert [name for name in sources if not name.startswith("common/")] == [
        "build.toml",
        "csrc/op.cu",
        "csrc/op.h",
        "csrc/op_cpu.cpp",
        "csrc/op_cuda.cpp",
        "csrc/op_device.cuh",
        "kernel-builder.toml",
        "torch-ext/binding.cpp",
        "torch-ext/demo_op/__init__.py",
        "torch-ext/demo_op/stub.pyi",
        "torch-ext/demo_op/sub/layers.py",
    ]
    assert sources["csrc/op_cpu.cpp"] == hashlib.sha256(b'#include "op.h"\n').hexdigest()
    assert "common/src/cpu/parallel.cpp" in sources, "support code that travels with the builder is linked in"


def test_pyext_chooses_the_files_that_travel(kernel_folder):
    files = {"torch-ext/demo_op/table.json": "{}", "torch-ext/demo_op/stub.pyi": ""}
    build = replaced("[torch]\n", '[torch]\npyext = ["json"]\n')
    python = [path for path in read_kernel(kernel_folder(build=build, files=files)).sources if "demo_op" in path]
    assert python == ["torch-ext/demo_op/__init__.py", "torch-ext/demo_op/table.json"], ".py files always travel"


def test_common_headers_and_support_sources_are_inputs(with_common):
    root = with_common(
        {
            "include/kb/api.h": '#include "detail.h"',
            "include/kb/detail.h": "",
            "include/kb/unused.h": "",
            "include/kb/device/vec.cuh": "",
            "include/kb/launch.h": "",
            "src/cuda/launch.cpp": "#include <kb/launch.h>",
            "src/cpu/threads.cpp": "",
            "src/rocm/never.cpp": "",
        },
        files={"torch-ext/binding.cpp": "#include <kb/api.h>", "csrc/op_device.cuh": "#include <kb/device/vec.cuh>"},
    )
    assert [path for path in read_kernel(root).sources if path.startswith("common/")] == [
        "common/include/kb/api.h",
        "common/include/kb/detail.h",
        "common/include/kb/device/vec.cuh",
        "common/include/kb/launch.h",
        "common/src/cpu/threads.cpp",
        "common/src/cuda/launch.cpp",
    ]


def test_common_may_be_named(kernel_folder, tmp_path):
    (tmp_path / "elsewhere/src/cpu").mkdir(parents=True)
    (tmp_path / "elsewhere/src/cpu/x.cpp").write_text("")
    kernel = read_kernel(kernel_folder(), common=tmp_path / "elsewhere")
    assert "common/src/cpu/x.cpp" in kernel.sources
    assert kernel.common == tmp_path / "elsewhere"


def test_a_kernels_own_folder_cannot_pass_for_the_shared_one(with_common):
    build = replaced('"csrc/op_cpu.cpp"', '"common/op_cpu.cpp"')
    files = {"common/op_cpu.cpp": ""}
    with pytest.raises(SpecError, match="has the name of the shared one"):
        read_kernel(with_common({"include/x.h": ""}, build=build, files=files))


def test_a_common_folder_of_its_own_is_fine_when_nothing_is_shared(kernel_folder):
    build = replaced('"csrc/op_cpu.cpp"', '"common/op_cpu.cpp"')
    assert "common/op_cpu.cpp" in read_kernel(kernel_folder(build=build, files={"common/op_cpu.cpp": ""})).sources


def test_an_include_that_leaves_is_an_error_of_the_spec(kernel_folder):
    root = kernel_folder(files={"csrc/op.h": '#include "../../x.h"'})
    with pytest.raises(SpecError, match="leaves the kernel folder") as caught:
        read_kernel(root)
    assert caught.value.where == str(root / "csrc/op.h")


def test_a_file_name_that_cannot_be_recorded_is_refused(kernel_folder):
    root = kernel_folder(files={"torch-ext/demo_op/a\nb.py": ""})
    with pytest.raises(SpecError, match="cannot be printed"):
        read_kernel(root)


def test_identities_follow_the_documented_bytes(kernel_folder):
    kernel = read_kernel(kernel_folder())
    lines = b"".join(f"{path}\0{digest}\n".encode() for path, digest in kernel.sources.items())

    assert source_digest(kernel) == hashlib.sha256(lines).hexdigest()
    assert uid(kernel, "cuda") == hashlib.sha256(b"kernel-builder uid 1\ndemo-op\n2\ncuda\n" + lines).hexdigest()[:10]


@pytest.mark.parametrize(
    "path", ["csrc/op_device.cuh", "csrc/op.h", "torch-ext/demo_op/__init__.py", "kernel-builder.toml", "build.toml"]
)
def test_a_change_to_any_input_changes_the_uid(kernel_folder, path):
    root = kernel_folder()
    before = read_kernel(root)
    (root / path).write_text((root / path).read_text() + "\n")
    after = read_kernel(root)

    assert uid(before, "cpu") != uid(after, "cpu")
    assert source_digest(before) != source_digest(after)


def test_the_uid_tells_backends_names_and_versions_apart_but_not_folders(kernel_folder):
    kernel = read_kernel(kernel_folder())
    twin = read_kernel(kernel_folder(name="copy"))

    assert kernel.root != twin.root
    assert uid(kernel, "cpu") == uid(twin, "cpu")
    assert len({uid(kernel, "cpu"), uid(kernel, "cuda"), uid(replace(kernel, version=3), "cpu")}) == 3
    assert uid(kernel, "cpu") != uid(replace(kernel, name="demo-op2"), "cpu")


def test_files_beside_the_inputs_do_not_change_the_uid(kernel_folder):
    before = uid(read_kernel(kernel_folder()), "cpu")
    assert uid(read_kernel(kernel_folder(files={"tests/test_x.py": "x", "CARD.md": "y"})), "cpu") == before
