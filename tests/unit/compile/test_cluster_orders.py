"""A unit that travels: the same key elsewhere, or no unit at all."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest
from fake_toolchain import Workshop

from kernel_builder.compile.cluster import workplace
from kernel_builder.compile.cluster.orders import content_of, order_of, unit_of, unpack
from kernel_builder.compile.cluster.worker import carry_out, own_version
from kernel_builder.compile.sources import Sources
from kernel_builder.compile.units import Unit, closure
from kernel_builder.compile.variants import units_of
from kernel_builder.errors import CompileError, ToolchainError
from kernel_builder.settings import Settings

if TYPE_CHECKING:
    from pathlib import Path

# Says that it is a GCC, and copies.
GCC = """#!/bin/sh
case $1 in
  --version) printf '%s\\n' 'g++ (Fake) 12.2.0' 'Free Software Foundation'; exit;;
  -dumpfullversion) echo 12.2.0; exit;;
  -dumpmachine) echo x86_64-linux-gnu; exit;;
esac
exec "$(dirname "$0")/c++" "$@"
"""
IDENTITY = "gcc (Fake) 12.2.0 x86_64-linux-gnu"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return replace(Workshop.make(tmp_path / "here"), identity=IDENTITY)


@pytest.fixture
def there(tmp_path: Path, workshop: Workshop) -> Settings:
    """A worker's settings."""
    compiler = workshop.folder / "bin" / "gcc"
    compiler.write_text(GCC)
    compiler.chmod(0o755)
    return Settings(store=tmp_path / "there", cxx=str(compiler), path="/usr/bin:/bin")


def _units(workshop: Workshop) -> dict[str, Unit]:
    (variant,) = units_of(workshop.toolchain(), Sources())
    return {unit.output: unit for unit in closure((variant.link,))}


def _order(unit: Unit, workshop: Workshop) -> dict[str, object]:
    order = order_of(unit, workshop.store, own_version())
    assert order is not None
    return order


@pytest.mark.parametrize("name", ["part0.o", "identity.o"])
def test_an_order_makes_a_unit_of_the_same_key_in_other_folders(workshop: Workshop, tmp_path: Path, name: str) -> None:
    unit = _units(workshop)[name]
    order = json.loads(json.dumps(_order(unit, workshop)))
    content = content_of(unit)
    elsewhere = tmp_path / "elsewhere"
    unpack(order, content, elsewhere)
    again = unit_of(order, {"cxx": "/opt/g++", "kernel": str(elsewhere / "kernel")}, elsewhere)
    assert again.key == unit.key
    assert again.facts() == unit.facts()
    assert str(workshop.folder) not in json.dumps(order)


def test_only_what_the_step_can_read_travels(workshop: Workshop, tmp_path: Path) -> None:
    unit = _units(workshop)["part0.o"]
    unpack(_order(unit, workshop), content_of(unit), tmp_path / "there")
    files = {path.relative_to(tmp_path / "there").as_posix() for path in tmp_path.glob("there/**/*.*")}
    assert files == {"kernel/csrc/part0.cpp", "kernel/csrc/part.h"}


def test_a_tool_that_is_not_in_the_store_keeps_a_unit_here(workshop: Workshop) -> None:
    """Headers of a system folder, say: no digest of the lock names them."""
    assert order_of(_units(workshop)["binding.o"], workshop.store, own_version()) is None
    assert order_of(_units(workshop)["binding.o"], workshop.folder, own_version()) is not None


def test_a_file_that_changed_since_does_not_travel(workshop: Workshop) -> None:
    unit = _units(workshop)["part0.o"]
    (workshop.kernel / "csrc" / "part.h").write_text("other\n")
    with pytest.raises(CompileError, match=r"csrc/part\.h was changed"):
        content_of(unit)


@pytest.mark.parametrize("place", [["kernel", "../../x"], ["/tmp/x"], ["kernel", "/tmp/x"], ["..", "x"]])
def test_an_order_cannot_write_outside_its_folder(workshop: Workshop, tmp_path: Path, place: list[str]) -> None:
    unit = _units(workshop)["part0.o"]
    order = _order(unit, workshop)
    order["files"]["csrc/part.h"]["at"] = place  # type: ignore[index]
    with pytest.raises(CompileError, match="does not hold"):
        unpack(order, content_of(unit), tmp_path / "there")


@pytest.mark.parametrize(("name", "value"), [("output", "../x.o"), ("template", "../../x.j2"), ("argv", ["rm"])])
def test_an_order_that_is_not_what_its_key_says_is_refused(
    workshop: Workshop, there: Settings, name: str, value: object
) -> None:
    unit = _units(workshop)["part0.o"]
    answer = carry_out({**_order(unit, workshop), name: value}, content_of(unit), there)
    assert answer["status"] == "unfit"
    assert not list(there.store.glob("units/*/*"))


