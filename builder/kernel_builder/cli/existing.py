"""What a hub's version has already: the argument of ``--missing``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.errors import DigestError, UsageError
from kernel_builder.plan.cells import existing_offer
from kernel_loader.errors import DigestMismatch, LoaderError
from kernel_loader.format.hubstore import HubStoreError, RepoId
from kernel_loader.format.versions import branch_of, version_of
from kernel_loader.hub import HubRepo
from kernel_loader.sources import HubSource, InvalidKernel, metadata_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel_builder.plan.cells import Offer
    from kernel_builder.spec.model import Kernel
    from kernel_loader.format.metadata import Metadata

_FORM = "write HUB/ORG/NAME@vN, for example dist/hub/kernel-builder/rmsnorm@v1"


def read_existing(text: str, kernels: Sequence[Kernel]) -> tuple[Kernel, tuple[Offer, ...]]:
    """The kernel among ``kernels`` that a folder hub's ``ORG/NAME@vN`` holds, and the variants that are there.

    Raises:
        UsageError: The hub has no such version, or it is of none of the kernels.
        DigestError: The hub is damaged.
    """
    where = f"--missing {text}"
    folder, _, branch = text.rpartition("@")
    hub, *names = folder.rsplit("/", 2)
    if len(names) != 2 or not hub or version_of(branch) is None:
        raise UsageError(f"{text!r} names no version of a repository in a hub.", where="--missing", hint=_FORM)
    try:
        variants = _variants(HubRepo(Path(hub), RepoId.parse("/".join(names))), branch)
    except (DigestMismatch, InvalidKernel) as error:
        raise DigestError(error.message, where=error.where, hint="restore the hub from a copy") from error
    except LoaderError as error:
        raise UsageError(error.message, where=where, hint=error.hint or _FORM) from error
    except HubStoreError as error:
        raise UsageError(f"{error}.", where=where, hint=_FORM) from error
    return _kernel(kernels, variants, where, branch), tuple(existing_offer(n, m) for n, m in variants.items())


def _variants(repository: HubRepo, branch: str) -> dict[str, Metadata]:
    source = HubSource.open(repository, branch)
    return {name: metadata_of(source, name) for name in source.variants()}


def _kernel(kernels: Sequence[Kernel], variants: dict[str, Metadata], where: str, branch: str) -> Kernel:
    names = sorted({metadata.name for metadata in variants.values()})
    for kernel in kernels:
        if names == [kernel.name] and branch == branch_of(kernel.version):
            return kernel
    held = ", ".join(names) or "no variant"
    known = ", ".join(f"{kernel.name} {branch_of(kernel.version)}" for kernel in kernels)
    raise UsageError(f"The hub's {branch} holds {held}, and the kernel here is {known}.", where=where, hint=_FORM)
