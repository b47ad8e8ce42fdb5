"""Laws of the format's documents: what is written reads back, and no bytes crash a reader."""

from __future__ import annotations

import contextlib
import string

from hypothesis import given
from hypothesis import strategies as st

from kernel_loader.format import hubstore
from kernel_loader.format.archs import Arch
from kernel_loader.format.digest import Digest, compare, digest_of
from kernel_loader.format.metadata import Metadata, MetadataError, dump_metadata, parse_metadata
from kernel_loader.format.paths import UnsafePathError, check_path

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=10),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
parts = st.text(string.ascii_letters + string.digits + "._-", min_size=1, max_size=8).filter(
    lambda part: part not in (".", "..")
)
paths = st.lists(parts, min_size=1, max_size=3).map("/".join)
contents = st.dictionaries(paths, st.binary(max_size=20), max_size=5)
metadata = st.builds(
    Metadata,
    name=st.from_regex(r"[a-z][-a-z0-9]{0,8}[a-z0-9]", fullmatch=True),
    id=st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,10}", fullmatch=True),
    version=st.integers(0, 2**31 - 1),
    license=st.text(max_size=10),
    backend=st.sampled_from(["cpu", "cuda", "rocm"]),
    archs=st.lists(st.builds(Arch, st.integers(1, 99), st.integers(0, 9)), max_size=3).map(tuple),
    python_depends=st.lists(st.text(max_size=10), max_size=3).map(tuple),
    upstream=st.none() | st.text(min_size=1, max_size=10),
    digest=st.none() | contents.map(digest_of),
    provenance=st.none() | st.dictionaries(st.text(max_size=5), json_values, max_size=3),
    builder=st.dictionaries(st.text(max_size=5), json_values, max_size=3),
)
commits = st.builds(
    hubstore.Commit,
    tree=st.dictionaries(
        parts, st.builds(hubstore.TreeEntry, st.from_regex(r"[0-9a-f]{64}", fullmatch=True), st.integers(0, 2**40))
    ),
    parent=st.none() | st.from_regex(r"[0-9a-f]{40}", fullmatch=True),
    author=st.text(max_size=10),
    message=st.text(max_size=10),
)


@given(metadata)
def test_metadata_reads_back(value):
    data = dump_metadata(value)
    assert parse_metadata(data, where="metadata.json") == value
    assert dump_metadata(parse_metadata(data, where="")) == data


@given(st.binary(max_size=80) | st.dictionaries(st.text(max_size=6), json_values).map(lambda d: repr(d).encode()))
def test_no_bytes_crash_the_metadata_reader(data):
    with contextlib.suppress(MetadataError):
        parse_metadata(data, where="metadata.json")


@given(
    st.dictionaries(
        st.sampled_from(["name", "id", "version", "license", "backend", "digest", "python-depends", "kernel-depends"]),
        json_values | st.fixed_dictionaries({"algorithm": json_values, "files": json_values, "type": json_values}),
    )
)
def test_no_document_crashes_the_metadata_reader(document):
    import json

    try:
        value = parse_metadata(json.dumps(document), where="metadata.json")
    except MetadataError:
        return
    assert parse_metadata(dump_metadata(value), where="") == value


@given(commits)
def test_commits_read_back(commit):
    data = hubstore.dump_commit(commit)
    assert hubstore.parse_commit(data) == commit
    assert hubstore.dump_commit(hubstore.parse_commit(data)) == data


@given(st.binary(max_size=80))
def test_no_bytes_crash_the_commit_reader(data):
    try:
        hubstore.parse_commit(data)
    except ValueError:
        return


@given(st.text(max_size=20))
def test_an_accepted_path_stays_in_its_folder(text):
    import posixpath

    try:
        check_path(text)
    except UnsafePathError:
        return
    joined = posixpath.normpath(posixpath.join("/folder", text))
    assert joined == "/folder/" + text


@given(contents, contents)
def test_digests_are_equal_exactly_when_the_files_are(one, other):
    covered = [{path: data for path, data in files.items() if path in digest_of(files).files} for files in (one, other)]
    assert (compare(digest_of(one), digest_of(other)) == ()) == (covered[0] == covered[1])


@given(contents)
def test_every_difference_is_reported_once(files):
    digest = digest_of(files)
    assert len(compare(digest, Digest())) == len(digest.files) == len(compare(Digest(), digest))
