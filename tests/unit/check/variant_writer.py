"""Variant folders and artefacts around synthetic libraries."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from elf_writer import SharedObject

from kernel_builder.compile.model import Artefact, DeviceCode
from kernel_builder.plan.model import Plan, VariantPlan
from kernel_builder.spec.model import Device, Kernel, Torch
from kernel_builder.toolchain.model import Floor, HostCompiler, Toolchain
from kernel_loader.format.archs import Arch
from kernel_loader.format.variants import ArchVariant, parse
from kernel_loader.format.versions import MajorMinor
from kernel_loader.integrity import hash_folder

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.check.model import Finding

CPU = "torch-stable-abi210-cpu-x86_64-linux"
CUDA = "torch-stable-abi210-cu128-x86_64-linux"
FULL = "torch213-cxx11-cpu-x86_64-linux"
INIT = b'from ._ops import ops\n\n__all__ = ["rms_norm"]\n\n\ndef rms_norm(x):\n    return ops.rms_norm(x)\n'
STABLE = ["malloc@GLIBC_2.2.5@libc.so.6", "aoti_torch_get_dim", "torch_call_dispatcher", "__gmon_start__?"]


def backend_of(name: str) -> str:
    variant = parse(name)
    return variant.backend.name if isinstance(variant, ArchVariant) else variant.backend


def write_variant(
    folder: Path,
    name: str = CPU,
    *,
    library: bytes | None = None,
    files: dict[str, bytes] | None = None,
    archs: tuple[str, ...] = (),
    own: bool = True,
    metadata: dict[str, Any] | None = None,
) -> Path:
    """``folder/<name>`` with metadata.json and a true digest; ``files`` add to or replace the usual ones."""
    path = folder / name
    backend = backend_of(name)
    identity = f"_rmsnorm_{backend}_0123456789"
    content = {"__init__.py": INIT, "_ops.py": b"ops = None\n"}
    if isinstance(parse(name), ArchVariant):
        content[f"{identity}.abi3.so"] = SharedObject(imports=STABLE).write() if library is None else library
    for relative, data in {**content, **(files or {})}.items():
        (path / relative).parent.mkdir(parents=True, exist_ok=True)
        (path / relative).write_bytes(data)
    described: dict[str, Any] = {
        "name": "rmsnorm",
        "id": identity,
        "version": 1,
        "license": "Apache-2.0",
        "backend": {"type": backend, **({"archs": list(archs)} if archs else {})},
        "python-depends": [],
        "digest": {"algorithm": "sha256", "files": dict(hash_folder(path).files)},
    }
    if own:
        described["kernel-builder"] = {"source-digest": "0" * 64}
    described.update(metadata or {})
    (path / "metadata.json").write_text(json.dumps({k: v for k, v in described.items() if v is not None}))
    return path


def make_artefact(
    folder: Path,
    library: bytes,
    *,
    name: str = CPU,
    archs: dict[str, tuple[str, ...]] | None = None,
    codes: dict[tuple[str, str], bytes] | None = None,
    sources: dict[str, bytes] | None = None,
    dynamic_shared: int = 0,
    objects: dict[str, Path] | None = None,
) -> tuple[Artefact, Toolchain]:
    """An artefact of a kernel ``rmsnorm`` and the toolchain it came from."""
    files = {"torch-ext/rmsnorm/__init__.py": INIT, "torch-ext/torch_binding.cpp": b"int binding;\n", **(sources or {})}
    for relative, data in files.items():
        (folder / "kernel" / relative).parent.mkdir(parents=True, exist_ok=True)
        (folder / "kernel" / relative).write_bytes(data)
    (folder / "library.so").write_bytes(library)
    planned = {device: tuple(map(Arch.parse, texts)) for device, texts in (archs or {}).items()}
    kernel = Kernel(
        root=folder / "kernel",
        common=None,
        name="rmsnorm",
        version=1,
        license="Apache-2.0",
        backends=("cpu", "cuda"),
        torch=Torch(),
        components=(),
        devices=tuple(
            Device(name=d, source=f"csrc/{d}.cu", dynamic_shared_bytes=dynamic_shared) for d in sorted(planned)
        ),
        sources=dict.fromkeys(sorted(files), "0" * 64),
    )
    variant = parse(name)
    assert isinstance(variant, ArchVariant)
    plan = VariantPlan(
        kernel=kernel, variant=variant, uid="0123456789", sdk=MajorMinor(2, 10), toolkit=None, archs=planned
    )
    built = []
    for (device, arch), code in (codes or {}).items():
        path = folder / f"{device}-{arch}.bin"
        path.write_bytes(code)
        built.append(DeviceCode(device=device, arch=Arch.parse(arch), path=path))
    artefact = Artefact(
        plan=plan,
        library=folder / "library.so",
        filename=f"{plan.op_id}.abi3.so",
        device_code=tuple(built),
        objects=objects or {},
    )
    nothing = folder / "nothing"
    toolchain = Toolchain(
        plan=Plan(variants=(plan,)),
        host=HostCompiler(cxx="c++", version=(12, 2, 0), identity="test"),
        floor=Floor(root=nothing, torch=nothing, digest="0" * 64, link={}),
        toolkits={},
        sdks={},
    )
    return artefact, toolchain


def codes(findings: tuple[Finding, ...]) -> list[str]:
    """Codes of what is wrong: notes are left out."""
    return [f.code for f in findings if f.severity != "note"]
