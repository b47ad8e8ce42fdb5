from __future__ import annotations

BUILD = """\
[general]
name = "demo-op"
version = 2
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]

[torch]
src = ["torch-ext/binding.cpp"]
stable-abi = "2.10"

[kernel.host]
backend = "cpu"
depends = []
src = ["csrc/op_cpu.cpp", "csrc/op.h"]

[kernel.launch]
backend = "cuda"
depends = []
src = ["csrc/op_cuda.cpp", "csrc/op.h"]
"""
BUILDER = """\
[device.op]
src = "csrc/op.cu"
capabilities = ["8.0", "12.0+PTX"]
"""
FILES = {
    "torch-ext/binding.cpp": "// binding\n",
    "torch-ext/demo_op/__init__.py": "__all__ = []\n",
    "csrc/op.h": "#pragma once\n",
    "csrc/op_cpu.cpp": '#include "op.h"\n',
    "csrc/op_cuda.cpp": '#include "op.h"\n',
    "csrc/op.cu": '#include "op_device.cuh"\n',
    "csrc/op_device.cuh": "#pragma once\n",
}


def replaced(old: str, new: str, text: str = BUILD) -> str:
    """The valid build.toml with one piece changed; fails when the piece is not there."""
    assert old in text, old
    return text.replace(old, new, 1)
