"""A plan's nvccs come from the source that was asked for; the lock's are the default and need no installed CUDA."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fake_nvcc import host_config, make_toolkit
from test_provision_stage import FLOOR, LOCK, plan
from test_toolchain_host import program

from kernel_builder.errors import DigestError, ToolchainError
from kernel_builder.plan.matrix import default_matrix
from kernel_builder.settings import Settings
from kernel_builder.toolchain import provision as stage
from kernel_builder.toolchain.doctor import examine
from kernel_builder.toolchain.nvcc import system
from kernel_builder.toolchain.nvcc.locked import make_programs
from kernel_builder.toolchain.nvcc.provide import offered
from kernel_builder.toolchain.store import install
from kernel_builder.toolchain.supply import Supply
from kernel_loader.format.versions import MajorMinor

V124, V130, V132 = MajorMinor(12, 4), MajorMinor(13, 0), MajorMinor(13, 2)


@pytest.fixture
def settings(tmp_path, monkeypatch, recorder) -> Settings:
    """A machine with a compiler and a store that has every item; CUDA 12.4 takes GCC up to 13."""
    monkeypatch.setattr(stage, "make_floor", lambda *_: FLOOR)
    monkeypatch.setattr(system, "_LOCAL", tmp_path / "local")
    monkeypatch.setattr(system.site, "getsitepackages", list)
    program(tmp_path / "bin", "g++")
    settings = Settings(store=tmp_path / "store", path=str(tmp_path / "bin"))
    supply = Supply(settings, recorder)
    for item in LOCK.items.values():
        supply.folder_of(item).mkdir(parents=True)
    for item in LOCK.nvccs.values():
        header = supply.folder_of(item) / item.headers[0] / "crt/host_config.h"
        header.parent.mkdir(parents=True)
        header.write_text(host_config(13 if item.version == V124 else 15))
    return settings


def with_nvcc(*versions: MajorMinor):
    row = plan(("2.10", "12.8"))
    first = row.variants[0]
    row.variants = tuple(type(first)(**{**vars(first), "nvcc": version}) for version in versions)
    return row


def test_a_plan_gets_its_nvccs_from_the_lock(settings, recorder) -> None:
    toolchain = stage.provision(with_nvcc(V130, V124, V130), settings, recorder)
    assert list(toolchain.nvccs) == [V124, V130]
    assert toolchain.downloaded == 0
    twelve, thirteen = toolchain.nvccs.values()
    assert (twelve.source, thirteen.source) == ("debian", "wheels")
    assert thirteen.nvcc == thirteen.root / "nvidia/cu13/bin/nvcc"
    assert twelve.cudart.name == "libcudart.so.12"
    assert thirteen.digest == LOCK.nvcc(V130).digest
    assert thirteen.host == toolchain.host.cxx
    assert all(folder.is_relative_to(settings.store) for folder in (twelve.root, *thirteen.include))


def test_the_host_compiler_is_chosen_for_each_toolkit(settings, recorder, tmp_path) -> None:
    program(tmp_path / "bin", "g++", version="15.1.0")
    program(tmp_path / "bin", "g++-12")
    nvccs = stage.provision(with_nvcc(V124, V130), settings, recorder).nvccs
    assert nvccs[V124].host == str(tmp_path / "bin/g++-12")
    assert nvccs[V130].host == str(tmp_path / "bin/g++")


def test_a_version_that_the_source_lacks_stops_before_anything_is_done(settings, recorder, monkeypatch) -> None:
    monkeypatch.setattr(Supply, "fetch", lambda *_: pytest.fail("fetched"))
    with pytest.raises(ToolchainError, match=r"no nvcc 12\.8 in the lock, which has 12\.4, 13\.0, 13\.2"):
        stage.provision(with_nvcc(MajorMinor(12, 8)), settings, recorder)
    with pytest.raises(ToolchainError, match=r"No installed nvcc is of CUDA 12\.8"):
        stage.provision(with_nvcc(MajorMinor(12, 8)), settings, recorder, nvcc="system")


def test_an_installed_nvcc_runs_only_when_it_is_asked_for(settings, recorder, tmp_path) -> None:
    ran = tmp_path / "nvcc-ran"
    installed = make_toolkit(tmp_path / "local/cuda-13.0", "13.0.1")
    installed.write_text(installed.read_text().replace("last=", f"touch {ran}"))
    default = stage.provision(with_nvcc(V130), settings, recorder)
    assert not ran.exists()
    asked = stage.provision(with_nvcc(V130), settings, recorder, nvcc="system")
    assert asked.nvccs[V130].nvcc == installed
    assert asked.nvccs[V130].digest != default.nvccs[V130].digest


def test_what_each_source_offers(settings, tmp_path) -> None:
    # The planner's own list, which it reads without a lock, says the same.
    assert offered("locked", settings) == default_matrix().nvccs == (V124, V130, V132)
    assert offered("system", settings) == ()
    make_toolkit(tmp_path / "local/cuda-12.8", "12.8.93")
    assert offered("system", settings) == (MajorMinor(12, 8),)
    assert offered("archive", replace(settings, redist=("/a/redistrib_12.6.3.json",))) == (MajorMinor(12, 6),)


def test_programs_of_wheels_can_be_run_from_the_store_and_not_be_changed(tmp_path, recorder) -> None:
    def fill(folder) -> None:
        for name in ("cu13/bin/nvcc", "cu13/bin/cudafe++", "cu13/bin/nvcc.profile", "cu13/nvvm/bin/cicc", "cu13/a.h"):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"")
        make_programs(folder)

    root = install(tmp_path, "toolkits", "nvcc", fill, recorder)
    modes = {path.name: oct(path.stat().st_mode & 0o777) for path in root.rglob("*") if path.is_file()}
    assert modes == {"nvcc": "0o555", "cudafe++": "0o555", "cicc": "0o555", "nvcc.profile": "0o444", "a.h": "0o444"}


def test_what_completes_an_item_is_part_of_its_digest(tmp_path, recorder, monkeypatch) -> None:
    item = replace(LOCK.nvcc(V124), wheels=())
    supply = Supply(Settings(store=tmp_path, path=""), recorder)
    with pytest.raises(DigestError, match=r"nvcc 12\.4\.131 are not those that the lock names"):
        supply.fetch(item, lambda _: {"nvidia/cuda_nvcc/bin/nvcc": "0" * 64})
    assert not supply.folder_of(item).exists()


def test_the_doctor_tells_which_nvccs_could_be_used(settings, recorder, tmp_path) -> None:
    supply = Supply(settings, recorder)
    supply.folder_of(LOCK.nvcc(V132)).rename(tmp_path / "away")
    supply.folder_of(LOCK.nvcc(V124)).rename(tmp_path / "away-too")
    found = {c.topic: c for c in examine(settings, recorder, network=False)}
    states = {topic: condition.state for topic, condition in found.items() if topic.startswith("nvcc-")}
    assert states == {
        "nvcc-12.4": "absent",
        "nvcc-13.0": "ok",
        "nvcc-13.2": "absent",
        "nvcc-system": "absent",
        "nvcc-archive": "absent",
    }
    # This machine is no Debian: it says so instead of promising a download.
    assert "apt-get" in found["nvcc-12.4"].message
    installed = make_toolkit(tmp_path / "local/cuda-12.8", "12.8.93")
    wrong = replace(settings, redist=("https://mirror.example/",))
    found = {c.topic: c for c in examine(wrong, recorder, network=False)}
    assert f"{installed} ({tmp_path}/local): nvcc 12.8.93" in found["nvcc-system"].message
    assert found["nvcc-archive"].state == "problem"
