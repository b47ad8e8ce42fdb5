"""Publishing a release into a folder hub: gates, additions, and that nothing else moves."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any

import pytest

from kernel_builder.check.model import Finding
from kernel_builder.errors import CheckError, PublishError
from kernel_builder.package.archive import tar_bytes
from kernel_builder.publish.api import PublicApi, differences, public_api
from kernel_builder.publish.folder import Repository
from kernel_builder.publish.release import Release, publish
from kernel_loader.format.digest import digest_of, variant_digest
from kernel_loader.format.hubstore import RepoId
from kernel_loader.format.metadata import Metadata, dump_metadata

if TYPE_CHECKING:
    from pathlib import Path

A = "torch213-cxx11-cpu-x86_64-linux"
B = "torch214-cxx11-cpu-x86_64-linux"
GPU = "torch-stable-abi27-cu128-x86_64-linux"
INIT = b'from .f import double\n__all__ = ["double"]\n'
FUNCTION = b"def double(x, factor: float = 2.0):\n    return x\n"
BINDING = b'KB_LIBRARY(m) { m.def("double(Tensor x, "\n  "float factor) -> Tensor"); }'
OPEN = frozenset({"untested"})


def packaged(
    folder: Path,
    *variants: str,
    source: str = "aa" * 32,
    function: bytes = FUNCTION,
    binding: bytes = BINDING,
    receipts: dict[str, str] | None = None,
    version: int = 1,
    builder: dict[str, Any] | None = None,
    dirty: bool = False,
    extra: dict[str, bytes] | None = None,
) -> Path:
    """``dist/toy`` with these variants."""
    root = folder / "toy"
    for name in variants:
        files = {"__init__.py": INIT, "f.py": function, "_toy.abi3.so": name.encode(), **(extra or {})}
        toolkit = {"toolkit": {"release": "12.8.93", "digest": "12.8"}} if "-cu" in name else {}
        metadata = Metadata(
            name="toy",
            id="_toy_cpu_0123456789",
            version=version,
            license="Apache-2.0",
            backend="cuda" if "-cu" in name else "cpu",
            digest=digest_of(files),
            provenance={"kernel": {"commit": "0" * 40, "dirty": dirty}},
            builder={"source-digest": source, **toolkit, **(builder or {})},
        )
        data = dump_metadata(metadata)
        (root / "build" / name).mkdir(parents=True)
        for path, content in {**files, "metadata.json": data}.items():
            (root / "build" / name / path).write_bytes(content)
        if level := (receipts or {}).get(name):
            receipt = {"level": level, "result": "passed"}
            (root / "receipts").mkdir(exist_ok=True)
            (root / "receipts" / f"{variant_digest(data)}.json").write_text(json.dumps(receipt))
    (root / "source.tar.gz").write_bytes(
        tar_bytes({"toy/binding.cpp": binding, "toy/x.toml": source.encode()}, epoch=0)
    )
    return root


def release(root: Path, *, allowed: frozenset[str] = OPEN, **changes: Any) -> Release:
    values = {"repo_id": RepoId("acme", "toy"), "branch": "v1", "version": 1, **changes}
    return Release(root=root, allowed=allowed, **values)


def tree(hub: Path, branch: str = "v1") -> dict[str, bytes]:
    repository = Repository(hub / "acme" / "toy")
    return {path: repository.read(entry) for path, entry in repository.head(branch).commit.tree.items()}


def builds(hub: Path, branch: str = "v1") -> set[str]:
    return {path.split("/")[1] for path in tree(hub, branch) if path.startswith("build/")}


@pytest.fixture
def hub(tmp_path: Path) -> Path:
    return tmp_path / "hub"


def test_a_release_is_whole_and_says_what_it_promises(tmp_path, hub):
    outcome = publish(release(packaged(tmp_path / "1", A, B)), hub)
    assert (outcome.status, outcome.untested) == ("committed", (A, B))
    manifest = json.loads(tree(hub)["manifest.json"])
    assert manifest["released"] is True
    assert manifest["api"] == {
        "python": {"double": "(x, factor=2.0)"},
        "ops": ["double(Tensor x, float factor) -> Tensor"],
    }
    assert builds(hub) == {A, B}


def test_publishing_twice_is_a_no_op(tmp_path, hub):
    root = packaged(tmp_path / "1", A)
    first = publish(release(root), hub)
    second = publish(release(root), hub)
    assert (second.status, second.commit, second.operations) == ("no-changes", first.commit, ())


def test_a_dry_run_names_every_path_and_writes_nothing(tmp_path, hub):
    publish(release(packaged(tmp_path / "1", A, extra={"old.py": b""})), hub)
    before = sorted(path for path in hub.rglob("*"))
    outcome = publish(release(packaged(tmp_path / "2", A, source="bb" * 32, extra={"new.py": b""})), hub, dry_run=True)
    assert sorted(path for path in hub.rglob("*")) == before
    assert outcome.status == "dry-run"
    assert {("add", f"build/{A}/new.py"), ("remove", f"build/{A}/old.py")} < set(outcome.operations)
    assert ("replace", "source.tar.gz") in outcome.operations


def test_stale_files_of_a_replaced_variant_go_and_others_stay(tmp_path, hub):
    """B034."""
    publish(release(packaged(tmp_path / "1", A, B, extra={"stale.py": b"", "more.py": b""})), hub)
    publish(release(packaged(tmp_path / "2", A)), hub)
    paths = set(tree(hub))
    assert f"build/{A}/stale.py" not in paths
    assert f"build/{B}/stale.py" in paths


def test_a_new_version_inherits_nothing(tmp_path, hub):
    """B032."""
    publish(release(packaged(tmp_path / "1", A, B)), hub)
    publish(release(packaged(tmp_path / "2", A, version=2), version=2, branch="v2"), hub)
    assert builds(hub, "v2") == {A}
    assert builds(hub) == {A, B}


def test_another_state_of_the_sources_replaces_every_variant_and_none_may_be_forgotten(tmp_path, hub):
    publish(release(packaged(tmp_path / "1", A, B)), hub)
    later = packaged(tmp_path / "2", A, source="bb" * 32)
    with pytest.raises(PublishError, match=f"would lose {B}") as caught:
        publish(release(later), hub)
    assert "--allow-fewer" in caught.value.hint
    publish(release(later, allowed=OPEN | {"fewer"}), hub)
    assert builds(hub) == {A}


def test_what_a_branch_lacks_is_added_beside_what_it_has(tmp_path, hub):
    publish(release(packaged(tmp_path / "1", A)), hub)
    before = tree(hub)
    added = publish(release(packaged(tmp_path / "2", A, B, source="bb" * 32), add_missing=True), hub)
    after = tree(hub)
    assert added.second_group == "bb" * 32
    assert {path: after[path] for path in before if path != "manifest.json"} == {
        path: data for path, data in before.items() if path != "manifest.json"
    }
    manifest = json.loads(after["manifest.json"])
    assert manifest["current"] == "aa" * 32
    assert {digest: list(group) for digest, group in manifest["groups"].items()} == {"aa" * 32: [A], "bb" * 32: [B]}
    assert f"source-{'bb' * 6}.tar.gz" in after
    again = publish(release(packaged(tmp_path / "3", A, B, source="bb" * 32), add_missing=True), hub)
    assert again.status == "no-changes"


@pytest.mark.parametrize(
    ("change", "line"),
    [
        ({"function": b"def double(x):\n    return x\n"}, "- double(x, factor=2.0)"),
        ({"function": FUNCTION.replace(b"2.0", b"3.0")}, "+ double(x, factor=3.0)"),
        ({"binding": BINDING.replace(b"float factor", b"int factor")}, "+ op double(Tensor x, int factor) -> Tensor"),
    ],
)
def test_a_changed_api_needs_another_version(tmp_path, hub, change, line):
    """B042."""
    publish(release(packaged(tmp_path / "1", A)), hub)
    with pytest.raises(PublishError, match="public API differs") as caught:
        publish(release(packaged(tmp_path / "2", A, source="bb" * 32, **change)), hub)
    assert line in caught.value.detail
    assert "set version = 2" in caught.value.hint
    adding = release(packaged(tmp_path / "3", B, source="cc" * 32, **change), add_missing=True)
    with pytest.raises(PublishError, match="public API differs"):
        publish(adding, hub)
    with pytest.raises(PublishError, match="public API differs"):
        publish(release(adding.root, add_missing=True, allowed=OPEN | {"api-change"}), hub)
    publish(release(tmp_path / "2" / "toy", allowed=OPEN | {"api-change"}), hub)


def test_private_code_may_change_under_a_version(tmp_path, hub):
    publish(release(packaged(tmp_path / "1", A)), hub)
    private = FUNCTION.replace(b"factor: float", b"factor: 'float | int'") + b"def _helper(): ...\n"
    assert publish(release(packaged(tmp_path / "2", A, source="bb" * 32, function=private)), hub).status == "committed"


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


def test_a_variant_without_proof_is_refused_and_shares_that_of_its_device_code(tmp_path, hub):
    """B044."""
    with pytest.raises(PublishError, match=f"proves that {A}") as caught:
        publish(release(packaged(tmp_path / "1", A, receipts={A: "C"}), allowed=frozenset()), hub)
    assert "--allow-untested" in caught.value.hint
    proven = packaged(tmp_path / "2", A, B, GPU, receipts={A: "A", GPU: "A"})
    assert publish(release(proven, allowed=frozenset()), hub).untested == ()
    # The device code of the added variant has been proven in the hub.
    other = packaged(tmp_path / "3", GPU.replace("abi27", "abi29"), source="bb" * 32)
    assert publish(release(other, add_missing=True, allowed=frozenset()), hub).status == "committed"


def test_a_finding_of_check_refuses(tmp_path, hub):
    finding = Finding(code="floor", severity="error", where="toy", message="It needs GLIBC_2.34.")
    with pytest.raises(CheckError, match=r"GLIBC_2\.34"):
        publish(release(packaged(tmp_path / "1", A), check=lambda _: (finding,)), hub)
    assert not hub.exists()


def test_variants_of_two_states_of_the_sources_are_no_release(tmp_path, hub):
    packaged(tmp_path / "1", A)
    root = packaged(tmp_path / "1", B, source="bb" * 32)
    with pytest.raises(PublishError, match="2 states of the sources"):
        publish(release(root), hub)


def test_two_publishers_of_different_variants_both_end_up_there(tmp_path, hub):
    """B036."""
    roots = [packaged(tmp_path / name, name) for name in (A, B, GPU)]
    threads = [threading.Thread(target=publish, args=(release(root), hub)) for root in roots]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert builds(hub) == {A, B, GPU}
    assert len(json.loads(tree(hub)["manifest.json"])["groups"]["aa" * 32]) == 3


def test_the_api_follows_names_through_the_package():
    files = {
        "__init__.py": b"from . import layers\nfrom .impl import run as go, _hidden\nfrom .sub import deep\nLIMIT = 3\n"
        b"__all__ = ['layers', 'go', 'deep', 'LIMIT']\n",
        "impl.py": b"def run(a, /, b=1, *rest, c: int = 2, **more) -> int: ...\ndef _hidden(): ...\n",
        "layers.py": b"class Norm:\n  def __init__(self, size): ...\n"
        b"  def forward(self, x): ...\n  def _own(self): ...\n",
        "sub/__init__.py": b"from ..impl import run as deep\n",
        "unused.py": b"def unused(): ...\n",
    }
    assert public_api(files, {}).lines() == [
        "LIMIT",
        "deep(a, /, b=1, *rest, c=2, **more)",
        "go(a, /, b=1, *rest, c=2, **more)",
        "layers",
        "layers.Norm",
        "layers.Norm.__init__(self, size)",
        "layers.Norm.forward(self, x)",
    ]


def test_schemas_are_read_as_the_compiler_reads_them():
    source = b"""
      // m.def("comment(Tensor x) -> Tensor");
      ops.def("first(Tensor! out, "  /* of rows */
              "Tensor x) -> ()");
      m.def(R"(raw(Tensor   x) -> Tensor)");
      m.def("inferred", &f);  const char* url = "http://x";
    """
    assert public_api({}, {"b.cpp": source, "notes.md": b'def("no(Tensor x) -> Tensor")'}).ops == (
        "first(Tensor! out, Tensor x) -> ()",
        "inferred",
        "raw(Tensor x) -> Tensor",
    )


def test_differences_name_what_went_and_what_came():
    old, new = PublicApi(python={"f": "(x)"}), PublicApi(python={"f": "(x, y=1)"}, ops=("g() -> int",))
    assert differences(old, new) == ["- f(x)", "+ f(x, y=1)", "+ op g() -> int"]
    assert differences(old, old) == []


def test_python_that_cannot_be_parsed_is_a_finding():
    with pytest.raises(CheckError, match=r"f\.py cannot be parsed"):
        public_api({"f.py": b"def ("}, {})
