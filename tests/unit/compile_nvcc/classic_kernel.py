"""A kernel of the classic kind, in a folder, and a toolchain that exists on paper: what its units would run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernel_builder.compile.sources import Sources
from kernel_builder.compile.variants import units_of
from kernel_builder.plan.model import Plan, VariantPlan
from kernel_builder.spec.identity import uid
from kernel_builder.spec.read import read_kernel
from kernel_builder.toolchain.model import Floor, HostCompiler, Nvcc, Toolchain, TorchSdk
from kernel_loader.format.archs import Arch
from kernel_loader.format.variants import parse
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from kernel_builder.compile.units import Unit

STABLE = "torch-stable-abi210-cu130-x86_64-linux"
FULL = "torch{}-cxx11-cu130-x86_64-linux"
CPU = "torch213-cxx11-cpu-x86_64-linux"
ARCHS = ("8.0", "9.0a", "12.0", "12.0+PTX")
BUILD = """
[general]
name = "classic"
version = 1
edition = 5
license = "MIT"
backends = ["cpu", "cuda"]
[torch]
src = ["torch-ext/binding.cpp"]
stable-abi = {cuda = "2.10"}
[kernel.plain]
backend = "cuda"
depends = []
src = ["csrc/plain.cu", "csrc/plain.h"]
[kernel.seeing]
backend = "cuda"
depends = ["torch"]
src = ["csrc/seeing.cu", "csrc/host.cpp", "csrc/plain.h"]
[kernel.host]
backend = "cpu"
depends = []
src = ["csrc/cpu.cpp"]
"""
FILES = {
    "torch-ext/binding.cpp": '#include "registration.h"\nTORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, m) {}\n',
    "torch-ext/classic/__init__.py": "__all__ = []\n",
    "csrc/plain.h": "#pragma once\n",
    "csrc/plain.cu": '#include "plain.h"\n',
    "csrc/seeing.cu": '#include "plain.h"\n',
    "csrc/host.cpp": '#include "plain.h"\n',
    "csrc/cpu.cpp": "int cpu() { return 1; }\n",
}


def make_nvcc(root: Path, version: str = "13.0", host: str = "/usr/bin/g++-12 -m64") -> Nvcc:
    return Nvcc(
        version=MajorMinor.parse(version),
        release=f"{version}.88",
        digest=f"nvcc {version}",
        root=root,
        nvcc=root / "bin" / "nvcc",
        include=(root / "include", root / "include" / "cccl"),
        cudart=root / "lib" / f"libcudart.so.{version.split('.')[0]}",
        host=host,
        source="wheels",
        host_identity="gcc 12.2.0",
    )


class Classic:
    """Units of the kernel below ``folder``, whose files ``build`` and ``files`` replace."""

    def __init__(self, folder: Path, *, build: str = BUILD, files: dict[str, str] | None = None) -> None:
        self.folder = folder
        for name, text in {**FILES, **(files or {}), "build.toml": build}.items():
            path = folder / "classic" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        self.nvccs = {nvcc.version: nvcc for nvcc in (make_nvcc(folder / "cuda", v) for v in ("12.4", "13.0"))}

    def variant(self, name: str = STABLE, *, nvcc: str | None = "13.0", archs: Iterable[str] = ARCHS) -> VariantPlan:
        kernel, variant = read_kernel(self.folder / "classic"), parse(name)
        stable, cuda = variant.framework.kind == "torch-stable-abi", variant.backend.name == "cuda"
        listed = tuple(map(Arch.parse, archs))
        return VariantPlan(
            kernel=kernel,
            variant=variant,
            uid=uid(kernel, variant.backend.name),
            sdk=variant.framework.version,
            toolkit=None,
            target=MajorMinor(2, 10) if stable else None,
            nvcc=MajorMinor.parse(nvcc) if nvcc and cuda else None,
            archs={f"kernel.{c.key}": listed for c in kernel.components if c.backend == "cuda" and cuda},
        )

    def toolchain(self, variants: Iterable[VariantPlan]) -> Toolchain:
        nowhere, plan = self.folder / "nowhere", Plan(variants=tuple(variants))
        return Toolchain(
            plan=plan,
            host=HostCompiler(cxx="g++", version=(12, 2, 0), identity="gcc 12.2.0"),
            floor=Floor(
                root=nowhere,
                torch=nowhere,
                digest="floor",
                link={key: (f"-l{key}",) for key in ("cpu", "cuda", "nvcc")},
            ),
            toolkits={},
            sdks={
                v.sdk: TorchSdk(
                    version=v.sdk, release=f"{v.sdk}.0", digest=f"sdk {v.sdk}", root=nowhere, include=(nowhere / "i",)
                )
                for v in plan.variants
            },
            nvccs=self.nvccs,
        )

    def units(self, *variants: VariantPlan) -> list[dict[str, Unit]]:
        """Source or role → unit, of each variant; the link is ``link``."""
        found = units_of(self.toolchain(variants or [self.variant()]), Sources())
        return [{**each.objects, "link": each.link} for each in found]

    def unit(self, source: str = "csrc/plain.cu", **plan: object) -> Unit:
        return self.units(replace(self.variant(), **plan))[0][source]
