"""metadata.json of variants with code that nvcc compiled."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernel_builder.package.describe import describe
from kernel_builder.spec.model import Component
from kernel_builder.toolchain.model import Nvcc
from kernel_loader.format.archs import Arch
from kernel_loader.format.versions import MajorMinor

CUDA = "torch-stable-abi210-cu128-x86_64-linux"
ROOT = Path("/somewhere/on/this/machine")
NVCC = Nvcc(
    version=MajorMinor(12, 8),
    release="12.8.93",
    digest="ca" * 32,
    root=ROOT,
    nvcc=ROOT / "bin/nvcc",
    include=(ROOT / "include",),
    cudart=ROOT / "lib/libcudart.so.12",
    host="/usr/bin/g++-13",
    source="system",
    host_identity="gcc 13.3.0",
    origin=str(ROOT),
)


@pytest.fixture
def classic(kernel, make_artefact):
    def make(*flags: str, archs: dict[str, str]):
        components = tuple(
            Component(key=key, backend="cuda", depends=(), sources=(f"{key}.cu",), cuda_flags=flags) for key in archs
        )
        artefact = make_artefact(replace(kernel, components=components), CUDA)
        planned = {f"kernel.{key}": tuple(map(Arch.parse, text.split())) for key, text in archs.items()}
        return replace(artefact, plan=replace(artefact.plan, toolkit=None, nvcc=NVCC.version, archs=planned))

    return make


@pytest.fixture
def described(toolchain):
    def describe_(artefact):
        nvccs = {NVCC.version: NVCC}
        files = {artefact.filename: b""}
        return describe(artefact, replace(toolchain, nvccs=nvccs), files, source_digest="0" * 64, provenance={})

    return describe_


def test_what_compiled_it_is_recorded_without_a_folder_of_this_machine(classic, described):
    builder = described(classic(archs={"a": "8.0"})).builder

    assert builder["nvcc"] == {
        "release": "12.8.93",
        "digest": "ca" * 32,
        "source": "system",
        "host-compiler": "gcc 13.3.0",
        "cudart": [],
    }
    assert "toolkit" not in builder
    assert str(ROOT) not in str(builder)


def test_declared_are_the_architectures_that_every_component_serves(classic, described):
    metadata = described(classic(archs={"a": "8.0 9.0a 12.0 12.0+PTX", "b": "8.0 9.0a"}))

    assert [str(arch) for arch in metadata.archs] == ["8.0", "9.0a"]


@pytest.mark.parametrize(
    ("flags", "floor"),
    [
        ((), None),
        (("-compress-mode=size",), "12.4"),
        (("--compress-mode", "balance"), "12.4"),
        (("-compress-mode=speed",), None),
        (("-compress-mode=size", "-compress-mode=none"), None),
        (("-Xfatbin=-compress-all",), None),
    ],
)
def test_compression_that_old_drivers_cannot_read_is_a_floor(classic, described, flags, floor):
    assert described(classic(*flags, archs={"a": "8.0"})).builder["floors"].get("driver") == floor
