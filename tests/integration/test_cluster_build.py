"""`build --executor dask://…`: the same bytes as a build here, whatever happens to a worker."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from compile_trio import Bench
from dask_cluster import Cluster, Worker, alive, free_port, wait_for
from toy_kernel import VARIANT, Project, Toy

from kernel_builder.compile.build import build
from kernel_builder.compile.cluster.executor import connect
from kernel_builder.errors import CompileError
from kernel_builder.settings import Settings
from kernel_builder.toolchain.provision import provision

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest.importorskip("distributed")
pytestmark = pytest.mark.toolchain

# Another banner for the compiler of the machine.
_ODD = "g++ (Odd) 99.1.0 Free Software Foundation"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A scheduler without workers of its own."""
    running = Cluster.start(tmp_path_factory.mktemp("cluster"))
    yield running
    running.stop()


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Worker, Worker]]:
    """A scheduler and two workers."""
    running = Cluster.start(tmp_path_factory.mktemp("pair"))
    try:
        workers = running.worker("one"), running.worker("two")
        running.ready(2)
        yield running, *workers
    finally:
        running.stop()


def _toy(place: Path, number: int) -> Toy:
    """A toy whose ``slow.cpp`` waits on the workers of `dask_cluster`; ``number`` makes it one of its own."""
    toy = Project.make(place).write(files={"csrc/slow.cpp": f"int slow() {{ return {number}; }}\n"})
    toy.edit("build.toml", '"csrc/count.cpp"', '"csrc/count.cpp", "csrc/slow.cpp"')
    return toy


def _here(toy: Toy, tmp_path: Path) -> Path:
    """A store with the results of a build of the same sources on this machine."""
    store = Project.make(tmp_path / "here").store
    toy.build("--out", tmp_path / "here" / "dist", KERNEL_BUILDER_CACHE=str(store))
    return store


def _digests(store: Path) -> dict[str, str]:
    return {
        f"{path.parent.name}/{path.name}": hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(store.glob("units/*/*/*"))
        if path.name != "unit.json"
    }


def _start(toy: Toy, executor: str) -> subprocess.Popen[str]:
    argv = [sys.executable, "-m", "kernel_builder", "build", toy.name, "--only", VARIANT, "--executor", executor]
    environ = {**os.environ, "KERNEL_BUILDER_CACHE": str(toy.project.store)}
    return subprocess.Popen(argv, cwd=toy.project.place, env=environ, stderr=subprocess.PIPE, text=True)


def test_two_workers_make_the_bytes_of_a_build_here(pair: tuple[Cluster, Worker, Worker], tmp_path: Path) -> None:
    cluster, *workers = pair
    for worker in workers:
        worker.go()
    toy = _toy(tmp_path, 1)
    made = toy.build("--executor", cluster.executor)
    assert len(made.data["compiled"]) == 7
    assert _digests(toy.project.store) == _digests(_here(toy, tmp_path))
    compiled = [set(worker.units().values()) for worker in workers]
    assert set.union(*compiled) == {"torch_binding.o", "count.o", "slow.o", "parallel.o", "stream.o", "identity.o"}
    assert all(compiled), "both took part"
    log = Path(made.data["log"]).read_text()
    assert f"{toy.folder}/csrc/count.cpp" in log
    assert not any(str(worker.folder) in log for worker in workers), "paths are those of the machine that asked"


def test_a_worker_killed_while_it_compiles_does_not_fail_the_build(
    pair: tuple[Cluster, Worker, Worker], tmp_path: Path
) -> None:
    cluster, *workers = pair
    for worker in workers:
        worker.reset()
    toy = _toy(tmp_path, 2)
    building = _start(toy, cluster.executor)
    wait_for(lambda: any(worker.slow for worker in workers))
    victim = next(worker for worker in workers if worker.slow)
    (compiler,) = victim.slow
    victim.kill(compiler)
    wait_for(lambda: sum(len(worker.slow) for worker in workers) == 2)
    wait_for(lambda: not alive(compiler), seconds=5)
    for worker in workers:
        worker.go()
    _, said = building.communicate(timeout=60)
    assert building.returncode == 0, said
    assert _digests(toy.project.store) == _digests(_here(toy, tmp_path))
    cluster.ready(2)


def test_an_error_in_a_source_is_reported_as_if_it_were_compiled_here(
    pair: tuple[Cluster, Worker, Worker], tmp_path: Path
) -> None:
    toy = Project.make(tmp_path).write()
    toy.edit("csrc/count.cpp", "kStep;", "kStop;")
    done = toy.attempt("--executor", pair[0].executor)
    assert done.returncode == 5
    assert f"{toy.folder}/csrc/count.cpp:3:" in done.stderr
    assert "'kStop' was not declared" in done.stderr
    assert "command: " in done.stderr
    assert "Traceback" not in done.stderr


