"""A dask scheduler and workers in processes of their own; each worker has its own home, store and compiler."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

# Compiles as the real one does, but waits first when its name says so.
_COMPILER = """#!/bin/sh
for word in "$@"; do
  case $word in
    --version) {version};;
    */slow.cpp) echo $$ >> {folder}/slow; while [ ! -e {folder}/go ]; do sleep 0.05; done;;
  esac
done
exec {cxx} "$@"
"""


@dataclass(kw_only=True)
class Worker:
    """``dask worker``: ``process`` is the nanny, which starts another worker when hers dies."""

    folder: Path
    process: subprocess.Popen[bytes]

    @property
    def slow(self) -> list[int]:
        """Compilers that have met ``slow.cpp``."""
        file = self.folder / "slow"
        return [int(line) for line in file.read_text().split()] if file.exists() else []

    def go(self) -> None:
        (self.folder / "go").touch()

    def reset(self) -> None:
        for name in ("slow", "go"):
            (self.folder / name).unlink(missing_ok=True)

    def units(self) -> dict[str, str]:
        """Key → name of the results in its store."""
        return {path.parent.name: path.name for path in self.folder.glob("store/units/*/*/*") if path.suffix != ".json"}

    def kill(self, compiler: int) -> None:
        """``kill -9`` of the worker process that a compiler runs under."""
        process = compiler
        while (parent := _parent(process)) != self.process.pid:
            process = parent
        os.kill(process, signal.SIGKILL)


@dataclass(kw_only=True)
class Cluster:
    """A scheduler on loopback."""

    folder: Path
    port: int
    processes: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @classmethod
    def start(cls, folder: Path) -> Cluster:
        cluster = cls(folder=folder, port=free_port())
        cluster._run("scheduler", "--host", "127.0.0.1", "--port", str(cluster.port))
        wait_for(cluster._answers)
        return cluster

    @property
    def executor(self) -> str:
        return f"dask://127.0.0.1:{self.port}"

    def worker(self, name: str, *, version: str = "", **env: str) -> Worker:
        """Start one; ``version`` is what its compiler says instead of its own."""
        folder = self.folder / name
        (folder / "home").mkdir(parents=True)
        (folder / "store").mkdir()
        for downloads in ("toolkits", "sdks"):
            (folder / "store" / downloads).symlink_to(Settings.from_environment().store / downloads)
        text = _COMPILER.format(
            folder=folder, cxx=shutil.which("c++"), version=f"printf '%s\\n' '{version}'; exit" if version else ":"
        )
        (folder / "g++").write_text(text)
        (folder / "g++").chmod(0o755)
        own = {"HOME": folder / "home", "KERNEL_BUILDER_CACHE": folder / "store", "CXX": folder / "g++"}
        process = self._run(
            *("worker", f"tcp://127.0.0.1:{self.port}", "--host", "127.0.0.1", "--nthreads", "1"),
            *("--local-directory", str(folder)),
            **{key: str(value) for key, value in own.items()},
            **env,
        )
        return Worker(folder=folder, process=process)

    def ready(self, number: int) -> None:
        """Wait until so many workers are known to the scheduler."""
        from distributed import Client

        with Client(f"tcp://127.0.0.1:{self.port}", set_as_default=False) as client:
            client.wait_for_workers(number, timeout=30)

    def stop(self, worker: Worker | None = None) -> None:
        """End everything, or one worker."""
        for process in self.processes if worker is None else [worker.process]:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(timeout=10)

    def _run(self, *arguments: str, **env: str) -> subprocess.Popen[bytes]:
        argv = [sys.executable, "-m", f"distributed.cli.dask_{arguments[0]}", *arguments[1:], "--no-dashboard"]
        with (self.folder / f"{len(self.processes)}.log").open("wb") as log:
            process = subprocess.Popen(
                argv, env={**os.environ, **env}, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )
        self.processes.append(process)
        return process

    def _answers(self) -> bool:
        try:
            socket.create_connection(("127.0.0.1", self.port), timeout=1).close()
        except OSError:
            return False
        return True


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def wait_for(condition: Callable[[], object], seconds: float = 30) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.05)


def alive(process: int) -> bool:
    try:
        return _status(process)[0] != "Z"
    except OSError:
        return False


def _parent(process: int) -> int:
    return int(_status(process)[1])


def _status(process: int) -> list[str]:
    """State, parent, …"""
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
