"""How many steps run at once: bounded by processors and by memory, so that a build never freezes its machine."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

_SHARE = 0.8
_GIB = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """What a build may use: processors of this process, and memory in bytes that is free for it."""

    cores: int
    available: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Jobs:
    """How many steps run at once.

    Attributes:
        total: Steps of any kind.
        heavy: Steps among them that need more than ``threshold`` GiB; at most ``total``.
        reason: Why, for people.
        threads: Architectures that one nvcc compiles at once.
    """

    total: int
    heavy: int
    threshold: float
    reason: str
    threads: int = 1


def plan_jobs(machine: Machine, peaks: Sequence[float], *, wanted: int | None = None, threads: int = 1) -> Jobs:
    """Choose the number of jobs so that the worst mix of steps stays within 80 % of the available memory.

    Args:
        machine: Fake it in tests.
        peaks: Peak memory of each step to run, GiB, with all its threads; not empty.
        wanted: The user's number (``--jobs``, MAX_JOBS). It wins, memory or not.
        threads: Threads of the widest step (NVCC_THREADS): as many processors fewer are left for other steps.
    """
    largest = max(peaks)
    each = f" with {threads} threads each (NVCC_THREADS)" if threads > 1 else ""
    if wanted is not None:
        reason = f"{wanted} at once{each}, as asked for"
        return Jobs(total=wanted, heavy=wanted, threshold=largest, reason=reason, threads=threads)
    budget = _SHARE * machine.available / _GIB
    total = max(1, min(machine.cores // threads, len(peaks), math.floor(budget / min(peaks))))
    # Steps that fit even when every slot runs one of them need no bound of their own.
    light = max((peak for peak in peaks if peak * total <= budget), default=0.0)
    heavy = total
    if light < largest:
        heavy = math.floor((budget - total * light) / (largest - light))
        if heavy < 1:
            heavy = 1
            total = max(1, 1 + math.floor((budget - largest) / light)) if light else 1
    reason = f"{total} at once{each} on {machine.cores} cores"
    if heavy < total:
        reason += f", {heavy} of those that need more than {light:g} GiB"
    return Jobs(
        total=total,
        heavy=min(heavy, total),
        threshold=light if heavy < total else largest,
        reason=f"{reason}; memory {budget:.1f} GiB (80 % of what is available)",
        threads=threads,
    )


def this_machine(*, proc: Path = Path("/proc"), cgroup: Path = Path("/sys/fs/cgroup")) -> Machine:
    """Processors and available memory, with the limits of containers (cgroup v2 and v1)."""
    limits = [_available(proc / "meminfo"), *_cgroup_room(proc / "self" / "cgroup", cgroup)]
    return Machine(cores=len(os.sched_getaffinity(0)), available=min(limits))


def _available(meminfo: Path) -> int:
    for line in meminfo.read_text().splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return 4 * _GIB


def _cgroup_room(membership: Path, mount: Path) -> list[int]:
    """Bytes left below each memory limit that applies to this process; empty when there is none."""
    rooms = []
    for line in _text(membership).splitlines():
        _, controllers, group = line.split(":", 2)
        if controllers == "":
            names, base = ("memory.max", "memory.current", "inactive_file"), mount
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            base = mount / "memory"
        else:
            continue
        own = base / group.lstrip("/")
        rooms += [room for folder in (own, *own.parents) if (room := _room(folder, *names)) is not None]
    return rooms


def _room(folder: Path, limit_name: str, usage_name: str, reclaimable_name: str) -> int | None:
    limit, usage = _text(folder / limit_name).strip(), _text(folder / usage_name).strip()
    if not limit.isdecimal() or not usage.isdecimal():
        return None
    counters = dict(line.split(" ", 1) for line in _text(folder / "memory.stat").splitlines() if " " in line)
    return max(0, int(limit) - int(usage) + int(counters.get(reclaimable_name, "0")))


def _text(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