def test_an_interrupted_build_takes_its_orders_back(pair: tuple[Cluster, Worker, Worker], tmp_path: Path) -> None:
    cluster, *workers = pair
    for worker in workers:
        worker.reset()
    toy = _toy(tmp_path, 3)
    building = _start(toy, cluster.executor)
    wait_for(lambda: any(worker.slow for worker in workers))
    building.send_signal(signal.SIGINT)
    _, said = building.communicate(timeout=20)
    assert building.returncode == 130, said
    assert not list((toy.project.store / "runs").iterdir())
    for worker in workers:
        worker.go()
    assert toy.build("--executor", cluster.executor).data["compiled"], "workers are there for the next build"


def test_a_worker_with_another_compiler_gets_no_host_units(
    pair: tuple[Cluster, Worker, Worker], tmp_path: Path
) -> None:
    cluster, *workers = pair
    odd = cluster.worker("odd", version=_ODD)
    cluster.ready(3)
    for worker in workers:
        worker.go()
    toy = _toy(tmp_path, 4)
    toy.build("--executor", cluster.executor)
    assert _digests(toy.project.store) == _digests(_here(toy, tmp_path))
    assert odd.units() == {}
    cluster.stop(odd)


def test_device_code_made_on_workers_is_the_same(pair: tuple[Cluster, Worker, Worker], tmp_path: Path) -> None:
    for worker in pair[1:]:
        worker.go()
    there, here = Bench.make(tmp_path / "there"), Bench.make(tmp_path / "here")
    settings = replace(Settings.from_environment(), store=Project.make(tmp_path / "there" / "place").store)
    plan = there.toolchain(only=["*abi210-cu128*"]).plan
    made = build(provision(plan, settings, there.notes), settings, there.notes, executor=connect(pair[0].executor))
    assert there.notes.warnings == []
    assert sorted(made.compiled) == sorted(here.build(only=["*abi210-cu128*"]).compiled)
    assert _digests(settings.store) == _digests(here.store)
    device = {name.partition("/")[0] for name in _digests(here.store) if name.endswith((".cubin", ".ptx"))}
    assert device
    assert device <= {*pair[1].units(), *pair[2].units()}, "by the workers' own copies of the toolkit"


def test_without_any_worker_the_build_gives_up_in_time(cluster: Cluster, tmp_path: Path) -> None:
    toy = Project.make(tmp_path).write()
    bench = Bench.make(tmp_path)
    settings = replace(Settings.from_environment(), store=toy.project.store)
    with pytest.raises(CompileError, match="no worker for 1 seconds") as caught:
        build(bench.toolchain(only=["*cpu*"]), settings, bench.notes, executor=connect(cluster.executor, patience=1))
    assert "dask worker" in caught.value.hint


def test_a_worker_of_another_version_is_named(cluster: Cluster, tmp_path: Path) -> None:
    about = tmp_path / "site" / "kernel_builder-99.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: kernel-builder\nVersion: 99.0\n")
    worker = cluster.worker("newer", PYTHONPATH=str(tmp_path / "site"))
    cluster.ready(1)
    done = Project.make(tmp_path).write().attempt("--executor", cluster.executor)
    cluster.stop(worker)
    assert done.returncode == 4
    assert "has kernel-builder 99.0, this is 0." in done.stderr
    assert "The worker tcp://127.0.0.1:" in done.stderr


def test_what_no_worker_can_compile_is_compiled_here(cluster: Cluster, tmp_path: Path) -> None:
    odd = cluster.worker("odd", version=_ODD)
    cluster.ready(1)
    toy = Project.make(tmp_path).write()
    made = toy.build("--executor", cluster.executor)
    cluster.stop(odd)
    assert len(made.data["compiled"]) == 6
    assert odd.units() == {}
    assert "no worker can" in made.stderr
    assert "Its host compiler is gcc (Odd) 99.1.0" in made.stderr


def test_a_scheduler_that_is_not_there_is_said_soon(tmp_path: Path) -> None:
    toy = Project.make(tmp_path).write()
    start = time.monotonic()
    done = toy.attempt("--executor", f"dask://127.0.0.1:{free_port()}")
    assert time.monotonic() - start < 12
    assert done.returncode == 4
    assert "error: The scheduler of the cluster does not answer." in done.stderr
    assert "Traceback" not in done.stderr
