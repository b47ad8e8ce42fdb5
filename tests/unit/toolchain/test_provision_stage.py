"""Provisioning takes what the plan names from lock and store, and looks at no CUDA that the machine may have."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest
from test_toolchain_host import program

from kernel_builder.errors import ToolchainError
from kernel_builder.settings import Settings
from kernel_builder.toolchain import provision as stage
from kernel_builder.toolchain.doctor import examine
from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.model import Floor
from kernel_builder.toolchain.supply import Supply
from kernel_loader.format.versions import MajorMinor

LOCK = read_lock()
FLOOR = Floor(root=Path("lib"), torch=Path("torch"), digest="0", link={"cpu": (), "cuda": ()})


def plan(*rows: tuple[str, str | None], cpu: str = "x86_64"):
    """A plan of (torch, CUDA) rows, as far as this stage looks at it."""
    return SimpleNamespace(
        variants=tuple(
            SimpleNamespace(
                variant=SimpleNamespace(cpu=cpu, os="linux"),
                sdk=MajorMinor.parse(sdk),
                toolkit=toolkit and MajorMinor.parse(toolkit),
                nvcc=None,
                stable=True,
                label="rmsnorm/variant",
            )
            for sdk, toolkit in rows
        )
    )


@pytest.fixture
def settings(tmp_path, monkeypatch, recorder) -> Settings:
    """A machine with a compiler and a store that has every item already."""
    monkeypatch.setattr(stage, "make_floor", lambda *_: FLOOR)
    program(tmp_path / "bin", "g++")
    settings = Settings(store=tmp_path / "store", path=str(tmp_path / "bin"))
    for item in (*LOCK.toolkits.values(), *LOCK.sdks.values()):
        Supply(settings, recorder).folder_of(item).mkdir(parents=True)
    return settings


def test_a_plan_gets_its_toolkits_and_sdks_once(settings, recorder) -> None:
    toolchain = stage.provision(plan(("2.10", "12.8"), ("2.10", "13.0"), ("2.13", None)), settings, recorder)
    assert [str(version) for version in toolchain.toolkits] == ["12.8", "13.0"]
    assert [str(version) for version in toolchain.sdks] == ["2.10", "2.13"]
    assert toolchain.downloaded == 0
    toolkit = toolchain.toolkits[MajorMinor(13, 0)]
    assert toolkit.nvrtc == toolkit.root / "nvidia/cu13/lib/libnvrtc.so.13"
    assert toolkit.root.is_relative_to(settings.store)


def test_an_installed_cuda_changes_nothing(settings, recorder, tmp_path, monkeypatch) -> None:
    wanted = plan(("2.10", "12.8"))
    without = stage.provision(wanted, settings, recorder)
    ran = tmp_path / "nvcc-ran"
    nvcc = tmp_path / "bin" / "nvcc"
    nvcc.write_text(f"#!/bin/sh\ntouch {ran}\necho 'Cuda compilation tools, release 11.8, V11.8.89'\n")
    nvcc.chmod(0o755)
    for name in ("CUDA_HOME", "CUDA_PATH"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/usr/bin:/bin")
    assert stage.provision(wanted, settings, recorder) == without
    assert not ran.exists()


def test_a_version_outside_the_lock_stops_before_anything_is_done(settings, recorder, monkeypatch) -> None:
    monkeypatch.setattr(Supply, "fetch", lambda *_: pytest.fail("fetched"))
    with pytest.raises(ToolchainError, match=r"no CUDA toolkit 11\.8"):
        stage.provision(plan(("2.10", "12.8"), ("2.13", "11.8")), settings, recorder)


def test_another_machine_is_refused_by_name(settings, recorder) -> None:
    with pytest.raises(ToolchainError, match="Only x86_64 Linux") as caught:
        stage.provision(plan(("2.10", "13.0"), cpu="aarch64"), settings, recorder)
    assert caught.value.where == "rmsnorm/variant"


def test_the_doctor_tells_what_is_there_and_what_will_be_fetched(settings, recorder) -> None:
    Supply(settings, recorder).folder_of(LOCK.sdk(MajorMinor(2, 13))).rmdir()
    states = {c.topic: c.state for c in examine(settings, recorder, network=False)}
    assert states["host-compiler"] == states["store"] == states["toolkit-12.8"] == states["ninja"] == "ok"
    assert states["torch-sdk-2.13"] == "absent"
    assert "index" not in states


def test_the_doctor_reports_problems_with_their_remedy(tmp_path, recorder, monkeypatch) -> None:
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    conditions = {c.topic: c for c in examine(Settings(store=tmp_path / "a/b", path=""), recorder)}
    assert conditions["host-compiler"].state == conditions["index"].state == "problem"
    assert "apt install g++" in conditions["host-compiler"].hint
    assert conditions["index"].to_json()["hint"] == "pip config list"
    assert not (tmp_path / "a").exists()
