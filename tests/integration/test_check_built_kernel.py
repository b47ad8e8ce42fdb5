"""A first-party kernel as it is really built and packaged passes; the same files with a false promise do not."""

from __future__ import annotations

import json
import shutil
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernel_builder.check.check import check_artefact, check_variant
from kernel_builder.check.report import errors
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

if TYPE_CHECKING:
    from kernel_builder.compile.model import Artefact
    from kernel_builder.toolchain.model import Toolchain

pytestmark = pytest.mark.toolchain

KERNELS = Path(__file__).parents[2] / "kernels-src"


@dataclass(frozen=True, kw_only=True)
class Built:
    """All variants of rmsnorm, and their folders by name."""

    toolchain: Toolchain
    artefacts: tuple[Artefact, ...]
    folders: dict[str, Path]

    def cuda(self) -> Artefact:
        return next(a for a in self.artefacts if a.plan.backend == "cuda")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    settings, reporter = Settings.from_environment(), SilentReporter()
    kernel = read_kernel(KERNELS / "rmsnorm", common=KERNELS / "common")
    toolchain = provision(make_plan((kernel,), selection=Selection(), cuda_archs=None), settings, reporter)
    result = build(toolchain, settings, reporter)
    assert not result.failed
    out = tmp_path_factory.mktemp("dist")
    distribution = package(kernel, result.artefacts, toolchain, {}, out=out, settings=settings)
    return Built(
        toolchain=toolchain, artefacts=result.artefacts, folders={v.name: v.path for v in distribution.variants}
    )


def test_every_built_variant_keeps_its_promises(built: Built) -> None:
    assert built.artefacts
    for artefact in built.artefacts:
        findings = check_artefact(artefact, built.toolchain)
        assert [f for f in findings if f.severity != "note"] == []


def test_every_packaged_variant_keeps_its_promises(built: Built) -> None:
    for path in built.folders.values():
        findings = check_variant(path)
        assert [f for f in findings if f.severity != "note"] == []


def test_an_architecture_more_or_less_in_the_plan_is_found(built: Built) -> None:
    artefact = built.cuda()
    ((device, archs),) = artefact.plan.archs.items()
    for changed, word in ((archs[1:], "inside but not promised"), ((*archs, Arch(8, 7)), "promised but not inside")):
        plan = replace(artefact.plan, archs={device: changed})
        findings = check_artefact(replace(artefact, plan=plan), built.toolchain)
        assert errors(findings) == 1
        assert any(word in f.message for f in findings)


def test_resources_cover_every_kernel_and_architecture(built: Built) -> None:
    artefact = built.cuda()
    for device, archs in artefact.plan.archs.items():
        found = resources(artefact)[device]
        assert found.keys() == {str(a) for a in archs if not a.ptx}
        assert len({tuple(sorted(kernels)) for kernels in found.values()}) == 1
        assert all(row["registers"] > 0 for kernels in found.values() for row in kernels.values())


def test_a_false_architecture_in_the_metadata_is_found(built: Built, tmp_path: Path) -> None:
    name = str(built.cuda().plan.variant)
    path = tmp_path / name
    shutil.copytree(built.folders[name], path)
    metadata = json.loads((path / "metadata.json").read_text())
    metadata["backend"]["archs"].append("9.0a")
    (path / "metadata.json").write_text(json.dumps(metadata))
    findings = check_variant(path)
    assert [f.code for f in findings if f.severity == "error"] == ["archs"]
