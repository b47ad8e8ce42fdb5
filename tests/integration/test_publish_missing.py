"""A new torch came out: only what a published version lacks is built, and added without touching the rest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from toy_kernel import VARIANT, Project, python

if TYPE_CHECKING:
    from pathlib import Path

    from toy_kernel import Toy

pytestmark = pytest.mark.toolchain

OLDER = "torch29-cxx11-cpu-x86_64-linux"
OPEN = ("--allow-untested",)
LOAD = """
import sys, torch
from kernel_loader import get_kernel
print(get_kernel("acme/toy", version=1, hub=sys.argv[1]).count(torch.zeros(1)))
"""
PEER = """
import sys
from pathlib import Path
import torch
from kernels import get_local_kernel
print(get_local_kernel(Path(sys.argv[1])).count(torch.zeros(1)))
"""


@pytest.fixture(scope="module")
def toy(tmp_path_factory) -> Toy:
    """Published for torch 2.10 and newer."""
    project = Project.make(tmp_path_factory.mktemp("publish"))
    toy = project.write()
    toy.build()
    publish(toy)
    return toy


def publish(toy: Toy, *options: str, status: int = 0) -> dict[str, object]:
    done = toy.project.run("publish", toy.name, "--to", "hub", *OPEN, *options, "--json")
    assert done.returncode == status, done.stderr
    return json.loads(done.stdout)["published"][0] if status == 0 else {"stderr": done.stderr}


def head(toy: Toy) -> dict[str, object]:
    (ref,) = sorted((toy.project.place / "hub/acme/toy/refs/v1").iterdir())[-1:]
    return json.loads((toy.project.place / f"hub/acme/toy/commits/{ref.read_text().strip()}.json").read_text())


def hub(toy: Toy) -> Path:
    return toy.project.place / "hub"


def checked_out(toy: Toy) -> Path:
    """The branch as files, as a client of another tool has them after a download."""
    folder = toy.project.place / "checked-out"
    for path, entry in head(toy)["tree"].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes((hub(toy) / "acme/toy/blobs" / entry["sha256"]).read_bytes())
    return folder


def test_missing_variants_are_built_and_added(toy):
    missing = f"{hub(toy)}/acme/toy@v1"
    done = toy.project.run("plan", toy.name, "--missing", missing, "--torch", "2.9,2.13", "-q")
    assert done.stdout.split() == [f"toy/{OLDER}"], done.stderr

    # The sources have moved on, the public API has not.
    toy.edit("csrc/count.cpp", '#include "count.h"\n', '#include "count.h"\n// faster\n')
    done = toy.project.run("build", toy.name, "--missing", missing, "--torch", "2.9", "--out", "later", "--json")
    assert done.returncode == 0, done.stderr
    assert [variant["variant"] for variant in json.loads(done.stdout)["variants"]] == [OLDER]

    before = head(toy)["tree"]
    added = publish(toy, "--out", "later", "--add-missing")
    after = head(toy)["tree"]
    assert added["second-source-digest-group"]
    assert {path: after[path] for path in before if path != "manifest.json"} == {
        path: entry for path, entry in before.items() if path != "manifest.json"
    }
    assert {path.split("/")[1] for path in after if path.startswith("build/")} == {VARIANT, OLDER}

    assert publish(toy, "--out", "later", "--add-missing")["status"] == "no-changes"
    done = toy.project.run("plan", toy.name, "--missing", missing, "--torch", "2.9")
    assert done.returncode == 3
    assert "Nothing is missing" in done.stderr

    assert python(LOAD, hub(toy)) == "1"
    assert python(PEER, checked_out(toy)) == "1"


def test_another_public_api_is_not_added(toy):
    toy.edit("torch-ext/toy/__init__.py", "def count(x):", "def count(x, start=0):")
    done = toy.project.run("build", toy.name, "--only", OLDER, "--matrix", "full", "--out", "changed")
    assert done.returncode == 0, done.stderr
    said = publish(toy, "--out", "changed", "--add-missing", status=0)
    assert said["status"] == "no-changes", "the branch has this variant"
    refused = publish(toy, "--out", "changed", "--allow-fewer", status=8)["stderr"]
    assert "- count(x)" in refused
    assert "+ count(x, start=0)" in refused
    assert "set version = 2" in refused


def test_targets_that_are_not_there_yet_are_refused(toy):
    done = toy.project.run("publish", toy.name, "--to", "hf://acme/toy")
    assert done.returncode == 2
    assert "hubs are folders so far" in done.stderr
