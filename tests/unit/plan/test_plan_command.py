"""``kernel-builder plan`` as it is typed: cells, CI matrices, what a hub lacks; a typing error prints nothing else."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING

import pytest

from kernel_builder.cli.main import run
from kernel_builder.publish.folder import Repository
from kernel_loader.format.archs import Arch
from kernel_loader.format.hubstore import Commit
from kernel_loader.format.metadata import Metadata, dump_metadata

if TYPE_CHECKING:
    from pathlib import Path

SPEC = """
[general]
name = "toy"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu", "cuda"]
[torch]
src = ["binding.cpp"]
stable-abi = "2.9"
[kernel.toy_cpu]
backend = "cpu"
depends = []
src = ["toy.cpp"]
[kernel.toy_cuda]
backend = "cuda"
depends = []
src = ["toy.cpp"]
"""
DEVICE = """
[device.toy]
src = "toy.cu"
capabilities = ["8.0", "9.0", "10.0", "12.0+PTX"]
"""
CPU, CU126, CU128, CU130 = (f"torch-stable-abi27-{b}-x86_64-linux" for b in ("cpu", "cu126", "cu128", "cu130"))


@pytest.fixture(autouse=True)
def kernels(tmp_path, monkeypatch) -> Path:
    for name in ("TORCH_CUDA_ARCH_LIST", "MAX_JOBS", "KERNEL_BUILDER_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("KERNEL_BUILDER_CACHE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "kernels-src" / "toy"
    (folder / "torch-ext" / "toy").mkdir(parents=True)
    header = tmp_path / "kernels-src" / "common" / "include" / "kb" / "torch.h"
    header.parent.mkdir(parents=True)
    for path, text in {
        header: "#pragma once\n",
        folder / "build.toml": SPEC,
        folder / "kernel-builder.toml": DEVICE,
        folder / "binding.cpp": '#include "kb/torch.h"\n',
        folder / "toy.cpp": "\n",
        folder / "toy.cu": "\n",
        folder / "torch-ext" / "toy" / "__init__.py": "__all__ = []\n",
    }.items():
        path.write_text(text)
    return folder


def hub(root: Path, variants: dict[str, str], *, name: str = "toy", branch: str = "v1") -> None:
    """A folder hub whose version holds these variants with these architectures."""
    repository = Repository(root / "acme" / "toy")
    files = {
        f"build/{variant}/metadata.json": dump_metadata(
            Metadata(
                name=name,
                id=f"_{name}_x",
                version=1,
                license="Apache-2.0",
                backend="cpu" if "-cpu-" in variant else "cuda",
                archs=tuple(map(Arch.parse, archs.split())),
            )
        )
        for variant, archs in variants.items()
    }
    assert repository.advance(branch, repository.head(branch), Commit(tree=repository.add(files)))


def planned(capsys, *words: str) -> list[str]:
    assert run(["plan", "-q", *words]) == 0
    return [line.removeprefix("toy/") for line in capsys.readouterr().out.splitlines()]


def test_cells_are_a_table_with_counts_below(capsys):
    assert run(["plan", "--cells", "--torch", "2.9"]) == 0
    *lines, blank, last = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["KERNEL", "TORCH", "BUILD", "GPU", "VARIANT", "GRADE"]
    assert (blank, last) == ("", "28 cells: 21 native, 4 PTX, 3 unserved")
    rows = [line.split() for line in lines[1:]]
    assert ["toy", "2.9", "cu126", "10.0", "12.0", CU126, "PTX,", "driver", "570.26", "or", "newer"] in rows


def test_cells_as_json_are_complete(capsys):
    assert run(["plan", "--cells", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    cells = data["cells"]["toy"]
    assert len(cells) == 243
    keys = {(c["torch"], c["backend"], c["capability"]) for c in cells}
    assert len(keys) == 243
    assert {c["grade"] for c in cells} == {"native", "PTX", "unserved"}
    assert [c["driver"] is None for c in cells] == [c["grade"] != "PTX" for c in cells]
    assert [c["reason"] is None for c in cells] == [c["grade"] != "unserved" for c in cells]
    assert {c["capability"] for c in cells if c["grade"] == "unserved"} == {"7.5"}
    assert {c["variant"] for c in cells if c["variant"]} == {v["variant"] for v in data["variants"]}


def test_an_unserved_cell_says_why(capsys, kernels):
    (kernels / "kernel-builder.toml").write_text(DEVICE.replace('"12.0+PTX"', '"12.0"'))
    (kernels / "build.toml").write_text(SPEC.replace("[torch]", '[torch]\nmaxver = "2.14"\nminver = "2.9"'))
    assert run(["plan", "--cells", "--json", "--torch", "2.8,2.9", "--backend", "cuda"]) == 0
    cells = json.loads(capsys.readouterr().out)["cells"]["toy"]
    reasons = {(c["torch"], c["backend"], c["capability"]): c["reason"] for c in cells if c["grade"] == "unserved"}
    assert reasons["2.8", "cu126", "8.0"] == "torch.minver is 2.9"
    assert reasons["2.9", "cu126", "12.0"] == "has code for 8.0, 9.0, the GPU is 12.0"
    assert ("2.9", "cu128", "12.0") not in reasons


def test_a_selection_names_torch_builds_and_gets_what_serves_them(capsys):
    assert planned(capsys, "--torch", "2.9", "--cuda", "12.8") == [CU128]
    full = ["--matrix", "full"]
    assert planned(capsys, "--torch", "2.9", "--cuda", "12.8", *full) == ["torch29-cxx11-cu128-x86_64-linux"]
    assert len(planned(capsys, *full)) == 9 + 26


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["--torch", "2.16"], "torch 2.16 is not in the matrix", "2.15"),
        (["--cuda", "12.7"], "CUDA 12.7 is not in the matrix", "did you mean '12."),
        (["--backend", "cdua"], "backend 'cdua' is not known", "did you mean 'cuda'?"),
        (["--only", "torch-stable-abi27-cu131-*"], "matches no variant", "torch-stable-abi27-cu1"),
        (["--skip", "tiy/*"], "matches no variant", "toy/"),
    ],
)
def test_a_name_that_is_none_is_exit_code_2_and_all_that_is_printed(words, message, hint, capsys):
    assert run(["plan", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: ")
    assert message in err
    assert hint in err.partition("hint:")[2]


@pytest.mark.parametrize("words", [[], ["--matrix", "full", "--torch", "2.9,2.15"]])
def test_a_ci_matrix_has_one_job_per_variant_whose_command_builds_just_that(words, capsys):
    assert run(["plan", "--format", "github", *words]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    jobs = json.loads(line)["include"]
    assert [job["variant"] for job in jobs] == planned(capsys, *words)
    for job in jobs:
        program, verb, *arguments = shlex.split(job["command"])
        assert (program, verb) == ("kernel-builder", "build")
        assert planned(capsys, *arguments) == [job["variant"]]
        assert planned(capsys, *words, "--only", job["only"]) == [job["variant"]]
        assert ("12." in job["cuda"] or "13." in job["cuda"]) == ("-cu1" in job["variant"])


def test_a_ci_command_repeats_where_kernels_and_nvcc_are(capsys, kernels, tmp_path):
    kernels.parent.rename(tmp_path / "other folder")
    assert run(["plan", "--format", "github", "--kernels-dir", "other folder", "--only", CPU]) == 0
    (job,) = json.loads(capsys.readouterr().out)["include"]
    assert shlex.split(job["command"])[2:] == ["toy", "--only", CPU, "--kernels-dir", "other folder"]


def test_only_what_a_hubs_version_lacks_is_planned(capsys, tmp_path):
    hub(tmp_path / "hub", {CPU: "", CU126: "8.0 9.0+PTX", CU128: "8.0 9.0 10.0 12.0+PTX"})
    assert planned(capsys, "--missing", "hub/acme/toy@v1") == [CU130]
    hub(
        tmp_path / "hub",
        {CPU: "", CU126: "8.0 9.0+PTX", CU128: "8.0 9.0 10.0 12.0+PTX", CU130: "8.0 9.0 10.0 12.0+PTX"},
    )
    assert run(["plan", "--missing", "hub/acme/toy@v1"]) == 3
    assert "Nothing is missing" in capsys.readouterr().err


def test_a_new_torch_needs_one_variant_more_of_each_kind(capsys, tmp_path, kernels):
    """Everything up to 2.14 is there with the full ABI; what 2.15 needs is planned, and serves no older torch worse."""
    (kernels / "build.toml").write_text(SPEC.replace('stable-abi = "2.9"\n', ""))
    before = [v for v in planned(capsys, "--matrix", "full") if "torch215" not in v]
    archs = {"cu126": "8.0 9.0+PTX", "cpu": ""}
    hub(tmp_path / "hub", {v: archs.get(v.split("-")[2], "8.0 9.0 10.0 12.0+PTX") for v in before})
    assert planned(capsys, "--missing", "hub/acme/toy@v1") == [
        f"torch215-cxx11-{backend}-x86_64-linux" for backend in ("cpu", "cu126", "cu130")
    ]


@pytest.mark.parametrize(
    ("text", "code", "message"),
    [
        ("toy@v1", 2, "names no version of a repository"),
        ("hub/acme/toy", 2, "names no version of a repository"),
        ("hub/acme/toy@main", 2, "names no version of a repository"),
        ("hub/acme/toi@v1", 2, "kernels that it has: acme/toy"),
        ("hub/acme/toy@v2", 2, "branches that it has: v1, v3"),
        ("hub/acme/toy@v3", 2, "The hub's v3 holds other, and the kernel here is toy v1"),
        ("hub/../toy@v1", 2, "cannot be part of a repository id"),
    ],
)
def test_a_hub_without_that_version_of_the_kernel_is_a_usage_error(text, code, message, capsys, tmp_path):
    hub(tmp_path / "hub", {CPU: ""})
    hub(tmp_path / "hub", {CPU: ""}, name="other", branch="v3")
    assert run(["plan", "--missing", text]) == code
    out, err = capsys.readouterr()
    assert (out, message in err) == ("", True), err


def test_a_damaged_hub_is_found_out(capsys, tmp_path):
    hub(tmp_path / "hub", {CPU: ""})
    (blob,) = (path for path in (tmp_path / "hub").rglob("blobs/*") if path.is_file())
    blob.write_bytes(blob.read_bytes()[:-1] + b" ")
    assert run(["plan", "--missing", "hub/acme/toy@v1"]) == 7
    assert "is not what its hash says" in capsys.readouterr().err
