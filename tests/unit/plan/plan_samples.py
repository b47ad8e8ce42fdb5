from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel_builder.spec.model import Component, Device, Kernel, Torch
from kernel_loader.format.archs import Arch
from kernel_loader.format.versions import MajorMinor

SMALL_MATRIX = """\
platform = "x86_64-linux"
[[torch]]
version = "2.8"
cuda."12.6" = ["8.0", "9.0"]
[[torch]]
version = "2.9"
cuda."12.6" = ["8.0", "9.0"]
cuda."13.0" = ["8.0", "9.0", "12.0"]
[[torch]]
version = "2.10"
cuda."13.0" = ["8.0", "9.0", "12.0"]
cuda."13.2" = ["8.0", "9.0", "12.0"]
[[stable]]
target = "2.9"
torch = "2.9"
sdk = "2.10"
[[stable]]
target = "2.10"
torch = "2.10"
sdk = "2.10"
[[toolkit]]
version = "12.4"
archs = ["7.0", "8.0", "9.0", "9.0a"]
default = ["8.0"]
ptx = "9.0"
driver = "550.54"
nvcc = true
[[toolkit]]
version = "12.6"
archs = ["7.0", "8.0", "9.0", "9.0a"]
default = ["8.0", "9.0a"]
ptx = "9.0"
driver = "560.28"
[[toolkit]]
version = "13.0"
archs = ["7.5", "8.0", "9.0", "9.0a", "12.0", "12.0a"]
default = ["8.0", "12.0"]
ptx = "12.0"
driver = "580.65"
nvcc = true
[[toolkit]]
version = "13.2"
archs = ["7.5", "8.0", "9.0", "9.0a", "12.0", "12.0a"]
default = ["8.0", "12.0"]
ptx = "12.0"
driver = "595.45"
[[gpu]]
capability = "8.0"
name = "A100"
[[gpu]]
capability = "9.0"
name = "H100"
[[gpu]]
capability = "12.0"
name = "RTX 50"
"""


def version(text: str) -> MajorMinor:
    return MajorMinor.parse(text)


def archs(text: str) -> tuple[Arch, ...]:
    return tuple(Arch.parse(word) for word in text.split())


def kernel(
    name: str = "demo", *, stable: str | None = "2.10", capabilities: str | None = "8.0", **changes: Any
) -> Kernel:
    """A kernel for cpu and cuda with one device source."""
    backends = changes.pop("backends", ("cpu", "cuda"))
    torch = {
        "sources": ("torch-ext/binding.cpp",),
        "stable_abi": {} if stable is None else dict.fromkeys(backends, version(stable)),
    } | changes.pop("torch", {})
    values: dict[str, Any] = {
        "root": Path("/kernels") / name,
        "common": None,
        "name": name,
        "version": 1,
        "license": "MIT",
        "backends": backends,
        "torch": Torch(**torch),
        "components": (
            Component(key="host", backend="cpu", depends=(), sources=("csrc/op_cpu.cpp",)),
            Component(key="launch", backend="cuda", depends=(), sources=("csrc/op_cuda.cpp",)),
        ),
        "devices": (
            Device(name="op", source="csrc/op.cu", capabilities=None if capabilities is None else archs(capabilities)),
        ),
        "sources": {"build.toml": "00", "common/include/kb/torch.h": "00"},
    }
    return Kernel(**(values | changes))
