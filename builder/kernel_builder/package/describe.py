"""metadata.json of one variant."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_builder.check.cubins import serves
from kernel_builder.check.elf import read_elf
from kernel_builder.check.policy import version_numbers
from kernel_builder.compile.nvcc import compression
from kernel_loader.format.archs import Arch
from kernel_loader.format.digest import digest_of
from kernel_loader.format.metadata import Metadata

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from kernel_builder.compile.model import Artefact
    from kernel_builder.spec.model import KernelDependency
    from kernel_builder.toolchain.model import Toolchain

# Symbol version namespace → key of the floors that the loader compares with its machine.
_FLOORS = {"GLIBC": "glibc", "GLIBCXX": "glibcxx"}
# Drivers before 550 answer "device kernel image is invalid" to code that nvcc compressed in these ways.
_NEW_COMPRESSION, _NEW_COMPRESSION_SINCE = ("size", "balance"), "12.4"


def describe(
    artefact: Artefact,
    toolchain: Toolchain,
    files: Mapping[str, bytes],
    *,
    source_digest: str,
    provenance: Mapping[str, Any],
) -> Metadata:
    """What the variant says about itself; ``files`` is everything in its folder but metadata.json."""
    kernel, plan = artefact.plan.kernel, artefact.plan
    return Metadata(
        name=kernel.name,
        id=plan.op_id,
        version=kernel.version,
        license=kernel.license,
        backend=plan.backend,
        archs=declared_archs(artefact),
        python_depends=(*kernel.python_depends, *kernel.backend_python_depends.get(plan.backend, ())),
        kernel_depends=_kernel_depends((*kernel.kernel_depends, *kernel.backend_kernel_depends.get(plan.backend, ()))),
        upstream=kernel.upstream,
        source=kernel.source,
        digest=digest_of(files),
        provenance=provenance,
        builder=_build_facts(artefact, toolchain, files, source_digest),
    )


def declared_archs(artefact: Artefact) -> tuple[Arch, ...]:
    """Architectures that every device source and ``.cu`` file has code for, in the order of their names.

    Machine code and PTX of one architecture are one entry, ``12.0+PTX``.
    """
    groups = artefact.plan.archs.values()
    served = {arch for archs in groups for arch in archs if all(serves(group, arch) for group in groups)}
    merged = {arch for arch in served if arch.ptx or Arch(arch.major, arch.minor, arch.feature, ptx=True) not in served}
    return tuple(sorted(merged, key=str))


def _kernel_depends(dependencies: Iterable[KernelDependency]) -> tuple[Mapping[str, Any], ...]:
    return tuple(
        {"repo-id": d.repo_id, **({"version": d.version} if d.revision is None else {"revision": d.revision})}
        for d in dependencies
    )


def _build_facts(
    artefact: Artefact, toolchain: Toolchain, files: Mapping[str, bytes], source_digest: str
) -> dict[str, Any]:
    """The ``kernel-builder`` table: digests of everything that went in, never a folder of this machine."""
    sdk = toolchain.sdks[artefact.plan.sdk]
    facts: dict[str, Any] = {
        "source-digest": source_digest,
        "host-compiler": toolchain.host.identity,
        "torch-sdk": {"release": sdk.release, "digest": sdk.digest},
        "floors": {**driver_floor(artefact), **measured_floors(artefact.library)},
        "sizes": {name: len(files[name]) for name in sorted(files)},
    }
    if artefact.plan.lineinfo:
        facts["dev"] = True
    if artefact.plan.toolkit is not None:
        toolkit = toolchain.toolkits[artefact.plan.toolkit]
        facts["toolkit"] = {"release": toolkit.release, "digest": toolkit.digest}
    if artefact.plan.nvcc is not None:
        nvcc = toolchain.nvccs[artefact.plan.nvcc]
        facts["nvcc"] = {
            "release": nvcc.release,
            "digest": nvcc.digest,
            "source": nvcc.source,
            "host-compiler": nvcc.host_identity,
            "cudart": [name for name in read_elf(artefact.library).needed if name.startswith("libcudart.")],
        }
    return facts


def driver_floor(artefact: Artefact) -> dict[str, str]:
    """The CUDA version that a driver must support to read device code which the kernel's flags compress."""
    packed = any(compression(component) in _NEW_COMPRESSION for component in artefact.plan.components)
    return {"driver": _NEW_COMPRESSION_SINCE} if packed and artefact.plan.nvcc is not None else {}


def measured_floors(library: Path) -> dict[str, str]:
    """The oldest C and C++ libraries that offer every symbol version the library imports: ``{"glibc": "2.28"}``."""
    newest: dict[str, tuple[int, ...]] = {}
    for wanted in read_elf(library).versioned:
        space, _, number = wanted.version.rpartition("_")
        version = version_numbers(number)
        if space in _FLOORS and version is not None:
            newest[_FLOORS[space]] = max(newest.get(_FLOORS[space], ()), version)
    return {name: ".".join(map(str, newest[name])) for name in sorted(newest)}
