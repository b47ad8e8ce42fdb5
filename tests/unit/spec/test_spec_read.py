"""build.toml and kernel-builder.toml: what is read, and what each fault says."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest
from spec_samples import BUILD, BUILDER, replaced

from kernel_builder.errors import SpecError
from kernel_builder.spec.model import KernelDependency
from kernel_builder.spec.read import read_kernel
from kernel_loader.format.archs import Arch
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from pathlib import Path


def faults(folder: Path) -> list[str]:
    """TOML path and message of every fault of a folder that must not be readable."""
    with pytest.raises(SpecError) as caught:
        read_kernel(folder)
    return [line.partition(".toml: ")[2] for line in caught.value.detail.splitlines()]


def test_a_kernel_is_read_with_its_types(kernel_folder):
    kernel = read_kernel(kernel_folder())

    assert (kernel.name, kernel.python_name, kernel.version) == ("demo-op", "demo_op", 2)
    assert kernel.backends == ("cpu", "cuda")
    assert kernel.torch.stable_abi == {"cpu": MajorMinor(2, 10), "cuda": MajorMinor(2, 10)}
    assert kernel.torch.pyext == ("py", "pyi")
    assert [(c.key, c.backend, c.sources) for c in kernel.components] == [
        ("host", "cpu", ("csrc/op_cpu.cpp", "csrc/op.h")),
        ("launch", "cuda", ("csrc/op_cuda.cpp", "csrc/op.h")),
    ]
    (device,) = kernel.devices
    assert device.source == "csrc/op.cu"
    assert device.capabilities == (Arch(8, 0), Arch(12, 0, "", ptx=True))


def test_every_documented_key_can_be_set(kernel_folder):
    build = """\
