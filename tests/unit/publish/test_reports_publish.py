"""Reports of other tools' users about publishing (B032 to B044), each driven through the command line."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from toy_release import BINDING, FUNCTION, OLDER, A, B, C, builds, edit, packaged, tree, write_receipt

from kernel_builder import files as whole_files
from kernel_builder.cli.main import run
from kernel_loader.format.hubstore import RepoId
from kernel_loader.hub import HubRepo, parse_tree

if TYPE_CHECKING:
    from pathlib import Path

OPEN = ("--allow-untested",)
# Publishes into copies of the hub, and dies as by kill -9 after 0, 1, 2, … files until one run comes through.
KILLED = """
import os, shutil
from itertools import count
from kernel_builder import files
from kernel_builder.cli.main import run
from kernel_builder.publish import folder

def publish(left, hub, real=files.unfinished):
    def dying(*arguments, **options):
        nonlocal left
        made, left = real(*arguments, **options), left - 1
        return os._exit(9) if left < 0 else made

    files.unfinished = folder.unfinished = dying
    os._exit(run(["publish", "--to", hub, "--allow-untested", "-q"]))

for number in count():
    shutil.copytree("hub", f"hub{number}")
    child = os.fork() or publish(number, f"hub{number}")
    if os.waitpid(child, 0)[1] == 0:
        break
