from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel_builder.spec.model import Component, Device, Kernel, Torch
from kernel_loader.format.archs import Arch
from kernel_loader.format.versions import MajorMinor

SMALL_MATRIX = """\
platform = "x86_64-linux"
[[row]]
abi = "stable"
torch = "2.9"
sdk = "2.10"
backends = ["cu126"]
[[row]]
abi = "stable"
torch = "2.12"
backends = ["cpu", "cu126", "cu130"]
[[row]]
abi = "full"
torch = "2.9"
backends = ["cpu", "cu126"]
[[row]]
abi = "full"
torch = "2.10"
backends = ["cpu"]
[[toolkit]]
version = "12.6"
archs = ["7.0", "8.0", "9.0", "9.0a"]
default = ["8.0", "9.0a"]
ptx = "9.0"
[[toolkit]]
version = "13.0"
archs = ["7.5", "8.0", "9.0", "9.0a", "12.0", "12.0a"]
default = ["8.0", "12.0"]
ptx = "12.0"
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
        "sources": {"build.toml": "00"},
    }
    return Kernel(**(values | changes))
