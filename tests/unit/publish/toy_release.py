"""A kernel folder and packaged variants of it that pass ``check``, made without a compiler."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_builder.package.archive import tar_bytes
from kernel_builder.package.layout import archive_files
from kernel_builder.publish.folder import Repository
from kernel_builder.spec.identity import source_digest
from kernel_builder.spec.read import read_kernel
from kernel_loader.format.digest import digest_of, variant_digest
from kernel_loader.format.hubstore import Commit
from kernel_loader.format.metadata import Metadata, dump_metadata

sys.path.insert(0, str(Path(__file__).parents[1] / "check"))
from elf_writer import SharedObject

if TYPE_CHECKING:
    from kernel_builder.spec.model import Kernel

A = "torch-stable-abi210-cpu-x86_64-linux"
B = "torch-stable-abi211-cpu-x86_64-linux"
C = "torch-stable-abi212-cpu-x86_64-linux"
FULL = "torch213-cxx11-cpu-x86_64-linux"
OLDER = "torch29-cxx11-cpu-x86_64-linux"
GPU = "torch-stable-abi27-cu128-x86_64-linux"

INIT = b'from .f import double\n\n__all__ = ["double"]\n'
FUNCTION = b"def double(x, factor: float = 2.0):\n    return x\n"
BINDING = b'KB_LIBRARY(m) { m.def("double(Tensor x, "\n  "float factor) -> Tensor"); }\n'
_IMPORTS = ["malloc@GLIBC_2.2.5@libc.so.6", "aoti_torch_get_dim", "torch_call_dispatcher"]
_SPEC = """
[general]
name = "{name}"
version = {version}
edition = 5
license = "Apache-2.0"
backends = ["cpu"]
{hub}
[torch]
src = ["binding.cpp"]
stable-abi = "2.10"
[kernel.toy]
backend = "cpu"
depends = []
src = ["toy.cpp"]
"""


def write_kernel(
    folder: Path,
    *,
    name: str = "toy",
    version: int = 1,
    note: str = "",
    function: bytes = FUNCTION,
    binding: bytes = BINDING,
    repo_id: str | None = "acme/toy",
    branch: str | None = None,
) -> Kernel:
    """``folder/kernels-src/<name>``; ``note`` is a comment that makes another state of the sources."""
    root = folder / "kernels-src" / name
    (root / "torch-ext" / name).mkdir(parents=True, exist_ok=True)
    lines = {"repo-id": repo_id, "branch": branch}
    hub = "".join(f'{key} = "{value}"\n' for key, value in lines.items() if value)
    spec = _SPEC.format(name=name, version=version, hub=f"[general.hub]\n{hub}" if hub else "")
    for path, data in {
        "build.toml": spec.encode(),
        "binding.cpp": binding,
        "toy.cpp": f"// {note}\n".encode(),
        f"torch-ext/{name}/__init__.py": INIT,
        f"torch-ext/{name}/f.py": function,
    }.items():
        (root / path).write_bytes(data)
    return read_kernel(root)


def packaged(
    folder: Path,
    *variants: str,
    receipts: dict[str, str] | None = None,
    builder: dict[str, Any] | None = None,
    dirty: bool = False,
    extra: dict[str, bytes] | None = None,
    **kernel: Any,
) -> Path:
    """``folder/dist/<name>`` with these variants, built from the kernel that ``write_kernel`` makes of the rest."""
    spec = write_kernel(folder, **kernel)
    root = folder / "dist" / spec.name
    for variant in variants:
        backend = "cuda" if "-cu" in variant else "cpu"
        op_id = f"_{spec.python_name}_{backend}_0123456789"
        package = (spec.root / "torch-ext" / spec.name).iterdir()
        files = {path.name: path.read_bytes() for path in package}
        library = SharedObject(imports=_IMPORTS, exports=[f"PyInit_{op_id}"]).write()
        files |= {"_ops.py": b"ops = None\n", f"{op_id}.abi3.so": library + variant.encode(), **(extra or {})}
        toolkit = {"toolkit": {"release": "12.8.93", "digest": "12.8"}} if backend == "cuda" else {}
        metadata = Metadata(
            name=spec.name,
            id=op_id,
            version=spec.version,
            license="Apache-2.0",
            backend=backend,
            digest=digest_of(files),
            provenance={"kernel": {"commit": "0" * 40, "dirty": dirty}},
            builder={"source-digest": source_digest(spec), **toolkit, **(builder or {})},
        )
        for path, content in {**files, "metadata.json": dump_metadata(metadata)}.items():
            (root / "build" / variant).mkdir(parents=True, exist_ok=True)
            (root / "build" / variant / path).write_bytes(content)
    for variant, level in (receipts or {}).items():
        write_receipt(root, variant, level)
    (root / "source.tar.gz").write_bytes(tar_bytes(archive_files(spec), epoch=0))
    return root


def write_receipt(root: Path, variant: str, level: str, result: str = "passed") -> None:
    digest = variant_digest((root / "build" / variant / "metadata.json").read_bytes())
    (root / "receipts").mkdir(exist_ok=True)
    (root / "receipts" / f"{digest}.json").write_text(json.dumps({"level": level, "result": result}))


def tree(hub: Path, branch: str = "v1", repo: str = "acme/toy") -> dict[str, bytes]:
    """Every file of a branch's head, each blob compared with its hash."""
    repository = Repository(hub / repo)
    return {path: repository.read(entry) for path, entry in repository.head(branch).commit.tree.items()}


def builds(hub: Path, branch: str = "v1", repo: str = "acme/toy") -> set[str]:
    return {path.split("/")[1] for path in tree(hub, branch, repo) if path.startswith("build/")}


def edit(hub: Path, files: dict[str, bytes | None], branch: str = "v1") -> None:
    """What another program commits; None removes a file."""
    repository = Repository(hub / "acme/toy")
    head = repository.head(branch)
    entries = {**head.commit.tree, **repository.add({p: d for p, d in files.items() if d is not None})}
    kept = {path: entry for path, entry in entries.items() if files.get(path, b"") is not None}
    assert repository.advance(branch, head, Commit(tree=kept, parent=head.commit_id))


def mark_staged(hub: Path) -> None:
    """Make the branch one that was only staged."""
    manifest = json.loads(tree(hub)["manifest.json"])
    edit(hub, {"manifest.json": json.dumps({**manifest, "released": False}).encode()})