print(number)
"""


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch) -> Path:
    """A project folder: kernels-src, dist and hub are found by their names."""
    monkeypatch.delenv("KERNEL_BUILDER_DEBUG", raising=False)
    monkeypatch.setenv("KERNEL_BUILDER_CACHE", str(tmp_path / "store"))
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def publish(capsys):
    """``kernel-builder publish … --to hub --json``: what it published, or what it said when it ended otherwise."""

    def call(*arguments: str, status: int = 0, to: str = "hub") -> Any:
        code = run(["publish", *arguments, "--to", to, "--json"])
        said = capsys.readouterr()
        assert code == status, said.err
        assert "Traceback" not in said.err
        return json.loads(said.out)["published"] if status == 0 else said.err

    return call


def branches(place: Path, repo: str = "acme/toy") -> list[str]:
    refs = place / "hub" / repo / "refs"
    return sorted(path.name for path in refs.iterdir()) if refs.is_dir() else []


def heads(place: Path, branch: str = "v1") -> int:
    return len(list((place / "hub/acme/toy/refs" / branch).iterdir()))


def again(place: Path, *variants: str, **made: Any) -> None:
    """Package in a fresh dist folder."""
    if (place / "dist").exists():
        (place / "dist").rename(place / f"dist-{len(list(place.iterdir()))}")
    packaged(place, *variants, **made)


def test_b032_a_new_version_holds_no_old_variants(place, publish):
    packaged(place, A, B)
    publish(*OPEN)
    again(place, A, version=2)
    publish(*OPEN)
    assert branches(place) == ["v1", "v2"]
    assert builds(place / "hub", "v2") == {A}
    assert set(tree(place / "hub", "v2")) - {p for p in tree(place / "hub", "v2") if p.startswith("build/")} == {
        "manifest.json",
        "source.tar.gz",
    }
    assert builds(place / "hub") == {A, B}


def test_b033_commits_go_where_the_command_or_build_toml_says(place, publish):
    packaged(place, A, version=3)
    publish(*OPEN)
    assert branches(place) == ["v3"]
    again(place, A, branch="exp")
    publish(*OPEN)
    assert branches(place) == ["exp", "v3"]
    publish("--branch", "v1", *OPEN)
    assert branches(place) == ["exp", "v1", "v3"]
    assert heads(place, "exp") == 1


def test_b033_the_target_is_said_before_anything_is_written(place, capsys):
    packaged(place, A, name="other", repo_id="acme/other", version=2)
    packaged(place, A)
    assert run(["publish", "--branch", "v1", "--to", "hub"]) == 8
    said = capsys.readouterr().err
    assert said.index("acme/toy@v1 in ") < said.index("--allow-untested")
    assert "other is left out: its build.toml says version 2" in said
    assert not (place / "hub").exists()


@pytest.mark.parametrize(("branch", "status"), [("v9", 3), ("exp", 2), ("v1_0", 2)])
def test_b033_a_branch_that_is_no_kernels_version_is_refused(place, publish, branch, status):
    packaged(place, A)
    publish("--branch", branch, *OPEN, status=status)
    assert not (place / "hub").exists()


def test_b034_exactly_the_stale_files_go(place, publish):
    packaged(place, A, B, extra={f"x{n}.py": b"" for n in range(2)})
    publish(*OPEN)
    edit(place / "hub", {"README.md": b"# card\n", ".gitattributes": b"*.so filter=lfs\n"})
    before, count = tree(place / "hub"), heads(place)
    again(place, A)
    (planned,) = publish(*OPEN, "--dry-run")
    assert tree(place / "hub") == before
    (outcome,) = publish(*OPEN)
    after = tree(place / "hub")
    gone = {f"build/{A}/x0.py", f"build/{A}/x1.py"}
    assert before.keys() - after.keys() == gone
    assert {operation["path"] for operation in planned["operations"] if operation["operation"] == "remove"} == gone
    assert planned["operations"] == outcome["operations"]
    untouched = [path for path in before if B in path or path in ("README.md", ".gitattributes")]
    assert {path: after[path] for path in untouched} == {path: before[path] for path in untouched}
    assert heads(place) == count + 1


def test_b036_publishers_at_the_same_time_lose_nothing(place):
    running = []
    for variant in (A, B, C):
        out = packaged(place / variant, variant).parent
        argv = [
            "publish",
            "toy",
            "--to",
            "hub",
            *OPEN,
            "--out",
            str(out),
            "--kernels-dir",
            str(out.parent / "kernels-src"),
        ]
        running.append(subprocess.Popen([sys.executable, "-m", "kernel_builder", *argv], stderr=subprocess.PIPE))
    for process in running:
        said = process.communicate(timeout=120)[1]
        assert process.returncode == 0, said
    assert builds(place / "hub") == {A, B, C}
    (group,) = json.loads(tree(place / "hub")["manifest.json"])["groups"].values()
    assert set(group) == {A, B, C}
    assert heads(place) == 3


def test_b039_a_kill_after_any_write_leaves_the_old_state_and_a_second_run_finishes(place, publish):
    packaged(place, A)
    publish(*OPEN)
    old = tree(place / "hub")
    again(place, A, B, note="2")
    done = subprocess.run([sys.executable, "-c", KILLED], capture_output=True, text=True, check=True)
    kills = int(done.stdout.split()[-1])
    # Blobs that are new, the commit, and the branch's next number.
    (planned,) = publish(*OPEN, "--dry-run")
    assert kills >= 6
    for number in range(kills):
        hub = place / f"hub{number}"
        assert tree(hub) == old
        _read_as_the_loader(hub)
        (finished,) = publish(*OPEN, to=hub.name)
        assert finished["operations"] == planned["operations"]
        assert builds(hub) == {A, B}
    assert builds(place / f"hub{kills}") == {A, B}


def _read_as_the_loader(hub: Path) -> None:
    repository = HubRepo(hub, RepoId("acme", "toy"))
    commit, data = repository.resolve("v1")
    for path, entry in parse_tree(data, where=commit).tree.items():
        assert sum(map(len, repository.chunks(path, entry))) == entry.size


def test_b039_half_a_blob_of_a_killed_writer_is_not_published(place, publish):
    packaged(place, A)
    publish(*OPEN)
    new = b"def double(x, factor: float = 2.0):\n    return 2 * x\n"
    again(place, A, function=new)
    name = whole_files.hashlib.sha256(new).hexdigest()
    (place / "hub/acme/toy/blobs" / name).write_bytes(new[:7])
    publish(*OPEN)
    assert tree(place / "hub")[f"build/{A}/f.py"] == new


@pytest.mark.parametrize("repo_id", [None, "../../evil", "toy"])
def test_b041_nothing_is_published_without_a_repository_of_ones_own(place, publish, repo_id):
    packaged(place, A)
    spec = place / "kernels-src/toy/build.toml"
    spec.write_text(spec.read_text().replace('repo-id = "acme/toy"', f'repo-id = "{repo_id}"' if repo_id else ""))
    said = publish(*OPEN, status=2)
    assert "general.hub" in said
    assert not (place / "hub").exists()


def test_b041_a_development_build_cannot_take_the_place_of_a_release(place, publish):
    from kernel_builder.errors import PublishError
    from kernel_builder.package.model import Distribution
    from kernel_builder.package.read import packaged_variants
    from kernel_builder.publish.stage import stage
    from kernel_builder.spec.identity import source_digest
    from kernel_builder.spec.read import read_kernel

    def staged() -> Distribution:
        kernel, root = read_kernel(place / "kernels-src/toy"), place / "dist/toy"
        variants, digest = packaged_variants(root), source_digest(kernel)
        return Distribution(kernel=kernel, root=root, variants=variants, source_digest=digest, dirty=True)

    packaged(place, A)
    publish(*OPEN)
    before = tree(place / "hub")
    assert stage(staged(), place / "hub").status == "no-changes"
    again(place, A, note="work in progress")
    with pytest.raises(PublishError, match="is a release") as caught:
        stage(staged(), place / "hub")
    assert "another folder" in caught.value.hint
    assert tree(place / "hub") == before
    assert stage(staged(), place / "staging").status == "committed"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"function": FUNCTION.replace(b"double", b"twice")}, "- double(x, factor=2.0)"),
        ({"function": b"def double(x):\n    return x\n"}, "+ double(x)"),
        ({"binding": BINDING.replace(b"float factor", b"int factor")}, "- op double(Tensor x, float factor) -> Tensor"),
        ({"binding": BINDING.replace(b"}", b' m.def("more(Tensor x) -> ()"); }')}, "+ op more(Tensor x) -> ()"),
    ],
)
def test_b042_a_break_or_an_addition_needs_another_version(place, publish, change, line):
    packaged(place, A)
    publish(*OPEN)
    before = tree(place / "hub")
    again(place, A, **change)
    said = publish(*OPEN, status=8)
    assert line in said
    assert "needs v2" in said
    assert "--allow-api-change" in said
    assert tree(place / "hub") == before
    assert publish(*OPEN, "--allow-api-change")[0]["status"] == "committed"


def test_b042_private_code_and_annotations_may_change(place, publish):
    packaged(place, A)
    publish(*OPEN)
    again(place, A, function=FUNCTION.replace(b"factor: float", b"factor: 'float | int'") + b"def _helper(): ...\n")
    assert publish(*OPEN)[0]["status"] == "committed"


def test_b044_nothing_is_released_without_proof(place, publish):
    root = packaged(place, A)
    for level, result in (("", ""), ("C", "passed"), ("A", "failed")):
        if level:
            write_receipt(root, A, level, result)
        said = publish(status=8)
        assert f"Nothing proves that {A} works" in said
        assert "--allow-untested" in said
    assert not (place / "hub").exists()
    assert publish(*OPEN)[0]["untested"] == [A]
    write_receipt(root, A, "A")
    assert publish()[0]["untested"] == []


def test_b044_the_proof_of_an_older_build_is_not_that_of_a_newer(place, publish):
    packaged(place, A, receipts={A: "A"})
    publish()
    again(place, A, note="rewritten")
    assert "Nothing proves" in publish(status=8)


def test_a_refusal_of_one_kernel_moves_none(place, publish):
    packaged(place, A, name="first", repo_id="acme/first")
    packaged(place, A, name="second", repo_id="acme/second", dirty=True)
    assert "uncommitted sources" in publish("first", "second", *OPEN, status=8)
    assert not (place / "hub").exists()
    done = publish("first", "second", *OPEN, "--allow-dirty")
    assert [outcome["repo"] for outcome in done] == ["acme/first", "acme/second"]


@pytest.mark.parametrize("target", ["hf://acme/toy", "https://hub.example", "kernels-src/toy/build.toml"])
def test_targets_that_are_no_folders_are_refused(place, publish, target):
    packaged(place, A)
    assert "--to" in publish(*OPEN, to=target, status=2)


def test_words_and_ids_say_what_happened(place, capsys):
    packaged(place, A)
    assert run(["publish", "--to", "hub", *OPEN, "--dry-run"]) == 0
    said = capsys.readouterr()
    assert f"add     build/{A}/metadata.json" in said.out
    assert not (place / "hub").exists()
    assert run(["publish", "--to", "hub", *OPEN, "-q"]) == 0
    said = capsys.readouterr()
    name, commit = said.out.split()
    assert (name, len(commit), said.err) == ("acme/toy@v1", 40, "")
    again(place, A, B, note="2")
    assert run(["publish", "--to", "hub", *OPEN, "--add-missing"]) == 0
    assert "second source-digest group: " in capsys.readouterr().out
    assert run(["publish", "--to", "hub", *OPEN, "--add-missing"]) == 0
    assert "acme/toy@v1 already holds this" in capsys.readouterr().out


def test_what_was_not_built_is_said_with_the_next_command(place, publish):
    packaged(place, A)
    assert "kernel-builder build" in publish(*OPEN, "--out", "elsewhere", status=2)


def test_a_package_that_check_refuses_is_not_published(place, publish):
    root = packaged(place, A)
    (root / "build" / A / "planted.py").write_text("")
    assert "planted.py" in publish(*OPEN, status=6)
    assert not (place / "hub").exists()


@pytest.mark.parametrize(("torch", "variant"), [("2.9", OLDER), ("2.13", A)])
def test_the_loader_chooses_from_both_groups_of_a_version(place, publish, torch, variant):
    packaged(place, A)
    publish(*OPEN)
    again(place, OLDER, note="2")
    publish(*OPEN, "--add-missing")
    argv = ["explain", "acme/toy", "--version", "1", "--hub", "hub", "--torch", torch, "--backend", "cpu", "--json"]
    done = subprocess.run([sys.executable, "-m", "kernel_loader", *argv], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["best"] == variant
