"""What is accepted here is accepted by the parser of HF kernels, and its refusals of form are refusals here."""

from __future__ import annotations

import pytest
from kernels._rust import Build
from spec_samples import BUILD, replaced

from kernel_builder.errors import SpecError
from kernel_builder.spec.read import read_kernel

ACCEPTED = [
    BUILD,
    replaced('stable-abi = "2.10"', 'stable-abi = {cpu = "2.9"}\nminver = "2.9"\nmaxver = "2.15"'),
    replaced("edition = 5", 'edition = 5\nhub = {repo-id = "a/b", branch = "v2"}\ncuda = {minver = "12.8"}'),
    replaced("depends = []", 'depends = ["torch", "cutlass_4_5"]\ninclude = ["csrc"]\ncxx-flags = ["-O3"]'),
    BUILD + 'cuda-capabilities = ["8.0", "9.0a"]\ncuda-flags = ["-O3"]\ncuda-minver = "12.8"\n',
]
REFUSED = [
    replaced("edition = 5", "edition = 6"),
    replaced('"demo-op"', '"demo_op"'),
    replaced('license = "Apache-2.0"\n', ""),
    replaced("depends = []\n", ""),
    replaced("depends = []", "depends = []\ncuda-flags = []"),
    replaced('stable-abi = "2.10"', "stable-abi = 2.10"),
    replaced('stable-abi = "2.10"', 'stable-abi = "2"'),
    replaced('stable-abi = "2.10"', 'minver = "2.9.1"'),
    replaced('stable-abi = "2.10"', 'stable-abi = {gpu = "2.9"}'),
    replaced('"cpu", "cuda"', '"cpu", "cuda", "gpu"'),
    replaced("edition = 5", "edition = 5\nrocm = {}"),
    replaced("edition = 5", 'edition = 5\nupstream = "ftp://x"'),
    replaced("edition = 5", 'edition = 5\nkernel-depends = [{repo-id = "a/b"}]'),
    replaced("[torch]\n", "[tvm-ffi]\nsrc = []\n[torch]\n"),
]


@pytest.mark.parametrize("build", ACCEPTED)
def test_both_accept(kernel_folder, build):
    root = kernel_folder(build=build)
    assert read_kernel(root).name == "demo-op"
    Build.open(root)


@pytest.mark.parametrize("build", REFUSED)
def test_both_refuse(kernel_folder, build):
    root = kernel_folder(build=build)
    with pytest.raises(SpecError):
        read_kernel(root)
    with pytest.raises(ValueError, match="Cannot parse"):
        Build.open(root)
