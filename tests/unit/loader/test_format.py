"""Grammar of the format: metadata, digests, commits, names."""

from __future__ import annotations

import json

import pytest

from kernel_loader.format import hubstore
from kernel_loader.format.archs import Arch
from kernel_loader.format.digest import Digest, Violation, compare, digest_of, file_hash, variant_digest
from kernel_loader.format.metadata import Metadata, dump_metadata, parse_metadata
from kernel_loader.format.paths import UnsafePathError, check_path
from kernel_loader.format.references import Reference, ReferenceSyntaxError
from kernel_loader.format.variants import VariantNameError, parse
from kernel_loader.format.versions import MajorMinor, branch_of, version_of

SHA = "a" * 64
FULL = Metadata(
    name="flash-attn2",
    id="_flash_attn2_cuda_0123456789",
    version=3,
    license="BSD-3-Clause",
    backend="cuda",
    archs=(Arch(8, 0), Arch(9, 0, "a"), Arch(12, 0, "", ptx=True)),
    other_archs=("gfx942",),
    python_depends=("einops",),
    kernel_depends=({"repo-id": "acme/other", "version": 1},),
    upstream="https://example.org/up",
    source="https://example.org/src",
    digest=digest_of({"__init__.py": b"x"}),
    provenance={"kernel-builder": {"version": "0.1.0"}},
    minver="0.17.0",
    builder={"floors": {"glibc": "2.17"}, "deep": [1, {"two": None}]},
)


def test_metadata_reads_back_and_is_spelled_in_one_way():
    data = dump_metadata(FULL)
    assert parse_metadata(data, where="metadata.json") == FULL
    assert dump_metadata(parse_metadata(data, where="")) == data
    assert data.endswith(b"}\n")
    assert list(json.loads(data)) == sorted(json.loads(data))


def test_unset_keys_are_left_out_and_required_ones_are_written():
    metadata = Metadata(name="toy", id="_toy", version=0, license="MIT", backend="cpu")
    assert set(json.loads(dump_metadata(metadata))) == {
        "name", "id", "version", "license", "backend", "python-depends", "kernel-depends",
    }  # fmt: skip


def test_the_variant_digest_is_the_hash_of_the_metadata():
    assert variant_digest(b"hello world").startswith("b94d27b9934d3e08a52e52d7da7dabfac484efe3")


def test_file_hash_is_standard_base64():
    assert file_hash(b"hello world") == "uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek="


def test_differences_come_in_a_fixed_order():
    expected = digest_of({"b": b"", "a": b"1", "c": b""})
    actual = digest_of({"a": b"2", "d": b"", "c": b""})
    assert compare(expected, actual) == (
        Violation("hash-mismatch", "a"),
        Violation("missing-file", "b"),
        Violation("unknown-file", "d"),
    )
    assert compare(expected, digest_of({}, "sha512")) == (Violation("algorithm-mismatch"),)
    assert compare(expected, expected) == ()


@pytest.mark.parametrize(
    "files", [{"a": "!!"}, {"a": "AAAA"}, {"../a": file_hash(b"")}, {"/a": file_hash(b"")}, {"a": "uU0nuZNN\n"}]
)
def test_a_digest_holds_only_hashes_and_safe_paths(files):
    with pytest.raises(ValueError, match=r"a"):
        Digest(files=files)


UNSAFE = [
    *("", "/a", "a/", "a//b", ".", "..", "a/../b", "./a", "a\\b", "C:a"),
    *("a\nb", "a\0b", "\ud800", "x" * 300, "a/" * 80 + "b"),
]


@pytest.mark.parametrize("path", UNSAFE)
def test_unsafe_paths_are_refused_everywhere(path):
    with pytest.raises(UnsafePathError):
        check_path(path)
    tree = {path: {"sha256": SHA, "size": 1}}
    with pytest.raises(UnsafePathError):
        hubstore.parse_commit(json.dumps({"tree": tree}).encode())


@pytest.mark.parametrize("path", ["a", "a/b.py", ".hidden", "a b/ü.txt", "..a", "a..b/c", "metadata.json"])
def test_plain_paths_are_accepted(path):
    assert check_path(path) == path


def test_commits_read_back_and_have_an_id():
    commit = hubstore.Commit(tree={"b/x": hubstore.TreeEntry(SHA, 3), "a": hubstore.TreeEntry(SHA, 0)}, parent="b" * 40)
    data = hubstore.dump_commit(commit)
    assert hubstore.parse_commit(data) == commit
    assert hubstore.dump_commit(hubstore.parse_commit(data)) == data
    assert hubstore.is_commit_id(hubstore.commit_id(data))


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"[]",
        b'{"tree": []}',
        b'{"tree": {"a": {"sha256": "x", "size": 1}}}',
        b'{"tree": {"a": {"sha256": "' + SHA.encode() + b'", "size": -1}}}',
        b'{"tree": {"a": {"sha256": "' + SHA.encode() + b'", "size": 1.5}}}',
        b'{"tree": {"a": {"sha256": "' + SHA.upper().encode() + b'", "size": 1}}}',
        b'{"tree": {}, "parent": "main"}',
        json.dumps({"tree": {path: {"sha256": SHA, "size": 1} for path in ("a", "a/b")}}).encode(),
    ],
)
def test_malformed_commits_are_refused(document):
    with pytest.raises(hubstore.HubStoreError):
        hubstore.parse_commit(document)


