"""Publishing a release into a folder hub: gates, additions, and that nothing else moves."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest
from toy_release import BINDING, FULL, FUNCTION, GPU, A, B, builds, edit, mark_staged, packaged, tree

from kernel_builder.check.model import Finding
from kernel_builder.errors import CheckError, DigestError, PublishError
from kernel_builder.package.archive import tar_bytes
from kernel_builder.publish.folder import Repository
from kernel_builder.publish.release import Release, publish
from kernel_loader.format.hubstore import RepoId

if TYPE_CHECKING:
    from pathlib import Path

OPEN = frozenset({"untested"})
OTHER_GPU = GPU.replace("abi27", "abi29")
CHANGED = b"def double(x):\n    return x\n"


def release(root: Path, *, allowed: frozenset[str] = OPEN, **changes: Any) -> Release:
    values = {"repo_id": RepoId("acme", "toy"), "branch": "v1", "version": 1, **changes}
    return Release(root=root, allowed=allowed, **values)


def manifest(hub: Path) -> dict[str, Any]:
    return json.loads(tree(hub)["manifest.json"])


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return tmp_path / "hub"


def test_a_release_is_whole_and_says_what_it_promises(tmp_path, hub):
    outcome = publish(release(packaged(tmp_path / "1", A, B)), hub)
    assert (outcome.status, outcome.untested, outcome.dirty) == ("committed", (A, B), False)
    said = manifest(hub)
    assert said["released"] is True
    assert said["api"]["python"] == {"double": "(x, factor=2.0)"}
    assert said["api"]["ops"] == ["double(Tensor x, float factor) -> Tensor"]
    assert builds(hub) == {A, B}


def test_publishing_twice_is_a_no_op(tmp_path, hub):
    root = packaged(tmp_path / "1", A)
    first = publish(release(root), hub)
    second = publish(release(root), hub)
    assert (second.status, second.commit, second.operations) == ("no-changes", first.commit, ())


def test_a_dry_run_names_every_path_and_writes_nothing(tmp_path, hub):
    publish(release(packaged(tmp_path / "1", A, extra={"old.py": b""})), hub)
    before = sorted(path for path in hub.rglob("*"))
    outcome = publish(release(packaged(tmp_path / "2", A, note="2", extra={"new.py": b""})), hub, dry_run=True)
    assert sorted(path for path in hub.rglob("*")) == before
    assert outcome.status == "dry-run"
    assert {("add", f"build/{A}/new.py"), ("remove", f"build/{A}/old.py")} < set(outcome.operations)
    assert ("replace", "source.tar.gz") in outcome.operations


def test_another_state_of_the_sources_replaces_every_variant_and_none_may_be_forgotten(tmp_path, hub):
    publish(release(packaged(tmp_path / "1", A, B)), hub)
    later = packaged(tmp_path / "2", A, note="2")
    with pytest.raises(PublishError, match=f"would lose {B}") as caught:
        publish(release(later), hub)
    assert "--allow-fewer" in caught.value.hint
    publish(release(later, allowed=OPEN | {"fewer"}), hub)
    assert builds(hub) == {A}


def test_what_a_branch_lacks_is_added_beside_what_it_has(tmp_path, hub):
    publish(release(packaged(tmp_path / "1", A)), hub)
    before, first = tree(hub), manifest(hub)["current"]
    added = publish(release(packaged(tmp_path / "2", A, B, note="2"), add_missing=True), hub)
    after = tree(hub)
    assert added.second_group not in ("", first)
    assert {path: after[path] for path in before if path != "manifest.json"} == {
        path: data for path, data in before.items() if path != "manifest.json"
    }
    said = manifest(hub)
    assert said["current"] == first
    assert {digest: list(group) for digest, group in said["groups"].items()} == {first: [A], added.second_group: [B]}
    assert f"source-{added.second_group[:12]}.tar.gz" in after
    again = publish(release(packaged(tmp_path / "3", A, B, note="2"), add_missing=True), hub)
    assert again.status == "no-changes"


def test_an_addition_from_the_same_sources_leaves_their_archive_alone(tmp_path, hub):
    publish(release(packaged(tmp_path / "1", A)), hub)
    root = packaged(tmp_path / "2", A, B)
    # The card and the tests are in the archive, and no part of the sources' digest.
    (root.parents[1] / "kernels-src/toy/CARD.md").write_text("# later\n")
    archive = packaged(tmp_path / "2", A, B) / "source.tar.gz"
    assert archive.read_bytes() != tree(hub)["source.tar.gz"]
    added = publish(release(root, add_missing=True), hub)
    assert {path for operation, path in added.operations if operation != "add"} == {"manifest.json"}
    assert added.second_group == ""


def test_another_machines_receipts_are_not_lost(tmp_path, hub):
    proven = packaged(tmp_path / "1", A, receipts={A: "A"})
    publish(release(proven), hub)
    assert publish(release(packaged(tmp_path / "2", A, receipts={A: "C"})), hub).status == "no-changes"
    publish(release(packaged(tmp_path / "3", A, B, receipts={B: "C"})), hub)
    levels = {json.loads(data)["level"] for path, data in tree(hub).items() if path.startswith("receipts/")}
    assert levels == {"A", "C"}


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"function": CHANGED}, "- double(x, factor=2.0)"),
        ({"function": FUNCTION.replace(b"2.0", b"3.0")}, "+ double(x, factor=3.0)"),
        ({"binding": BINDING.replace(b"float factor", b"int factor")}, "+ op double(Tensor x, int factor) -> Tensor"),
    ],
)
def test_variants_with_another_api_are_never_added(tmp_path, hub, change, line):
    publish(release(packaged(tmp_path / "1", A)), hub)
    adding = release(packaged(tmp_path / "2", B, **change), add_missing=True, allowed=OPEN | {"api-change"})
    with pytest.raises(PublishError, match="public API differs") as caught:
        publish(adding, hub)
    assert line in caught.value.detail
    assert "--allow-api-change" not in caught.value.hint
    assert builds(hub) == {A}


def test_the_next_free_version_is_named(tmp_path, hub):
    publish(release(packaged(tmp_path / "1", A)), hub)
    publish(release(packaged(tmp_path / "2", A, version=2), branch="v2", version=2), hub)
    with pytest.raises(PublishError) as caught:
        publish(release(packaged(tmp_path / "3", A, function=CHANGED)), hub)
    assert "needs v3" in caught.value.hint


def test_variants_that_were_only_staged_are_not_released_with_the_others(tmp_path, hub):
    root = packaged(tmp_path / "1", A, B, dirty=True)
    publish(release(root, allowed=OPEN | {"dirty"}), hub)
    mark_staged(hub)
    publish(release(packaged(tmp_path / "2", A)), hub)
    assert builds(hub) == {A}
    assert manifest(hub)["released"] is True


def test_an_addition_does_not_make_a_release_of_staged_variants(tmp_path, hub):
    publish(release(packaged(tmp_path / "1", A)), hub)
    mark_staged(hub)
    publish(release(packaged(tmp_path / "2", B), add_missing=True), hub)
    assert builds(hub) == {A, B}
    assert manifest(hub)["released"] is False


@pytest.mark.parametrize("unreadable", [None, b"[]", b"{", b'{"api": {"rules": 1, "python": [], "ops": 3}}'])
def test_without_a_readable_manifest_the_files_say_what_is_promised(tmp_path, hub, unreadable):
    publish(release(packaged(tmp_path / "1", A)), hub)
    edit(hub, {"manifest.json": unreadable})
    with pytest.raises(PublishError, match="public API differs"):
        publish(release(packaged(tmp_path / "2", A, function=CHANGED)), hub)
    publish(release(packaged(tmp_path / "3", A, B, note="2"), add_missing=True), hub)
    assert builds(hub) == {A, B}


def test_a_branch_of_other_tools_is_a_release_whose_ops_its_libraries_show(tmp_path, hub):
    shown = {"_other.so": b"\0double(Tensor x, float factor) -> Tensor\0hidden(Tensor x) -> Tens"}
    changed = {"_other.so": b"\0double(Tensor x, int factor) -> Tensor\0"}
    publish(release(packaged(tmp_path / "1", A, extra=shown)), hub)
    edit(hub, {"manifest.json": None, "source.tar.gz": None})
    with pytest.raises(PublishError) as caught:
        publish(release(packaged(tmp_path / "2", B, extra=changed), add_missing=True), hub)
    assert "+ op double(Tensor x, int factor) -> Tensor" in caught.value.detail
    publish(release(packaged(tmp_path / "3", B, extra=shown), add_missing=True), hub)
    assert builds(hub) == {A, B}


@pytest.mark.parametrize(
    ("made", "message", "flag"),
    [
        ({"dirty": True}, "uncommitted sources", "--allow-dirty"),
        ({"builder": {"dev": True}}, "with --dev", "build it without"),
        ({"version": 2}, "version 2, not 1", "build again"),
    ],
)
def test_gates_name_the_way_out(tmp_path, hub, made, message, flag):
    with pytest.raises(PublishError, match=message) as caught:
        publish(release(packaged(tmp_path / "1", A, **made)), hub)
    assert flag in caught.value.hint
    assert not hub.exists()


def test_a_development_build_is_refused_whatever_is_allowed(tmp_path, hub):
    made = packaged(tmp_path / "1", A, builder={"dev": True})
    with pytest.raises(PublishError, match="with --dev"):
        publish(release(made, allowed=frozenset({"dirty", "untested", "api-change", "fewer"})), hub)


def test_a_version_goes_to_no_other_versions_branch(tmp_path, hub):
    with pytest.raises(PublishError, match="v3 is the branch of another version"):
        publish(release(packaged(tmp_path / "1", A), branch="v3"), hub)
    assert publish(release(packaged(tmp_path / "1", A), branch="exp"), hub).branch == "exp"


def test_one_tested_variant_proves_the_others_with_its_device_code(tmp_path, hub):
    proven = packaged(tmp_path / "1", A, B, GPU, receipts={A: "A", GPU: "A"})
    assert publish(release(proven, allowed=frozenset()), hub).untested == ()
    other = packaged(tmp_path / "2", OTHER_GPU)
    assert publish(release(other, add_missing=True, allowed=frozenset()), hub).status == "committed"


@pytest.mark.parametrize("add_missing", [False, True])
def test_proof_of_older_sources_proves_nothing_of_newer(tmp_path, hub, add_missing):
    publish(release(packaged(tmp_path / "1", GPU, receipts={GPU: "A"}), allowed=frozenset()), hub)
    variants = (GPU, OTHER_GPU) if not add_missing else (OTHER_GPU,)
    later = packaged(tmp_path / "2", *variants, note="rewritten")
    with pytest.raises(PublishError, match="Nothing proves"):
        publish(release(later, add_missing=add_missing, allowed=frozenset()), hub)


def test_a_binding_whose_imports_nobody_looked_up_is_not_proven_by_another(tmp_path, hub):
    def check(variant: Any) -> tuple[Finding, ...]:
        note = Finding(code="torch-symbols-unproven", severity="note", where=variant.name, message="unknown")
        return (note,) if variant.name == FULL else ()

    made = packaged(tmp_path / "1", A, FULL, receipts={A: "A"})
    with pytest.raises(PublishError, match=f"proves that {FULL} works"):
        publish(release(made, allowed=frozenset(), check=check), hub)


def test_a_finding_of_check_refuses(tmp_path, hub):
    finding = Finding(code="floor", severity="error", where="toy", message="It needs GLIBC_2.34.")
    with pytest.raises(CheckError, match=r"GLIBC_2\.34"):
        publish(release(packaged(tmp_path / "1", A), check=lambda _: (finding,)), hub)
    assert not hub.exists()


def test_variants_of_two_states_of_the_sources_are_no_release(tmp_path, hub):
    packaged(tmp_path / "1", A)
    root = packaged(tmp_path / "1", B, note="2")
    with pytest.raises(PublishError, match="2 states of the sources"):
        publish(release(root), hub)


def test_sources_that_the_variants_were_not_built_from_are_not_published(tmp_path, hub):
    root = packaged(tmp_path / "1", A)
    other = packaged(tmp_path / "2", A, note="2")
    (root / "source.tar.gz").write_bytes((other / "source.tar.gz").read_bytes())
    with pytest.raises(DigestError, match="not the sources"):
        publish(release(root), hub)
    (root / "source.tar.gz").write_bytes(tar_bytes({"readme": b""}, epoch=0))
    with pytest.raises(DigestError, match="not the sources"):
        publish(release(root), hub)
    (root / "source.tar.gz").unlink()
    with pytest.raises(PublishError, match="sources are not there"):
        publish(release(root), hub)


def test_what_a_lost_race_left_behind_is_planned_again(tmp_path, hub, monkeypatch):
    rival = release(packaged(tmp_path / "rival", B))
    real, raced = Repository.advance, []

    def advance(self, name, head, commit):
        if not raced:
            raced.append(name)
            publish(rival, hub)
        return real(self, name, head, commit)

    monkeypatch.setattr(Repository, "advance", advance)
    publish(release(packaged(tmp_path / "1", A)), hub)
    assert builds(hub) == {A, B}


def test_publishers_of_different_variants_all_end_up_there(tmp_path, hub):
    roots = [packaged(tmp_path / name, name) for name in (A, B, GPU)]
    threads = [threading.Thread(target=publish, args=(release(root), hub)) for root in roots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert builds(hub) == {A, B, GPU}
    assert len(manifest(hub)["groups"][manifest(hub)["current"]]) == 3


def test_a_damaged_blob_is_replaced_before_a_branch_refers_to_it(tmp_path, hub):
    root = packaged(tmp_path / "1", A)
    publish(release(root), hub)
    for blob in (hub / "acme/toy/blobs").iterdir():
        blob.write_bytes(blob.read_bytes()[::-1])
    publish(release(root, branch="exp"), hub)
    assert builds(hub, "exp") == {A}


def test_a_full_disk_is_a_refusal_and_leaves_the_branch(tmp_path, hub, monkeypatch):
    publish(release(packaged(tmp_path / "1", A)), hub)
    before = tree(hub)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", str(hub))

    with monkeypatch.context() as patched:
        patched.setattr("kernel_builder.publish.folder.write_whole", full)
        with pytest.raises(PublishError, match="No space left on device") as caught:
            publish(release(packaged(tmp_path / "2", A, note="2")), hub)
    assert "the branch is as it was" in caught.value.hint
    assert tree(hub) == before
