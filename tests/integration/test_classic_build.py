"""A kernel of the classic kind, RMSNorm with ``<<<>>>``, compiled by the locked nvcc: checked, packaged, the same."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernel_builder.check.check import check_artefact, check_variant
from kernel_builder.check.elf import read_elf
from kernel_builder.check.resources import resources
from kernel_builder.compile.build import build
from kernel_builder.package.package import package
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection
from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.spec.read import read_kernel
from kernel_builder.toolchain.provision import provision
from kernel_loader.format.archs import Arch
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from kernel_builder.compile.model import Artefact, BuildResult
    from kernel_builder.toolchain.model import Toolchain

pytestmark = pytest.mark.toolchain

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "tests/integration/kernels/classic-rmsnorm"
OLDEST, NEWEST = "torch-stable-abi210-cu126-x86_64-linux", "torch-stable-abi210-cu130-x86_64-linux"


class Built:
    """A build of a copy of the kernel in ``folder``, with a store that has no units yet."""

    def __init__(self, folder: Path, only: str, archs: str) -> None:
        shutil.copytree(SOURCE, folder / "classic-rmsnorm")
        self.kernel = read_kernel(folder / "classic-rmsnorm")
        selection = Selection.parse(only=[only])
        self.settings = replace(Settings.from_environment(), store=folder / "store")
        plan = make_plan([self.kernel], selection=selection, cuda_archs=archs)
        self.toolchain: Toolchain = provision(plan, Settings.from_environment(), SilentReporter())
        self.result: BuildResult = build(self.toolchain, self.settings, SilentReporter())

    @property
    def artefact(self) -> Artefact:
        (artefact,) = self.result.artefacts
        return artefact


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    return Built(tmp_path_factory.mktemp("classic"), NEWEST, "8.0 9.0a 12.0+PTX")


@pytest.fixture(scope="module")
def packaged(built: Built, tmp_path_factory: pytest.TempPathFactory) -> Path:
    findings = {built.artefact.plan.label: check_artefact(built.artefact, built.toolchain)}
    out = tmp_path_factory.mktemp("dist")
    package(built.kernel, [built.artefact], built.toolchain, findings, out=out, settings=built.settings)
    return out / "classic-rmsnorm" / "build" / NEWEST


def test_the_library_passes_every_check(built: Built) -> None:
    assert [str(f) for f in check_artefact(built.artefact, built.toolchain) if f.severity != "note"] == []


def test_nothing_is_bundled_and_nothing_leaks(built: Built) -> None:
    elf = read_elf(built.artefact.library)

    assert {name for name in elf.needed if not name.startswith(("libc.so", "libstdc++", "libgcc_s", "libm.so"))} == {
        "libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so", "libc10_cuda.so", "libcudart.so.13",
    }  # fmt: skip
    assert (elf.rpath, elf.runpath, elf.unique) == ((), (), ())
    assert elf.exports == (f"PyInit_{built.artefact.plan.op_id}",)


def test_operators_are_registered_under_the_librarys_own_name(built: Built) -> None:
    content = built.artefact.library.read_bytes()

    # torch up to 2.10 registers definitions under the text of its argument: without a macro around it, under this one.
    assert b"TORCH_EXTENSION_NAME" not in content
    assert built.artefact.plan.op_id.encode() in content


def test_the_binary_has_code_for_exactly_the_planned_gpus(built: Built) -> None:
    archs = built.artefact.plan.archs["kernel.launch"]
    assert [str(arch) for arch in archs] == ["8.0", "9.0a", "12.0", "12.0+PTX"]

    assert {*resources(built.artefact)["kernel.launch"]} == {str(arch) for arch in archs if not arch.ptx}
    narrowed = replace(built.artefact.plan, archs={**built.artefact.plan.archs, "kernel.launch": (Arch(8, 0),)})
    found = check_artefact(replace(built.artefact, plan=narrowed), built.toolchain)
    assert "kernel.launch: machine code for 9.0a is inside but not promised." in [finding.message for finding in found]


def test_registers_and_shared_memory_of_its_entries_are_known(built: Built) -> None:
    for entries in resources(built.artefact)["kernel.launch"].values():
        assert len(entries) == 3, "one for each element type"
        assert all(0 < entry["registers"] <= 128 and entry["threads"] == 256 for entry in entries.values())


def test_the_package_says_what_made_it_and_what_it_needs(packaged: Path) -> None:
    metadata = json.loads((packaged / "metadata.json").read_text())

    assert metadata["backend"] == {"type": "cuda", "archs": ["12.0+PTX", "8.0", "9.0a"]}
    assert metadata["kernel-builder"]["nvcc"]["release"].startswith("13.0.")
    assert metadata["kernel-builder"]["nvcc"]["cudart"] == ["libcudart.so.13"]
    assert [str(f) for f in check_variant(packaged, imports=False) if f.severity == "error"] == []


def test_two_builds_in_folders_of_different_depth_are_the_same_bytes(built: Built, tmp_path: Path) -> None:
    other = Built(tmp_path / "another" / "place" / "far" / "below", NEWEST, "8.0 9.0a 12.0+PTX")

    assert other.result.reused == 0
    assert other.artefact.library.read_bytes() == built.artefact.library.read_bytes()


def test_the_older_nvcc_makes_a_variant_for_cuda_12_that_is_the_same_anywhere_too(tmp_path: Path) -> None:
    first, second = (Built(tmp_path / place, OLDEST, "8.0 9.0a") for place in ("here", "far/below"))

    assert [str(f) for f in check_artefact(first.artefact, first.toolchain) if f.severity != "note"] == []
    assert first.toolchain.nvccs[MajorMinor(12, 4)].release == "12.4.131"
    assert "libcudart.so.12" in read_elf(first.artefact.library).needed
    assert second.result.reused == 0
    assert second.artefact.library.read_bytes() == first.artefact.library.read_bytes()


def test_no_path_of_this_machine_is_in_the_library(built: Built) -> None:
    content = built.artefact.library.read_bytes()
    for folder in (built.kernel.root, built.settings.store, Settings.from_environment().store, ROOT):
        assert str(folder).encode() not in content
    assert b"classic-rmsnorm/csrc/rms_norm_op.cu" in content, "the name that stands for it"


def test_a_changed_torch_side_leaves_the_plain_object_alone(built: Built) -> None:
    source = built.kernel.root / "csrc" / "rms_norm_op.cu"
    source.write_text(source.read_text().replace("sizes do not match", "sizes differ"))
    kernel = read_kernel(built.kernel.root)
    plan = make_plan([kernel], selection=Selection.parse(only=[NEWEST]), cuda_archs="8.0 9.0a 12.0+PTX")
    again = build(replace(built.toolchain, plan=plan), built.settings, SilentReporter())

    assert not any("csrc/rms_norm.cu" in label for label in again.compiled)
    assert any("csrc/rms_norm_op.cu" in label for label in again.compiled)