def test_names_of_a_folder_hub():
    assert hubstore.repo_folder("acme/toy") == "acme/toy"
    assert hubstore.blob_path(SHA) == f"blobs/{SHA}"
    assert hubstore.commit_path("b" * 40) == f"commits/{'b' * 40}.json"
    assert hubstore.ref_folder("v1") == "refs/v1"
    assert hubstore.ref_name(12) == "000012"
    assert hubstore.ref_number("000012") == 12
    assert [hubstore.ref_number(name) for name in ("12", "000000", "00001a", "٠٠٠٠١٢", ".tmp")] == [None] * 5


@pytest.mark.parametrize(
    "text", ["acme", "acme/", "/toy", "a/b/c", "../toy", "acme/..", "a--b/c", "a/.b", "a/b-", "a b/c", "a/b\n"]
)
def test_unsafe_repository_ids_are_refused(text):
    with pytest.raises(hubstore.HubStoreError):
        hubstore.RepoId.parse(text)


@pytest.mark.parametrize("branch", ["", "..", "a/b", "-x", "v1 ", "a--b", "v1\n", "refs/pr/4"])
def test_unsafe_branches_are_refused(branch):
    with pytest.raises(hubstore.HubStoreError):
        hubstore.ref_folder(branch)


def test_references_have_one_value_for_one_meaning():
    assert Reference.parse("o/n").revision is None
    assert Reference.parse("o/n@v2") == Reference(hubstore.RepoId("o", "n"), "v2")
    assert str(Reference.parse(f"o/n@{'c' * 40}")) == f"o/n@{'c' * 40}"


@pytest.mark.parametrize(("text", "column"), [("o/n@", 5), ("@v2", 1), ("o//n", 1), ("o/n@v2@v3", 5), ("o/n@a/b", 5)])
def test_malformed_references_say_where(text, column):
    with pytest.raises(ReferenceSyntaxError, match=f"column {column}:"):
        Reference.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2.9.1", (2, 9)),
        ("2.10.0", (2, 10)),
        ("2.13.0+cu130", (2, 13)),
        ("2.14.0.dev20260810+cu130", (2, 14)),
        ("2.8.0a0+nv25.06", (2, 8)),
        ("2.11.0rc2", (2, 11)),
    ],
)
def test_torch_versions_in_the_wild(text, expected):
    assert MajorMinor.parse(text) == MajorMinor(*expected)


def test_versions_compare_as_numbers():
    names = ["torch210-cxx11-cpu-x86_64-linux", "torch29-cxx11-cpu-x86_64-linux", "torch211-cxx11-cpu-x86_64-linux"]
    assert [str(v) for v in sorted(map(parse, names))] == [names[1], names[0], names[2]]


@pytest.mark.parametrize("branch", ["v1_0", "v01", "v", "v-1", "main", "v１", "V1", "v1 "])
def test_only_canonical_version_branches_are_versions(branch):
    assert version_of(branch) is None


def test_version_branches():
    assert [version_of(branch_of(n)) for n in (0, 1, 10)] == [0, 1, 10]


@pytest.mark.parametrize(
    "name",
    ["torch", "torch-", "torch-foo-bar", "cu128", "torch213-cxx03-cu130-x86_64-linux", "jax08-cu130-x86_64-linux",
     "torch213-cxx11-cu1310-x86_64-linux", "torch-stable-abi210-cxx11-cu130-x86_64-linux", "torch213-cu130-x86_64",
     "torch213-cu130-x86_64-linux-gnu", "torch２13-cpu-x86_64-linux", "torch213-cpu-x86_64-linux\n", "build", ""],
)  # fmt: skip
def test_names_that_are_no_variants(name):
    with pytest.raises(VariantNameError):
        parse(name)


@pytest.mark.parametrize(
    ("arch", "covered", "not_covered"),
    [
        ("9.0a", [(9, 0)], [(9, 1), (10, 0)]),
        ("10.0f", [(10, 0), (10, 3)], [(12, 0), (9, 0)]),
        ("8.0", [(8, 0), (8, 6), (8, 9)], [(9, 0), (7, 5)]),
        ("8.6", [(8, 6), (8, 9)], [(8, 0)]),
        ("12.0+PTX", [(12, 0), (12, 1), (13, 0)], [(11, 0)]),
    ],
)
def test_what_an_architecture_runs_on(arch, covered, not_covered):
    parsed = Arch.parse(arch)
    assert all(parsed.covers(capability) for capability in covered)
    assert not any(parsed.covers(capability) for capability in not_covered)
