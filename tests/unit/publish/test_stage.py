"""Staging into a folder hub: what a branch holds, and that it moves whole or not at all."""

from __future__ import annotations

import hashlib
import json
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kernel_builder import files as whole_files
from kernel_builder.errors import DigestError, PublishError, SpecError
from kernel_builder.package.archive import tar_bytes
from kernel_builder.package.model import Distribution, PackagedVariant
from kernel_builder.publish import folder as folder_hub
from kernel_builder.publish.folder import Repository
from kernel_builder.publish.stage import stage
from kernel_builder.spec.model import HubTarget, Kernel, Torch
from kernel_loader.format.digest import digest_of, variant_digest
from kernel_loader.format.hubstore import Commit, TreeEntry
from kernel_loader.format.metadata import Metadata, dump_metadata

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

A = "torch213-cxx11-cpu-x86_64-linux"
B = "torch-stable-abi210-cu128-x86_64-linux"


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return tmp_path / "hub"


@pytest.fixture
def dist(tmp_path: Path) -> Callable[..., Distribution]:
    """Makes ``dist/toy`` with the variants given as name → files."""

    def make(
        variants: dict[str, dict[str, bytes]] | None = None,
        *,
        version: int = 1,
        source: str = "aa" * 32,
        repo_id: str | None = "acme/toy",
        branch: str | None = None,
        card: str = "# toy\n",
        name: str = "dist",
    ) -> Distribution:
        kernel = Kernel(
            root=tmp_path / "src" / "toy",
            common=None,
            name="toy",
            version=version,
            license="Apache-2.0",
            backends=("cpu",),
            torch=Torch(),
            components=(),
            hub=HubTarget(repo_id=repo_id, branch=branch),
        )
        root = tmp_path / name / "toy"
        default = {A: {"__init__.py": b"x = 1\n", "_toy.abi3.so": b"\x7fELF\xff\x00binary"}}
        packaged = []
        for label, files in (variants or default).items():
            packaged.append(_package(root / "build" / label, files, version, source))
        (root / "source.tar.gz").write_bytes(tar_bytes({"toy/build.toml": source.encode()}, epoch=0))
        (root / "README.md").write_text(card)
        return Distribution(kernel=kernel, root=root, variants=tuple(packaged), source_digest=source, dirty=False)

    return make


def _package(folder: Path, files: dict[str, bytes], version: int, source: str) -> PackagedVariant:
    metadata = Metadata(
        name="toy",
        id="_toy_cpu_0123456789",
        version=version,
        license="Apache-2.0",
        backend="cpu",
        digest=digest_of(files),
        builder={"source-digest": source},
    )
    data = dump_metadata(metadata)
    folder.mkdir(parents=True, exist_ok=True)
    for name, content in {**files, "metadata.json": data}.items():
        (folder / name).write_bytes(content)
    return PackagedVariant(name=folder.name, path=folder, metadata=metadata, digest=variant_digest(data))


def branch(hub: Path, name: str = "v1") -> dict[str, bytes]:
    """Every file of a branch's head, each blob checked."""
    repository = Repository(hub / "acme" / "toy")
    return {path: repository.read(entry) for path, entry in repository.head(name).commit.tree.items()}


def builds(hub: Path, name: str = "v1") -> list[str]:
    return sorted(path for path in branch(hub, name) if path.startswith("build/"))


def test_a_branch_holds_variants_manifest_and_sources_and_main_the_card(dist, hub) -> None:
    outcome = stage(dist(), hub)
    assert (outcome.status, outcome.repo, outcome.branch) == ("committed", "acme/toy", "v1")
    assert sorted(branch(hub)) == [
        f"build/{A}/__init__.py",
        f"build/{A}/_toy.abi3.so",
        f"build/{A}/metadata.json",
        "manifest.json",
        "source.tar.gz",
    ]
    assert branch(hub, "main") == {"README.md": b"# toy\n"}
    assert (outcome.added, outcome.removed, outcome.kept) == (5, 0, 0)


def test_the_layout_on_disk_is_the_documented_one(dist, hub) -> None:
    outcome = stage(dist(), hub)
    repository = hub / "acme" / "toy"
    assert (repository / "refs" / "v1" / "000001").read_text() == f"{outcome.commit}\n"
    commit = (repository / "commits" / f"{outcome.commit}.json").read_bytes()
    assert hashlib.sha256(commit).hexdigest()[:40] == outcome.commit
    for blob in (repository / "blobs").iterdir():
        assert hashlib.sha256(blob.read_bytes()).hexdigest() == blob.name


