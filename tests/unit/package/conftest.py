"""A small kernel folder, and what compile would hand over for it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernel_builder.compile.model import Artefact, DeviceCode
from kernel_builder.plan.model import Plan, VariantPlan
from kernel_builder.settings import Settings
from kernel_builder.spec.identity import uid
from kernel_builder.spec.read import read_kernel
from kernel_builder.toolchain.model import Floor, HostCompiler, Toolchain, Toolkit, TorchSdk
from kernel_loader.format.archs import Arch
from kernel_loader.format.variants import parse
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel_builder.spec.model import Kernel

CPU = "torch213-cxx11-cpu-x86_64-linux"
CUDA = "torch-stable-abi210-cu128-x86_64-linux"
BUILD_TOML = """
[general]
name = "toy"
version = 2
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]
[general.hub]
repo-id = "acme/toy"
[torch]
src = ["torch-ext/binding.cpp"]
stable-abi = "2.10"
[kernel.toy_cpu]
backend = "cpu"
depends = []
src = ["csrc/toy.cpp"]
[kernel.toy_cuda]
backend = "cuda"
depends = []
src = ["csrc/toy.cpp"]
"""
FILES = {
    "build.toml": BUILD_TOML,
    "CARD.md": "# {{ repo_id }} v{{ version }}\n"
    "{% for v in variants %}\n- {{ v.name }}\n{% endfor %}\n{{ functions }}\n",
    "csrc/toy.cpp": "int toy() { return 1; }\n",
    "torch-ext/binding.cpp": '#include "kb/base.h"\n',
    "torch-ext/toy/__init__.py": '__all__ = ["run", "layers"]\nfrom . import layers\n\ndef run():\n    return 1\n',
    "torch-ext/toy/layers.py": "class Toy:\n    pass\n",
    "torch-ext/toy/notes.txt": "not shipped\n",
    "tests/test_toy.py": "def test_toy():\n    assert True\n",
}


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.from_environment({"KERNEL_BUILDER_CACHE": str(tmp_path / "store"), "PATH": "/usr/bin:/bin"})


@pytest.fixture
def make_kernel(tmp_path: Path) -> Callable[..., Kernel]:
    def make(folder: Path = tmp_path / "src", **changes: str) -> Kernel:
        for name, text in {**FILES, **{key.replace("__", "."): value for key, value in changes.items()}}.items():
            path = folder / "toy" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        header = folder / "common" / "include" / "kb" / "base.h"
        header.parent.mkdir(parents=True, exist_ok=True)
        header.write_text("#pragma once\n")
        return read_kernel(folder / "toy")

    return make


@pytest.fixture
def kernel(make_kernel: Callable[..., Kernel]) -> Kernel:
    return make_kernel()


@pytest.fixture
def make_artefact(tmp_path: Path) -> Callable[..., Artefact]:
    # Any shared object will do: packaging reads its symbol versions and copies it.
    library = min(Path(os.__file__).with_name("lib-dynload").glob("*.so"))

    def make(kernel: Kernel, name: str = CPU, archs: tuple[str, ...] = ()) -> Artefact:
        variant = parse(name)
        plan = VariantPlan(
            kernel=kernel,
            variant=variant,
            uid=uid(kernel, variant.backend.name),
            sdk=variant.framework.version,
            toolkit=variant.backend.version,
            archs={"toy": tuple(map(Arch.parse, archs))} if archs else {},
        )
        codes = tuple(DeviceCode(device="toy", arch=Arch.parse(a), path=tmp_path / "cubin") for a in archs)
        return Artefact(plan=plan, library=library, filename=f"{plan.op_id}.abi3.so", device_code=codes, objects={})

    return make


@pytest.fixture
def toolchain(tmp_path: Path) -> Toolchain:
    def sdk(text: str) -> TorchSdk:
        version = MajorMinor.parse(text)
        return TorchSdk(version=version, release=f"{text}.0", digest="5d" * 32, root=tmp_path, include=())

    kit = Toolkit(
        version=MajorMinor(12, 8),
        release="12.8.93",
        digest="71" * 32,
        root=tmp_path,
        nvrtc=tmp_path,
        nvrtc_builtins=tmp_path,
        nvfatbin=tmp_path,
        include=(),
    )
    return Toolchain(
        plan=Plan(variants=()),
        host=HostCompiler(cxx="c++", version=(12, 2, 0), identity="gcc 12.2.0 x86_64-linux-gnu"),
        floor=Floor(root=tmp_path, torch=tmp_path, digest="f0" * 32, link={}),
        toolkits={kit.version: kit},
        sdks={MajorMinor(2, 10): sdk("2.10"), MajorMinor(2, 13): sdk("2.13")},
    )
