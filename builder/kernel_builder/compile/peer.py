"""What sources in the style of HF's kernel-builder expect of a build: a header, and macros.

A binding that includes ``registration.h`` is one of these. It takes its op namespace at compile time, so that object,
unlike those of other bindings, is made for one id.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.resources import templates
from kernel_builder.spec.sources import host_folders

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from kernel_builder.compile.sources import SourceFile, Sources
    from kernel_builder.plan.model import VariantPlan

HEADER = "registration.h"
_NAME = re.compile(rb"\bTORCH_EXTENSION_NAME\b")


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    """What is added to one unit of such a kernel; nothing for other kernels."""

    flags: tuple[str, ...] = ()
    places: Mapping[str, str]
    files: Mapping[str, SourceFile]


def peer_of(variant: VariantPlan, files: Mapping[str, SourceFile], sources: Sources) -> Peer:
    """Macros, and the folder of the header, for a unit that can read ``files``."""
    if not is_peer(variant, sources):
        return Peer(places={}, files={})
    folder = templates() / "build" / "include"
    backend = variant.backend.upper()
    use = ["-DUSE_CUDA"] if backend == "CUDA" else []
    name = [f"-DTORCH_EXTENSION_NAME={variant.op_id}"] if _names_itself(files.values()) else []
    return Peer(
        flags=("-I@registration@", f"-D{backend}_KERNEL", *use, *name),
        places={"registration": str(folder)},
        files={f"template include/{HEADER}": sources.file(folder / HEADER)},
    )


def is_peer(variant: VariantPlan, sources: Sources) -> bool:
    """Whether a source of the binding includes the header, and no folder of the kernel has it."""
    kernel = variant.kernel
    folders = host_folders(kernel, kernel.torch.include)
    return any(sources.lacks(kernel.root / source, folders, kernel, HEADER) for source in kernel.torch.sources)


def _names_itself(files: Iterable[SourceFile]) -> bool:
    return any(_NAME.search(file.path.read_bytes()) for file in files)
