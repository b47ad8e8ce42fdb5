"""No path of a spec, and no link behind one, leaves the kernel folder."""

from __future__ import annotations

import pytest
from spec_samples import BUILDER, replaced

from kernel_builder.errors import SpecError
from kernel_builder.spec.read import read_kernel

ESCAPES = [
    ("../secret.cpp", "leaves the kernel folder"),
    ("csrc/../../secret.cpp", "leaves the kernel folder"),
    ("csrc/..", "leaves the kernel folder"),
    ("/etc/passwd", "is absolute"),
    ("C:/windows/x.cpp", "is absolute"),
    ("..\\\\secret.cpp", "contains a backslash"),
    ("csrc/a\\u0000.cpp", "contains a control character"),
    ("csrc/a\\n.cpp", "contains a control character"),
    ("csrc/a\\u2028.cpp", "contains a control character"),
    ("-fplugin=x.cpp", "begins with - or @"),
    ("@flags.cpp", "begins with - or @"),
    ("csrc/-x.cpp", "begins with - or @"),
    (" ", "must not be empty"),
    ("x" * 5000, "does not exist"),
]


@pytest.mark.parametrize(("path", "reason"), ESCAPES)
def test_sources_stay_inside(kernel_folder, path, reason):
    root = kernel_folder(build=replaced('"csrc/op_cpu.cpp"', f'"{path}"'))
    (root.parent / "secret.cpp").write_text("")
    with pytest.raises(SpecError) as caught:
        read_kernel(root)
    assert "kernel.host.src[0]" in caught.value.detail
    assert reason in caught.value.detail


@pytest.mark.parametrize(("path", "reason"), ESCAPES)
def test_include_folders_stay_inside(kernel_folder, path, reason):
    root = kernel_folder(build=replaced("[torch]\n", f'[torch]\ninclude = ["{path}"]\n'))
    with pytest.raises(SpecError) as caught:
        read_kernel(root)
    assert "torch.include[0]" in caught.value.detail
    assert reason in caught.value.detail


@pytest.mark.parametrize(("path", "reason"), ESCAPES)
def test_device_sources_stay_inside(kernel_folder, path, reason):
    root = kernel_folder(builder=BUILDER.replace("csrc/op.cu", path))
    with pytest.raises(SpecError) as caught:
        read_kernel(root)
    assert "device.op.src" in caught.value.detail
    assert reason in caught.value.detail


@pytest.mark.parametrize(
    "link",
    [
        "csrc/op_cpu.cpp",
        "csrc/op.cu",
        "torch-ext/binding.cpp",
        "torch-ext/demo_op/__init__.py",
        "csrc/op.h",
        "build.toml",
    ],
)
def test_links_that_leave_are_refused(kernel_folder, link):
    root = kernel_folder()
    outside = root.parent / "outside"
    outside.write_text((root / link).read_text())
    (root / link).unlink()
    (root / link).symlink_to(outside)
    with pytest.raises(SpecError, match="leaves the kernel folder"):
        read_kernel(root)


def test_a_linked_folder_that_leaves_is_refused(kernel_folder):
    root = kernel_folder(build=replaced("[torch]\n", '[torch]\ninclude = ["away"]\n'))
    (root / "away").symlink_to("/usr")
    with pytest.raises(SpecError, match="away is a link that leaves the kernel folder"):
        read_kernel(root)


def test_links_inside_the_folder_are_fine(kernel_folder):
    root = kernel_folder(files={"shared/real.h": "// real\n"})
    (root / "csrc/op.h").unlink()
    (root / "csrc/op.h").symlink_to("../shared/real.h")
    assert "csrc/op.h" in read_kernel(root).sources


def test_paths_are_normalised(kernel_folder):
    root = kernel_folder(build=replaced('"csrc/op_cpu.cpp"', '"./csrc//op_cpu.cpp"'))
    assert read_kernel(root).components[0].sources[0] == "csrc/op_cpu.cpp"


def test_a_link_that_points_to_itself_is_no_file(kernel_folder):
    root = kernel_folder()
    (root / "csrc/op.h").unlink()
    (root / "csrc/op.h").symlink_to("op.h")
    with pytest.raises(SpecError, match=r"csrc/op\.h does not exist"):
        read_kernel(root)
