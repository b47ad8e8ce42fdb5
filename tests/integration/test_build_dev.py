"""The author's inner loop: edit, ``build --dev``, load."""

from __future__ import annotations

import io
import json
import re
import shutil
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from toy_kernel import ROOT, Project, python

pytestmark = pytest.mark.toolchain


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project.make(tmp_path)


def loading(said: str) -> str:
    """The Python code of the printed line that loads what was built."""
    (line,) = [line for line in said.splitlines() if line.startswith('python -c "')]
    return line.removeprefix('python -c "').removesuffix('"')


def test_an_edit_is_loaded_by_the_line_that_the_build_prints(project: Project) -> None:
    toy = project.write()
    first = project.run("build", "toy", "--dev", CUDA_VISIBLE_DEVICES="")
    assert first.returncode == 0, first.stderr
    count = f"import torch\n{loading(first.stdout).replace('print(', 'kernel = (')}\nprint(kernel.count(torch.ones(1)))"
    assert python(count, CUDA_VISIBLE_DEVICES="") == "1"
    toy.edit("csrc/count.h", "kStep = 1", "kStep = 5")
    second = project.run("build", "toy", "--dev", CUDA_VISIBLE_DEVICES="")
    assert second.returncode == 0, second.stderr
    assert python(count, CUDA_VISIBLE_DEVICES="") == "5"
    assert f"export LOCAL_KERNELS=acme/toy={project.place}/dist/dev/toy" in second.stdout
    assert not (project.place / "dist" / "toy").exists()


def test_one_architecture_with_line_numbers_and_not_for_publishing(project: Project) -> None:
    shutil.copytree(ROOT / "tests" / "integration" / "kernels" / "trio", project.place / "kernels-src" / "trio")
    build = project.place / "kernels-src" / "trio" / "build.toml"
    build.write_text(build.read_text() + '\n[general.hub]\nrepo-id = "acme/trio"\n')
    done = project.run("build", "trio", "--dev", "--arch", "9.0a", "--json")
    assert done.returncode == 0, done.stderr
    (variant,) = json.loads(done.stdout)["variants"]
    assert variant["archs"] == ["9.0a"]
    folder = Path(variant["path"])
    assert json.loads((folder / "metadata.json").read_text())["kernel-builder"]["dev"] is True
    (library,) = folder.glob("*.so")
    codes = cubins(library)
    assert len(codes) == 3
    assert all(code.get_section_by_name(".debug_line") for code in codes)
    refused = project.run("publish", "trio", "--out", "dist/dev", "--to", "hub", "--allow-untested")
    assert refused.returncode == 8
    assert "built with --dev" in refused.stderr
    assert not list(project.place.glob("hub/**/refs/*/*"))


def cubins(library: Path) -> list[ELFFile]:
    with library.open("rb") as file:
        images = ELFFile(file).get_section_by_name(".nv_fatbin").data()
    return [ELFFile(io.BytesIO(images[m.start() :])) for m in re.finditer(rb"\x7fELF\x02\x01", images)]
