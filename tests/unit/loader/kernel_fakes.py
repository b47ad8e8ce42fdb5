"""Tiny kernels and folder hubs, written with nothing but the format's own functions."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from kernel_loader.environment import Environment
from kernel_loader.format import hubstore
from kernel_loader.format.archs import Arch
from kernel_loader.format.digest import digest_of
from kernel_loader.format.metadata import Metadata, dump_metadata

CPU = Environment.from_dict({"torch": "2.13.0+cpu"})
CUDA = Environment.from_dict({"torch": "2.13.0+cu130", "cuda": "13.0", "capabilities": ["9.0"], "glibc": "2.36"})

INIT = "from ._ops import value\n\n\ndef scale(x):\n    from .sub.deep import FACTOR\n\n    return x * FACTOR + value\n"


def files_of(*, value=1, init=INIT):
    return {
        "__init__.py": init.encode(),
        "_ops.py": f"value = {value}\n".encode(),
        "sub/__init__.py": b"",
        "sub/deep.py": b"from .. import _ops\n\nFACTOR = 10 * _ops.value\n",
    }


def metadata_for(uid, *, files=None, **values):
    fields = {"name": "toy", "id": f"_toy_cpu_{uid}", "version": 1, "license": "Apache-2.0", "backend": "cpu"}
    archs = tuple(Arch.parse(text) for text in values.pop("archs", ()))
    metadata = Metadata(**{**fields, "archs": archs, **values})
    return metadata if files is None else replace(metadata, digest=digest_of(files))


def variant_files(uid, *, files=None, digest=True, **values):
    """All files of a variant: path → bytes."""
    files = files_of() if files is None else files
    metadata = metadata_for(uid, files=files if digest else None, **values)
    return {**files, "metadata.json": dump_metadata(metadata)}


def write_files(folder, files):
    for path, data in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    return folder


def publish(hub, repo, branch, variants, *, extra=None):
    """Move a branch to a commit that holds ``{variant: {path: bytes}}``; returns the commit id."""
    folder = hub / hubstore.repo_folder(repo)
    blobs = {f"build/{name}/{path}": data for name, files in variants.items() for path, data in files.items()}
    blobs.update(extra or {})
    tree = {}
    for path, data in blobs.items():
        sha = hashlib.sha256(data).hexdigest()
        tree[path] = hubstore.TreeEntry(sha, len(data))
        write_files(folder, {hubstore.blob_path(sha): data})
    data = hubstore.dump_commit(hubstore.Commit(tree=tree, author="test", message=branch))
    return move_branch(folder, branch, data)


def move_branch(folder, branch, commit_json):
    commit = hubstore.commit_id(commit_json)
    refs = folder / hubstore.ref_folder(branch)
    number = len(list(refs.iterdir())) + 1 if refs.is_dir() else 1
    write_files(folder, {hubstore.commit_path(commit): commit_json})
    write_files(refs, {hubstore.ref_name(number): f"{commit}\n".encode()})
    return commit


def blob_of(hub, repo, data):
    return hub / repo / hubstore.blob_path(hashlib.sha256(data).hexdigest())