def test_staging_twice_is_a_no_op_that_says_so(dist, hub) -> None:
    first = stage(dist(), hub)
    files = sorted(hub.rglob("*"))
    second = stage(dist(), hub)
    assert (second.status, second.commit, second.added) == ("no-changes", first.commit, 0)
    assert sorted(hub.rglob("*")) == files


def test_exactly_the_stale_files_of_a_replaced_variant_go(dist, hub) -> None:
    files = {name: name.encode() for name in ("__init__.py", "a.py", "b.py")}
    stage(dist({A: files, B: files}), hub)
    outcome = stage(dist({A: {"__init__.py": b"__init__.py"}}, name="later"), hub)
    assert builds(hub) == [
        f"build/{B}/__init__.py",
        f"build/{B}/a.py",
        f"build/{B}/b.py",
        f"build/{B}/metadata.json",
        f"build/{A}/__init__.py",
        f"build/{A}/metadata.json",
    ]
    assert outcome.removed == 2
    assert len(list((hub / "acme/toy/refs/v1").iterdir())) == 2


def test_a_new_version_inherits_no_builds(dist, hub) -> None:
    stage(dist(), hub)
    stage(dist({B: {"__init__.py": b"2"}}, version=2, name="two"), hub)
    assert builds(hub, "v2") == [f"build/{B}/__init__.py", f"build/{B}/metadata.json"]


def test_the_card_on_main_is_that_of_the_highest_version(dist, hub) -> None:
    stage(dist(version=2, card="# two\n"), hub)
    stage(dist(version=1, card="# one\n", name="old"), hub)
    assert branch(hub, "main") == {"README.md": b"# two\n"}


def test_a_branch_of_build_toml_is_used(dist, hub) -> None:
    assert stage(dist(branch="exp"), hub).branch == "exp"
    assert builds(hub, "exp")


def test_without_a_repository_nothing_is_written(dist, hub) -> None:
    with pytest.raises(SpecError, match="names no repository") as caught:
        stage(dist(repo_id=None), hub)
    assert caught.value.where.endswith("build.toml: general.hub.repo-id")
    assert not hub.exists()


@pytest.mark.parametrize("repo_id", ["../evil", "a/../../b", "no-slash", "a/b/c"])
def test_a_repository_cannot_leave_the_hub(dist, hub, repo_id) -> None:
    with pytest.raises(SpecError, match="cannot hold"):
        stage(dist(repo_id=repo_id), hub)


def test_nothing_to_stage_is_refused(dist, hub) -> None:
    with pytest.raises(PublishError, match="no variant"):
        stage(replace(dist(), variants=()), hub)


def test_the_manifest_groups_variants_by_sources(dist, hub) -> None:
    old = dist({A: {"__init__.py": b"1"}}, source="aa" * 32)
    new = dist({B: {"__init__.py": b"2"}}, source="bb" * 32, name="later")
    stage(old, hub)
    stage(new, hub)
    manifest = json.loads(branch(hub)["manifest.json"])
    assert manifest["released"] is False
    assert manifest["current"] == "bb" * 32
    assert {source: list(group) for source, group in manifest["groups"].items()} == {"aa" * 32: [A], "bb" * 32: [B]}
    assert manifest["groups"]["aa" * 32][A]["digest"] == old.variants[0].digest


def test_the_manifest_inlines_small_text_once_and_no_binary(dist, hub) -> None:
    big = b"#" * (64 * 1024 + 1)
    files = {"__init__.py": b"same\n", "_toy.abi3.so": b"\x7fELF\xff", "big.py": big}
    stage(dist({A: files, B: files}), hub)
    manifest = json.loads(branch(hub)["manifest.json"])
    assert list(manifest["texts"].values()).count("same\n") == 1
    listed = manifest["groups"]["aa" * 32][A]["files"]
    assert listed["__init__.py"][0] in manifest["texts"]
    assert listed["_toy.abi3.so"][0] not in manifest["texts"]
    assert listed["big.py"] == [hashlib.sha256(big).hexdigest(), len(big)]
    assert listed["big.py"][0] not in manifest["texts"]


def test_receipts_travel_with_their_variant_and_leave_with_it(dist, hub) -> None:
    first = dist()
    digest = first.variants[0].digest
    (first.root / "receipts").mkdir()
    (first.root / "receipts" / f"{digest}.json").write_text('{"result": "passed", "level": "A"}')
    assert stage(first, hub).untested == ()
    assert f"receipts/{digest}.json" in branch(hub)
    outcome = stage(dist({A: {"__init__.py": b"changed"}}, name="later"), hub)
    assert outcome.untested == (A,)
    assert [path for path in branch(hub) if path.startswith("receipts/")] == []


