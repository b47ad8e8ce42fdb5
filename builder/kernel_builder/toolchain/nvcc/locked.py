"""nvcc as the lock pins it: from wheels, or from wheels and a Debian package."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.reporting import SilentReporter
from kernel_builder.toolchain.model import Nvcc
from kernel_builder.toolchain.nvcc.debian import find_tools, unpack
from kernel_builder.toolchain.nvcc.host_range import choose_host, find_header, read_host_range
from kernel_builder.toolchain.supply import Supply

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.lock import LockedItem
    from kernel_builder.toolchain.model import HostCompiler


def provide_locked(
    item: LockedItem, host: HostCompiler, settings: Settings, supply: Supply, reporter: Reporter
) -> Nvcc:
    """Bring a locked nvcc into the store and choose its host compiler.

    Raises:
        ToolchainError: It cannot be had, or no compiler of this machine is in its range.
        DigestError: What was found is not what the lock names.
    """
    root = supply.fetch(item, lambda folder: _complete(item, folder, settings, supply, reporter))
    include = tuple(root / folder for folder in item.headers)
    chosen = choose_host(read_host_range(item.release, find_header(include)), host, settings.path, reporter)
    return Nvcc(
        version=item.version,
        release=item.release,
        digest=item.digest,
        root=root,
        nvcc=root / item.libraries["nvcc"],
        include=include,
        cudart=root / item.libraries["cudart"],
        host=chosen.cxx,
        source="debian" if item.package else "wheels",
        host_identity=chosen.identity,
        origin=f"lock {item.digest}",
    )


def check_tools(item: LockedItem, settings: Settings) -> None:
    """Stop before anything is downloaded when this machine cannot unpack what the item needs.

    Raises:
        ToolchainError: It comes from a Debian package, is not in the store, and this is no Debian.
    """
    if item.package and not Supply(settings, SilentReporter()).folder_of(item).is_dir():
        find_tools(item.package, settings.path)


def _complete(item: LockedItem, folder: Path, settings: Settings, supply: Supply, reporter: Reporter) -> dict[str, str]:
    """Add what no wheel has, and give programs the execute bits that a zip archive loses."""
    added = {}
    if item.package:
        added = unpack(item.package, folder, settings, reporter)
        supply.count(item.package.size)
    make_programs(folder)
    return added


def make_programs(folder: Path) -> None:
    """Make executable what lies in folders ``bin`` and has no suffix: nvcc, cicc, ptxas and the others."""
    for path in folder.rglob("bin/*"):
        if path.is_file() and not path.suffix:
            path.chmod(0o755)