[general]
name = "demo-op"
version = 0
edition = 5
license = "MIT"
backends = ["cuda", "rocm", "xpu", "metal", "tpu", "neuron"]
upstream = "https://example.org/up"
source = "git@example.org:us/demo"
python-depends = ["einops"]
kernel-depends = [{repo-id = "org/a", version = 3}, {repo-id = "org/b", revision = "main"}]
[general.hub]
repo-id = "org/demo-op"
branch = "v0-test"
[general.cuda]
minver = "12.8"
maxver = "13.2"
python-depends = ["nvidia-cutlass-dsl"]
[general.neuron]
python-depends = ["nki"]
[general.xpu]
kernel-depends = [{repo-id = "org/c", version = 1}]
[general.tpu]
[torch]
src = ["torch-ext/binding.cpp"]
pyext = ["py", "json"]
include = ["csrc", "."]
minver = "2.7"
maxver = "2.15"
stable-abi = {cuda = "2.9", cpu = "2.10"}
cxx-flags = ["-O3", "-DNAME=\\"two words\\""]
[kernel.a]
backend = "cuda"
depends = ["torch"]
src = ["csrc/op_cuda.cpp"]
include = ["csrc"]
cxx-flags = ["-O2", "-O2"]
cuda-capabilities = ["8.0", "9.0a"]
cuda-flags = ["-Xcompiler", "-O2", "--use_fast_math"]
cuda-minver = "12.8"
[kernel.b]
backend = "rocm"
depends = []
src = ["csrc/op.h"]
rocm-archs = ["gfx942"]
hip-flags = ["-ffast-math"]
[kernel.c]
backend = "xpu"
depends = ["sycl_tla"]
src = ["csrc/op.h"]
sycl-flags = ["-O3"]
[kernel.d]
backend = "metal"
depends = ["metal-cpp"]
src = ["csrc/op.h"]
"""
    builder = BUILDER + 'include = ["csrc"]\ndefines = ["FAST", "WIDTH=8"]\ndynamic-shared-bytes = 49152\n'
    kernel = read_kernel(kernel_folder(build=build, builder=builder))

    assert kernel.kernel_depends == (
        KernelDependency(repo_id="org/a", version=3),
        KernelDependency(repo_id="org/b", revision="main"),
    )
    assert kernel.backend_python_depends == {"cuda": ("nvidia-cutlass-dsl",), "neuron": ("nki",)}
    assert kernel.backend_kernel_depends == {"xpu": (KernelDependency(repo_id="org/c", version=1),)}
    assert (kernel.cuda_minver, kernel.cuda_maxver) == (MajorMinor(12, 8), MajorMinor(13, 2))
    assert (kernel.torch.minver, kernel.torch.maxver) == (MajorMinor(2, 7), MajorMinor(2, 15))
    assert kernel.torch.stable_abi == {"cuda": MajorMinor(2, 9)}, "entries of backends not listed are ignored"
    assert kernel.torch.include == ("csrc", ".")
    assert kernel.components[0].cuda_capabilities == (Arch(8, 0), Arch(9, 0, "a"))
    assert kernel.components[0].cxx_flags == ("-O2", "-O2"), "repeating a flag is no fault"
    assert kernel.devices[0].defines == ("FAST", "WIDTH=8")
    assert kernel.devices[0].dynamic_shared_bytes == 49152


@pytest.mark.parametrize(
    ("table", "folder", "framework"),
    [("[torch-noarch]\ncuda_capabilities = ['9.0']", "torch-ext", "torch-noarch"), ("", "tvm-ffi-ext", "tvm-ffi")],
)
def test_other_frameworks_are_read(kernel_folder, table, folder, framework):
    table = table or '[tvm-ffi]\nsrc = ["csrc/op_cpu.cpp"]'
    build = BUILD[: BUILD.index("[torch]")] + table
    root = kernel_folder(build=build, builder=None, files={f"{folder}/demo_op/__init__.py": ""})

    kernel = read_kernel(root)

    assert kernel.framework == framework
    assert f"{folder}/demo_op/__init__.py" in kernel.sources
    assert kernel.torch.archs == ({"cuda": ("9.0",)} if framework == "torch-noarch" else {})


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("edition = 3", "edition is 3; this version reads edition 5"),
        ("edition = 4", "edition is 4; this version reads edition 5"),
        ("edition = 6", "edition is 6; this version reads edition 5"),
        ('edition = "5"', "found string"),
        ("edition = 5.0", "found float"),
        ("edition = true", "found boolean"),
    ],
)
def test_any_other_edition_is_refused_and_named(kernel_folder, line, expected):
    with pytest.raises(SpecError, match=expected) as caught:
        read_kernel(kernel_folder(build=replaced("edition = 5", line)))
    assert caught.value.exit_code == 2
    assert caught.value.where.endswith("build.toml: general.edition")
    assert "newer kernel-builder" in caught.value.hint or "edition = 5" in caught.value.hint


def test_a_path_that_is_listed_twice_counts_once(kernel_folder):
    twice = replaced(
        '"csrc/op_cpu.cpp", "csrc/op.h"', '"csrc/op.h", "csrc/op_cpu.cpp", "./csrc/op.h", "csrc/op_cpu.cpp"'
    )

    assert read_kernel(kernel_folder(build=twice)).components[0].sources == ("csrc/op.h", "csrc/op_cpu.cpp")


def test_all_faults_are_reported_at_once(kernel_folder):
    build = (
        replaced('name = "demo-op"', "name = 3")
        .replace("stable-abi = ", "stable-abbi = ")
        .replace('backend = "cuda"', 'backend = "cudda"')
        .replace('src = ["csrc/op_cpu.cpp", "csrc/op.h"]', 'src = ["csrc/op_cpu.cpp", 7]')
    )
    root = kernel_folder(build=build, builder='[device.op]\nsrc = "csrc/op.cu"\ncapabilities = [9.0]\n')

    with pytest.raises(SpecError) as caught:
        read_kernel(root)

    assert faults(root) == [
        'device.op.capabilities[0]: expected an architecture string, found float (put it in quotes, "9.0")',
        "general.name: expected a string, found integer",
        "torch.stable-abbi: unknown key 'stable-abbi' (did you mean 'stable-abi'?)",
        "kernel.host.src[1]: expected a string, found integer",
        "kernel.launch.backend: 'cudda' is not known here (did you mean 'cuda'?)",
        'device: no [kernel.*] table with backend = "cuda" launches the device code',
    ]
    assert "6 faults" in caught.value.message
    assert str(root / "kernel-builder.toml") in caught.value.where


def test_a_single_fault_is_the_error_itself(kernel_folder):
    root = kernel_folder(build=replaced("license =", "licence ="))
    build = replaced("version = 2", 'version = "2"')
    with pytest.raises(SpecError) as caught:
        read_kernel(kernel_folder(build=build))
    assert caught.value.message == "expected an integer, found string"
    assert caught.value.where == f"{root / 'build.toml'}: general.version"


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('backends = ["cpu", "cuda"]', "backends = 3", "general.backends: expected a list of strings, found integer"),
        ('backends = ["cpu", "cuda"]', "backends = []", "general.backends: must not be empty"),
        ('"cpu", "cuda"]', '"cpu", "cuda", "cpu"]', "general.backends[2]: 'cpu' is listed twice"),
        ('"cpu", "cuda"]', '"cpu", "cuda", "gpu"]', "general.backends[2]: 'gpu' is not known here (did you mean"),
        ('"demo-op"', '"demo_op"', "general.name: 'demo_op' is not a kernel name"),
        ('"demo-op"', '"d"', "general.name: 'd' is not a kernel name"),
        ('"demo-op"', '"demo-op-"', "general.name: 'demo-op-' is not a kernel name"),
        ('"demo-op"', '"demo-öp"', "general.name: 'demo-öp' is not a kernel name"),
        ("version = 2", "version = -1", "general.version: -1 is not between"),
        ("version = 2", "version = true", "general.version: expected an integer, found boolean"),
        ("version = 2", "version = 2026-01-01", "general.version: expected an integer, found date or time"),
        ('"Apache-2.0"', '""', "general.license: must not be empty"),
        ('"Apache-2.0"', '"MIT\\u001b[31m"', "general.license: 'MIT\\x1b[31m' contains a control character"),
        ('license = "Apache-2.0"\n', "", "general: the key license is missing"),
        ("edition = 5", 'edition = 5\nupstream = "ftp://x/y"', "general.upstream: 'ftp://x/y' is not a git URL"),
        ("edition = 5", 'edition = 5\npython-depends = ["numpy"]', "general.python-depends[0]: 'numpy' is not known"),
        ("edition = 5", 'edition = 5\ntpu = {python-depends = ["x"]}', "general.tpu.python-depends[0]: 'x' is not"),
        ("edition = 5", "edition = 5\nrocm = {}", "general.rocm: unknown key 'rocm'"),
        ("edition = 5", "edition = 5\ncuda = {minver = 12.8}", "general.cuda.minver: expected a version string, found"),
        ("edition = 5", 'edition = 5\ncuda = {minver = "13.0", maxver = "12.8"}', "general.cuda: minver 13.0 is above"),
        ("edition = 5", 'edition = 5\nhub = {repo-id = "x"}', "general.hub.repo-id: 'x' is not a repository id"),
        ("edition = 5", 'edition = 5\nhub = {branch = "../x"}', "general.hub.branch: '../x' is not a branch name"),
        ("edition = 5", 'edition = 5\nkernel-depends = [{repo-id = "a/b"}]', "kernel-depends[0]: needs exactly one of"),
        ("edition = 5", "edition = 5\nkernel-depends = [{version = 1}]", "kernel-depends[0]: repo-id is missing"),
        (
            'stable-abi = "2.10"',
            "stable-abi = 2.10",
            "torch.stable-abi: expected a version string, found float (put it",
        ),
        ('stable-abi = "2.10"', 'stable-abi = "2.10.1"', "torch.stable-abi: '2.10.1' is not a version of the form"),
        ('stable-abi = "2.10"', 'stable-abi = {cud = "2.9"}', "torch.stable-abi.cud: unknown backend 'cud' (did you"),
        ('stable-abi = "2.10"', 'minver = "2.10"\nmaxver = "2.9"', "torch: minver 2.10 is above maxver 2.9"),
        ('stable-abi = "2.10"', 'pyext = [".py"]', "torch.pyext[0]: '.py' is not a file extension"),
        ("depends = []", 'depends = ["cutlas_4_0"]', "kernel.host.depends[0]: 'cutlas_4_0' is not known here (did you"),
        ("depends = []\n", "", "kernel.host: the key depends is missing"),
        ("depends = []", 'depends = []\ncuda-minver = "12.8"', "kernel.host.cuda-minver: unknown key 'cuda-minver'"),
        ("[kernel.host]", "[kernels.host]", "kernels: unknown table 'kernels' (did you mean 'kernel'?)"),
        ("[kernel.host]", '[kernel."a b"]', ""),
        ("[torch]", "[tvm-ffi]\nsrc = ['csrc/op_cpu.cpp']\n[torch]", "exactly one of the tables torch, torch-noarch"),
    ],
)
def test_what_a_fault_says(kernel_folder, old, new, expected):
    root = kernel_folder(build=replaced(old, new))
    if not expected:
        assert read_kernel(root).components[0].key == "a b"
        return
    assert any(fault.startswith(expected) or f".{expected}" in fault for fault in faults(root)), faults(root)


def test_a_kernel_without_framework_is_refused(kernel_folder):
    build = BUILD[: BUILD.index("[torch]")] + BUILD[BUILD.index("[kernel.host]") :]
    assert "exactly one of the tables torch, torch-noarch, tvm-ffi is needed, found none" in faults(
        kernel_folder(build=build)
    )


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"csrc/op_cpu.cpp"', '"csrc/none.cpp"', "kernel.host.src[0]: the file csrc/none.cpp does not exist"),
        ('"csrc/op_cpu.cpp"', '"csrc/*.cpp"', "(patterns are not expanded; list each file)"),
        ('"csrc/op_cpu.cpp"', '"csrc"', "kernel.host.src[0]: csrc is not a file"),
        ('"csrc/op_cpu.cpp", "csrc/op.h"', '"csrc/op.h"', "kernel.host.src: lists headers only: nothing would be"),
        ('"csrc/op_cpu.cpp", ', '"csrc/op_cpu.cpp", "csrc/op.cu", ', "csrc/op.cu is a CUDA source, the backend is cpu"),
        ('"csrc/op_cuda.cpp", ', '"csrc/op_cuda.cpp", "csrc/notes.txt", ', "is neither a C++ nor a CUDA source"),
        ('src = ["torch-ext/binding.cpp"]', "src = []", "torch.src: lists no C++ source"),
        ('src = ["torch-ext/binding.cpp"]', 'src = ["csrc/op_cpu.cpp"]', "compiled by torch already"),
        ('backend = "cuda"', 'backend = "cpu"', "no [kernel.*] table with backend"),
        ('["cpu", "cuda"]', '["cuda"]', "kernel.host.backend: 'cpu' is not in general.backends"),
        ('["cpu", "cuda"]', '["cpu"]', "device: device code is for cuda, which is not in general.backends"),
        ("[torch]\n", '[torch]\ninclude = ["nowhere"]\n', "torch.include[0]: the folder nowhere does not exist"),
        ('name = "demo-op"', 'name = "other"', "the Python package torch-ext/other/__init__.py does not exist"),
    ],
)
def test_faults_that_only_the_folder_shows(kernel_folder, old, new, expected):
    root = kernel_folder(build=replaced(old, new), files={"csrc/notes.txt": ""})
    assert any(expected in fault for fault in faults(root)), faults(root)


def test_one_source_in_two_components_of_a_backend_is_refused(kernel_folder):
    build = BUILD + '[kernel.again]\nbackend = "cpu"\ndepends = []\nsrc = ["csrc/op_cpu.cpp", "csrc/op.h"]\n'
    assert faults(kernel_folder(build=build)) == [
        "kernel.again.src[0]: csrc/op_cpu.cpp is compiled by kernel.host already (define everything once)"
    ]


def test_components_under_noarch_are_refused(kernel_folder):
    build = replaced('[torch]\nsrc = ["torch-ext/binding.cpp"]\nstable-abi = "2.10"', "[torch-noarch]")
    found = faults(kernel_folder(build=build, builder=None))
    assert found[0] == "kernel.host: a torch-noarch kernel compiles nothing (use [torch] instead)"


@pytest.mark.parametrize(
    ("builder", "expected"),
    [
        ("[devices.op]\n", "devices: unknown table 'devices' (did you mean 'device'?)"),
        ("device = 3\n", "device: expected a table, found integer"),
        ("[device]\nop = 3\n", "device.op: expected a table, found integer"),
        ('[device."a-b"]\nsrc = "csrc/op.cu"\n', "device.a-b: 'a-b' is not a C identifier"),
        ("[device.op]\n", "device.op: the key src is missing (it is a string)"),
        ('[device.op]\nsrc = ["csrc/op.cu"]\n', "device.op.src: expected a string, found list"),
        ('[device.op]\nsrc = "csrc/op.h"\n', "device.op.src: csrc/op.h does not end with .cu"),
        (BUILDER.replace('"8.0"', '"sm_80"'), "device.op.capabilities[0]: 'sm_80' is not a GPU architecture"),
        (BUILDER.replace('"8.0"', '"8.0", "8.0"'), "device.op.capabilities[1]: '8.0' is listed twice"),
        ('[device.op]\nsrc = "csrc/op.cu"\ncapabilities = []\n', "device.op.capabilities: must not be empty"),
        (BUILDER + 'defines = ["A B"]\n', "device.op.defines[0]: 'A B' is not a definition of the form"),
        (BUILDER + 'defines = ["KB_CUDA=0"]\n', "device.op.defines[0]: 'KB_CUDA=0' is not a definition"),
        (BUILDER + "dynamic-shared-bytes = -1\n", "device.op.dynamic-shared-bytes: -1 is not between"),
    ],
)
def test_faults_of_kernel_builder_toml(kernel_folder, builder, expected):
    root = kernel_folder(builder=builder)
    assert any(fault.startswith(expected) for fault in faults(root)), faults(root)


def test_syntax_errors_name_the_line(kernel_folder):
    root = kernel_folder(build=replaced("version = 2", "version = = 2"))
    with pytest.raises(SpecError, match="not valid TOML") as caught:
        read_kernel(root)
    assert caught.value.where == f"{root / 'build.toml'}:3:11"


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[general]\nname = '\xff'\n", "is not UTF-8"),
        (b"a = " + b"[" * 100_000, "build.toml is "),
        (b"a = " + b"9" * 5000, "build.toml is not valid TOML"),
        (b"#" * ((1 << 20) + 1), "larger than"),
        (b"", r"no table \[general\]"),
        (b"general = 3", r"no table \[general\]"),
    ],
)
def test_files_that_are_no_spec(kernel_folder, content, expected):
    root = kernel_folder()
    (root / "build.toml").write_bytes(content)
    with pytest.raises(SpecError, match=expected):
        read_kernel(root)


def test_a_folder_without_build_toml(tmp_path):
    with pytest.raises(SpecError, match=r"build\.toml does not exist"):
        read_kernel(tmp_path / "nothing")


def test_a_pipe_in_place_of_build_toml_does_not_hang(kernel_folder):
    root = kernel_folder()
    (root / "build.toml").unlink()
    os.mkfifo(root / "build.toml")
    with pytest.raises(SpecError, match="does not exist"):
        read_kernel(root)


def test_a_dangling_kernel_builder_toml_is_not_taken_for_none(kernel_folder):
    root = kernel_folder(builder=None)
    (root / "kernel-builder.toml").symlink_to("nowhere.toml")
    with pytest.raises(SpecError, match=r"kernel-builder\.toml does not exist"):
        read_kernel(root)
