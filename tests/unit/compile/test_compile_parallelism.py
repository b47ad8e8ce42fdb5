"""How many steps run at once, on machines that only exist on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_builder.compile.parallelism import Jobs, Machine, plan_jobs, this_machine

if TYPE_CHECKING:
    from pathlib import Path

GIB = 1 << 30
DEVICE, LIGHT = 1.0, 0.25


def machine(cores: int, gib: float) -> Machine:
    return Machine(cores=cores, available=int(gib * GIB))


def worst(jobs: Jobs, peaks: list[float]) -> float:
    """Memory of the worst mix of steps that the plan lets run together, GiB."""
    heavy = sorted((p for p in peaks if p > jobs.threshold), reverse=True)[: jobs.heavy]
    light = sorted((p for p in peaks if p <= jobs.threshold), reverse=True)
    return sum(sorted(heavy + light, reverse=True)[: jobs.total])


@pytest.mark.parametrize(
    ("cores", "gib", "expected"), [(8, 16, 8), (96, 880, 96), (2, 24, 2), (96, 16, 12), (64, 3, 2), (4, 1, 1)]
)
def test_device_steps_fit_processors_and_memory(cores: int, gib: float, expected: int) -> None:
    assert plan_jobs(machine(cores, gib), [DEVICE] * 200).total == expected


@given(
    cores=st.integers(1, 256),
    gib=st.floats(0.1, 2000),
    peaks=st.lists(st.sampled_from([0.25, 0.4, 1.0, 3.0]), min_size=1, max_size=300),
)
def test_the_worst_mix_stays_within_eighty_percent(cores: int, gib: float, peaks: list[float]) -> None:
    jobs = plan_jobs(machine(cores, gib), peaks)
    assert 1 <= jobs.heavy <= jobs.total <= cores
    assert worst(jobs, peaks) <= 0.8 * gib + 1e-6 or jobs.total == 1


def test_light_steps_are_not_held_back_by_heavy_ones() -> None:
    jobs = plan_jobs(machine(16, 10), [DEVICE] * 20 + [LIGHT] * 20)
    assert jobs.total == 16
    assert jobs.heavy == 5
    assert "5 of those that need more than 0.25 GiB" in jobs.reason


def test_no_more_jobs_than_steps() -> None:
    assert plan_jobs(machine(64, 500), [LIGHT] * 3).total == 3


@pytest.mark.parametrize("gib", [0.5, 1000])
def test_the_users_number_wins_and_is_echoed(gib: float) -> None:
    jobs = plan_jobs(machine(4, gib), [DEVICE] * 50, wanted=40)
    assert (jobs.total, jobs.heavy) == (40, 40)
    assert jobs.reason == "40 at once, as asked for"


def fake_proc(folder: Path, membership: str) -> Path:
    (folder / "proc" / "self").mkdir(parents=True)
    (folder / "proc" / "meminfo").write_text("MemTotal: 67108864 kB\nMemAvailable: 33554432 kB\n")
    (folder / "proc" / "self" / "cgroup").write_text(membership)
    return folder / "proc"


def test_memory_of_a_machine_without_limits_is_what_is_available(tmp_path: Path) -> None:
    found = this_machine(proc=fake_proc(tmp_path, "0::/\n"), cgroup=tmp_path / "none")
    assert found.available == 32 * GIB
    assert found.cores >= 1


def test_a_version_2_limit_of_a_parent_group_counts(tmp_path: Path) -> None:
    group = tmp_path / "cgroup" / "pod" / "job"
    group.mkdir(parents=True)
    (group / "memory.max").write_text("max\n")
    (group / "memory.current").write_text("1\n")
    (group.parent / "memory.max").write_text(f"{8 * GIB}\n")
    (group.parent / "memory.current").write_text(f"{3 * GIB}\n")
    (group.parent / "memory.stat").write_text(f"anon 5\ninactive_file {GIB}\n")
    found = this_machine(proc=fake_proc(tmp_path, "0::/pod/job\n"), cgroup=tmp_path / "cgroup")
    assert found.available == 6 * GIB


def test_a_version_1_limit_counts_also_when_the_group_is_mounted_at_the_root(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup" / "memory"
    mount.mkdir(parents=True)
    (mount / "memory.limit_in_bytes").write_text(f"{4 * GIB}\n")
    (mount / "memory.usage_in_bytes").write_text(f"{GIB}\n")
    (mount / "memory.stat").write_text("cache 0\ntotal_inactive_file 0\n")
    found = this_machine(proc=fake_proc(tmp_path, "9:cpu:/\n4:memory:/docker/abc\n"), cgroup=tmp_path / "cgroup")
    assert found.available == 3 * GIB


def test_an_overdrawn_limit_leaves_one_job(tmp_path: Path) -> None:
    mount = tmp_path / "cgroup"
    mount.mkdir()
    (mount / "memory.max").write_text("1000\n")
    (mount / "memory.current").write_text("2000\n")
    found = this_machine(proc=fake_proc(tmp_path, "0::/\n"), cgroup=mount)
    assert found.available == 0
    assert plan_jobs(found, [LIGHT]).total == 1
