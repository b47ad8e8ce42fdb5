"""Step 3: get everything that a plan is compiled with."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING

from kernel_builder.errors import ToolchainError
from kernel_builder.toolchain.floor import make_floor
from kernel_builder.toolchain.host import find_host_compiler
from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.model import Toolchain
from kernel_builder.toolchain.nvcc.provide import provide_nvcc, require
from kernel_builder.toolchain.nvrtc import provide_toolkit
from kernel_builder.toolchain.supply import Supply
from kernel_builder.toolchain.symbols.tables import symbols_at
from kernel_builder.toolchain.torch_sdk import provide_sdk

if TYPE_CHECKING:
    from kernel_builder.plan.model import Plan
    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.nvcc.provide import NvccSource

_PLATFORM = ("x86_64", "linux")


def provision(plan: Plan, settings: Settings, reporter: Reporter, *, nvcc: NvccSource = "locked") -> Toolchain:
    """Find the host compiler, make the floor, and bring the plan's toolkits, nvccs and torch SDKs into the store.

    Variants with the full ABI also get the names that their torch exports. What the store has is used as it is: a
    second run touches no network.

    Raises:
        ToolchainError: A compiler, toolkit or SDK is missing, unreachable, or not in the lock.
        DigestError: An index serves other bytes than the lock names.
    """
    for variant in plan.variants:
        if (variant.variant.cpu, variant.variant.os) != _PLATFORM:
            raise ToolchainError("Only x86_64 Linux can be built for so far.", where=variant.label)
    lock = read_lock()
    # Every name is looked up before anything is downloaded.
    toolkits = [lock.toolkit(version) for version in sorted({v.toolkit for v in plan.variants if v.toolkit})]
    sdks = [lock.sdk(version) for version in sorted({v.sdk for v in plan.variants})]
    exporting = [lock.sdk(version) for version in sorted({v.sdk for v in plan.variants if not v.stable})]
    drivers = sorted({v.nvcc for v in plan.variants if v.nvcc})
    require(drivers, nvcc, settings)
    host = find_host_compiler(settings)
    floor = make_floor(host, settings, reporter)
    with closing(Supply(settings, reporter)) as supply:
        return Toolchain(
            plan=plan,
            host=host,
            floor=floor,
            toolkits={item.version: provide_toolkit(item, supply) for item in toolkits},
            sdks={item.version: provide_sdk(item, supply) for item in sdks},
            symbols={item.version: symbols_at(supply.symbols(item), item) for item in exporting},
            nvccs={v: provide_nvcc(v, nvcc, host, settings, supply, reporter) for v in drivers},
            downloaded=supply.received,
        )