def test_a_failed_receipt_leaves_a_variant_untested(dist, hub) -> None:
    made = dist()
    (made.root / "receipts").mkdir()
    (made.root / "receipts" / f"{made.variants[0].digest}.json").write_text('{"result": "failed", "level": "A"}')
    assert stage(made, hub).untested == (A,)


def test_a_tampered_variant_is_not_staged(dist, hub) -> None:
    made = dist()
    (made.variants[0].path / "__init__.py").write_bytes(b"evil\n")
    with pytest.raises(DigestError, match=r"__init__\.py has other bytes"):
        stage(made, hub)
    assert not hub.exists()


def test_a_damaged_hub_is_named_not_copied_on(dist, hub) -> None:
    stage(dist({B: {"__init__.py": b"1"}}), hub)
    for blob in (hub / "acme/toy/blobs").iterdir():
        blob.write_bytes(blob.read_bytes()[::-1])
    with pytest.raises(DigestError, match="damaged"):
        stage(dist(name="later"), hub)


def test_two_writers_lose_nothing(dist, hub) -> None:
    made = [dist({name: {"__init__.py": name.encode()}}, name=name) for name in (A, B)]
    start = threading.Barrier(2)
    failures: list[BaseException] = []

    def run(distribution: Distribution) -> None:
        try:
            start.wait()
            stage(distribution, hub)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=run, args=(distribution,)) for distribution in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert {path.split("/")[1] for path in builds(hub)} == {A, B}
    groups = json.loads(branch(hub)["manifest.json"])["groups"]
    assert {name for group in groups.values() for name in group} == {A, B}


def test_a_lost_race_is_planned_again_on_the_new_head(dist, hub, monkeypatch) -> None:
    rival = dist({B: {"__init__.py": b"rival"}}, name="rival")
    real = Repository.advance
    raced = []

    def advance(self: Repository, name: str, head: folder_hub.Head, commit: Commit) -> str | None:
        if name == "v1" and not raced:
            raced.append(name)
            stage(rival, hub)
        return real(self, name, head, commit)

    monkeypatch.setattr(Repository, "advance", advance)
    stage(dist(), hub)
    assert {path.split("/")[1] for path in builds(hub)} == {A, B}


def test_endless_races_end_in_a_refusal(dist, hub, monkeypatch) -> None:
    monkeypatch.setattr(Repository, "advance", lambda *_: None)
    with pytest.raises(PublishError, match="Other writers"):
        stage(dist(), hub)


@pytest.mark.parametrize("survived", range(8))
def test_a_kill_at_any_write_leaves_the_old_state(dist, hub, monkeypatch, survived) -> None:
    stage(dist({B: {"__init__.py": b"1"}}), hub)
    before = branch(hub)
    real, writes = whole_files.unfinished, []

    def dying(folder: Path, data: bytes, *, durable: bool) -> Path:
        if len(writes) == survived:
            raise KeyboardInterrupt
        writes.append(folder)
        return real(folder, data, durable=durable)

    later = dist(source="cc" * 32, name="later")
    for module in (whole_files, folder_hub):
        monkeypatch.setattr(module, "unfinished", dying)
    try:
        stage(later, hub)
    except KeyboardInterrupt:
        assert branch(hub) == before or set(branch(hub)) > set(before)
    monkeypatch.undo()
    assert stage(later, hub).branch == "v1"
    assert {path.split("/")[1] for path in builds(hub)} == {A, B}


def test_a_half_written_blob_is_replaced(dist, hub) -> None:
    made = dist()
    data = (made.variants[0].path / "__init__.py").read_bytes()
    blob = hub / "acme/toy/blobs" / hashlib.sha256(data).hexdigest()
    blob.parent.mkdir(parents=True)
    blob.write_bytes(data[:-1])
    stage(made, hub)
    assert blob.read_bytes() == data


def test_what_the_loader_reads_is_what_was_staged(dist, hub) -> None:
    from kernel_loader.format.hubstore import RepoId
    from kernel_loader.hub import HubRepo

    outcome = stage(dist(), hub)
    repository = HubRepo(hub, RepoId("acme", "toy"))
    assert repository.versions() == (1,)
    assert repository.resolve("v1")[0] == outcome.commit


def test_entries_are_hash_and_size() -> None:
    assert folder_hub.entry_of(b"abc") == TreeEntry(hashlib.sha256(b"abc").hexdigest(), 3)
