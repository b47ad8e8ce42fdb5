"""Where nvcc comes from, and the one door to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.nvcc import archive, system
from kernel_builder.toolchain.nvcc.locked import check_tools, provide_locked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.model import HostCompiler, Nvcc
    from kernel_builder.toolchain.supply import Supply
    from kernel_loader.format.versions import MajorMinor

NvccSource = Literal["locked", "system", "archive"]


def offered(source: NvccSource, settings: Settings) -> tuple[MajorMinor, ...]:
    """CUDA versions whose nvcc a source has, ascending; nothing is downloaded.

    Raises:
        UsageError: ``archive`` is asked for and KERNEL_BUILDER_REDIST names no release manifest, or something else.
    """
    if source == "locked":
        return tuple(sorted(read_lock().nvccs))
    if source == "system":
        return tuple(sorted({found.version for found in system.find_candidates(settings) if found.version}))
    return tuple(sorted(archive.releases(settings)))


def provide_nvcc(
    version: MajorMinor,
    source: NvccSource,
    host: HostCompiler,
    settings: Settings,
    supply: Supply,
    reporter: Reporter,
) -> Nvcc:
    """The nvcc of a CUDA version from this source, with a host compiler that it works with.

    Raises:
        ToolchainError: The source has none, it cannot be had, or no host compiler of this machine is in its range.
        DigestError: Its bytes are not those that the lock or the release manifest names.
        UsageError: KERNEL_BUILDER_REDIST names no release manifest.
    """
    if source == "locked":
        return provide_locked(read_lock().nvcc(version), host, settings, supply, reporter)
    if source == "system":
        return system.provide_system(version, host, settings, reporter)
    return archive.provide_archive(version, host, settings, supply, reporter)


def require(versions: Sequence[MajorMinor], source: NvccSource, settings: Settings) -> None:
    """Stop early, before anything is downloaded, when a source cannot have these versions.

    Raises:
        ToolchainError: It lacks one; installed toolkits that were looked at are named.
        UsageError: KERNEL_BUILDER_REDIST names no release manifest.
    """
    for version in versions:
        if source == "locked":
            check_tools(read_lock().nvcc(version), settings)
        elif source == "system":
            system.find_system(version, settings)
        else:
            archive.find_release(version, settings)