def test_a_worker_makes_what_a_build_here_makes(workshop: Workshop, there: Settings) -> None:
    workshop.build()
    for name in ("part0.o", "part1.o", "identity.o"):
        unit = _units(workshop)[name]
        answer = carry_out(_order(unit, workshop), content_of(unit), there)
        assert answer["status"] == "made", answer
        assert answer["output"] == []
        (local,) = workshop.store.glob(f"units/*/{unit.key}/{name}")
        assert answer["data"] == local.read_bytes()
    assert not list((there.store / "orders").iterdir())


def test_a_worker_takes_from_its_store_what_it_has_made_before(workshop: Workshop, there: Settings) -> None:
    unit = _units(workshop)["part0.o"]
    answers = [carry_out(_order(unit, workshop), content_of(unit), there) for _ in range(2)]
    assert len(workshop.calls()) == 1
    assert answers[0]["data"] == answers[1]["data"]


def test_what_a_compiler_says_names_no_folder_of_the_worker(workshop: Workshop, there: Settings) -> None:
    source = workshop.kernel / "csrc" / "part0.cpp"
    source.write_text(source.read_text() + "#error\n")
    unit = _units(workshop)["part0.o"]
    answer = carry_out(_order(unit, workshop), content_of(unit), there)
    assert answer["status"] == "failed"
    assert answer["output"] == [" @kernel@/csrc/part0.cpp:1: error: as asked for"]
    assert "data" not in answer


def test_a_worker_with_another_compiler_or_version_says_so(workshop: Workshop, there: Settings) -> None:
    unit = _units(workshop)["part0.o"]
    order, content = _order(unit, workshop), content_of(unit)
    other = carry_out({**order, "tools": {"host compiler": "gcc 9"}}, content, there)
    assert other["sentence"] == f"Its host compiler is {IDENTITY}, not gcc 9."
    lacking = carry_out({**order, "tools": {**order["tools"], "nvcc 13.0": "ab"}}, content, there)  # type: ignore[dict-item]
    assert lacking["sentence"] == "It has no nvcc 13.0."
    newer = carry_out({**order, "version": "99"}, content, there)
    assert newer["sentence"] == f"It has kernel-builder {own_version()}, not 99."
    missing = carry_out(order, content, replace(there, cxx="/nowhere/g++"))
    assert missing["sentence"].startswith("CXX names '/nowhere/g++'")


def test_what_a_compiler_warns_of_travels_too(workshop: Workshop, there: Settings) -> None:
    compiler = workshop.folder / "bin" / "c++"
    compiler.write_text(compiler.read_text() + "echo $inputs: warning >&2\n")
    unit = _units(workshop)["part0.o"]
    assert carry_out(_order(unit, workshop), content_of(unit), there)["output"] == ["@kernel@/csrc/part0.cpp: warning"]


def test_nvcc_runs_with_the_compiler_that_suits_it(there: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    item = SimpleNamespace(kind="nvcc", digest="d", release="13.0.88")
    nvcc = SimpleNamespace(host="/opt/g++-12 -m64", host_identity="gcc 12")
    monkeypatch.setattr(workplace, "read_lock", lambda: SimpleNamespace(items={"nvcc-13.0": item}))
    monkeypatch.setattr(workplace, "provide_locked", lambda *_: nvcc)
    (there.store / "toolkits" / "nvcc-13.0.88-d").mkdir(parents=True)
    order = {
        "places": {
            "cxx": {"is": "host compiler", "as": "command"},
            "ccbin": {"is": "host compiler", "as": "program"},
            "cuda": {"is": "locked", "path": "toolkits/nvcc-13.0.88-d"},
        },
        "tools": {"host compiler": IDENTITY, "host compiler of nvcc": "gcc 12", "nvcc 13.0": "d"},
    }
    places = workplace.find_places(order, there.store, there)
    assert places["ccbin"] == "/opt/g++-12"
    assert places["cxx"] == there.cxx
    assert places["cuda"] == str(there.store / "toolkits" / "nvcc-13.0.88-d")
    other = {**order, "tools": {"host compiler of nvcc": IDENTITY}}
    with pytest.raises(ToolchainError, match=r"Its host compiler of nvcc is gcc 12, not gcc \(Fake\)"):
        workplace.find_places(other, there.store, there)
    with pytest.raises(ToolchainError, match="It has no nvcc 13"):
        workplace.find_places({**order, "tools": {"nvcc 13.0": "e"}}, there.store, there)
    moved = {"places": {"cuda": {"is": "locked", "path": "toolkits/nvcc-13.2.0-x"}}, "tools": {}}
    with pytest.raises(ToolchainError, match=r"Its lock has no toolkits/nvcc-13\.2\.0-x"):
        workplace.find_places(moved, there.store, there)


def test_what_killed_workers_left_is_cleared(workshop: Workshop, there: Settings) -> None:
    left = there.store / "orders" / "left"
    (left / "deep").mkdir(parents=True)
    unit = _units(workshop)["part0.o"]
    carry_out(_order(unit, workshop), content_of(unit), there)
    assert not left.exists()
