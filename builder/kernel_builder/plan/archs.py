"""Which architectures a device source is compiled for.

What the kernel asks for, of that what the toolkit knows, of that what the user's TORCH_CUDA_ARCH_LIST keeps. No GPU is
ever asked.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from kernel_builder.errors import UsageError
from kernel_builder.spec.faults import nearest
from kernel_loader.format.archs import Arch

if TYPE_CHECKING:
    from collections.abc import Iterable

    from kernel_builder.plan.matrix import ToolkitArchs

VARIABLE = "TORCH_CUDA_ARCH_LIST"
# The names that torch's own extension builder accepts.
_NAMED = {
    "Kepler+Tesla": "3.7",
    "Kepler": "3.5+PTX",
    "Maxwell+Tegra": "5.3",
    "Maxwell": "5.0;5.2+PTX",
    "Pascal": "6.0;6.1+PTX",
    "Volta+Tegra": "7.2",
    "Volta": "7.0+PTX",
    "Turing": "7.5+PTX",
    "Ampere+Tegra": "8.7",
    "Ampere": "8.0;8.6+PTX",
    "Ada": "8.9+PTX",
    "Hopper": "9.0+PTX",
    "Blackwell+Tegra": "11.0",
    "Blackwell": "10.0;10.3;12.0;12.1+PTX",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class DroppedArch:
    """An architecture that is not compiled, and why."""

    arch: Arch
    reason: str

    def __str__(self) -> str:
        return f"{self.arch}: {self.reason}"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeviceArchs:
    """Architectures of one device source for one toolkit, ascending, PTX after machine code of the same number.

    Attributes:
        list_ignored: TORCH_CUDA_ARCH_LIST names none of them, so it does not narrow this source.
    """

    kept: tuple[Arch, ...]
    dropped: tuple[DroppedArch, ...]
    list_ignored: bool = False


def parse_list(text: str | None) -> tuple[Arch, ...] | None:
    """Read TORCH_CUDA_ARCH_LIST: names or numbers, separated by ``;``, commas or spaces; None when unset or blank.

    Raises:
        UsageError: An entry is neither a name nor an architecture, or asks for this machine's GPU.
    """
    entries = [entry for entry in re.split(r"[;,\s]+", text or "") if entry]
    numbers = [number for entry in entries for number in _NAMED.get(entry, entry).split(";")]
    return tuple(dict.fromkeys(map(_entry, numbers))) or None


def choose(asked: Iterable[Arch] | None, toolkit: ToolkitArchs, listed: tuple[Arch, ...] | None = None) -> DeviceArchs:
    """Architectures for one device source.

    Args:
        asked: What the source asks for, ``X.Y+PTX`` meaning machine code and PTX; None = the toolkit's defaults.
        toolkit: The toolkit that compiles.
        listed: The user's list. It narrows: it never adds an architecture and never takes the last one away.
    """
    wanted = toolkit.default if asked is None else _expanded(asked)
    known = [arch for arch in wanted if replace(arch, ptx=False) in toolkit.known]
    dropped = [_dropped(arch, f"unknown to CUDA {toolkit.version}") for arch in wanted if arch not in known]
    if known and any(drop.arch.ptx for drop in dropped) and not any(arch.ptx for arch in known):
        # Newer GPUs are to be served. Not by the PTX of 9.0a if there is a plain one: its source may need the "a".
        newest = max((arch for arch in known if not arch.feature), default=max(known))
        known.append(Arch(newest.major, newest.minor, ptx=True))
        dropped = [_dropped(d.arch, f"{d.reason}, {known[-1]} instead") if d.arch.ptx else d for d in dropped]
    kept = known if listed is None else [arch for arch in known if any(_admits(entry, arch) for entry in listed)]
    if known and not kept:
        return DeviceArchs(kept=_sorted(known), dropped=tuple(dropped), list_ignored=True)
    dropped += [_dropped(arch, f"not in {VARIABLE}") for arch in known if arch not in kept]
    return DeviceArchs(kept=_sorted(kept), dropped=tuple(dropped))


def _entry(text: str) -> Arch:
    if text.lower() == "native":
        raise UsageError(
            f"{VARIABLE}=native asks for this machine's GPU, which a build must not depend on.",
            where=f"environment: {VARIABLE}",
            hint="name the architectures, for example 9.0",
        )
    try:
        return Arch.parse(text)
    except ValueError as error:
        raise UsageError(
            f"{text!r} is not a GPU architecture.", where=f"environment: {VARIABLE}", hint=nearest(text, _NAMED)
        ) from error


def _expanded(asked: Iterable[Arch]) -> list[Arch]:
    """``12.0+PTX`` becomes machine code for 12.0 and PTX for 12.0."""
    pairs = ((replace(arch, ptx=False), arch) for arch in asked)
    return list(dict.fromkeys(arch for pair in pairs for arch in pair))


def _admits(entry: Arch, arch: Arch) -> bool:
    """Plain ``9.0`` keeps 9.0 and 9.0a, ``9.0a`` keeps only 9.0a; PTX is kept by entries with ``+PTX``."""
    return (
        (entry.major, entry.minor) == (arch.major, arch.minor)
        and entry.feature in ("", arch.feature)
        and (entry.ptx or not arch.ptx)
    )


def _dropped(arch: Arch, reason: str) -> DroppedArch:
    return DroppedArch(arch=arch, reason=reason)


def _sorted(archs: Iterable[Arch]) -> tuple[Arch, ...]:
    return tuple(sorted(archs))
