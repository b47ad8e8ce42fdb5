"""What a worker has: finds what an order's placeholders stand for here, and folders to compile in."""

from __future__ import annotations

import fcntl
import os
import shlex
import shutil
import sys
import tempfile
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_builder.compile.cluster.orders import COMPILER, LOCKED, PYTHON, SOURCES
from kernel_builder.errors import ToolchainError
from kernel_builder.files import locked
from kernel_builder.reporting import SilentReporter
from kernel_builder.toolchain.host import find_host_compiler
from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.nvcc.locked import provide_locked
from kernel_builder.toolchain.supply import Supply

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.lock import LockedItem


def find_places(order: Mapping[str, Any], sources: Path, settings: Settings) -> dict[str, str]:
    """Placeholder → path on this machine; toolkits and SDKs that the store lacks are downloaded.

    Args:
        order: Made by ``orders.order_of``.
        sources: Folder that the order's files lie in.
        settings: Name the store and the compiler.

    Raises:
        ToolchainError: A tool is not here, or is another one than the order's key was made with.
        DigestError: An index serves other bytes than the lock names.
    """
    asked = order["places"].items()
    needs_host = any(place["is"] == COMPILER for _, place in asked)
    host = find_host_compiler(settings) if needs_host else None
    compiler = {"command": host.cxx} if host else {}
    # What is here under the names that units give it; everything else is known by its digest.
    found = {"host compiler": host.identity} if host else {}
    places, digests = {}, set()
    with closing(Supply(settings, SilentReporter())) as supply:
        for name, place in asked:
            if place["is"] == LOCKED:
                item = _locked(place["path"], supply, settings.store)
                digests.add(item.digest)
                if host and item.kind == "nvcc":
                    nvcc = provide_locked(item, host, settings, supply, SilentReporter())
                    compiler["program"] = shlex.split(nvcc.host)[0]
                    found["host compiler of nvcc"] = nvcc.host_identity
                places[name] = str(supply.fetch(item))
    for name, place in asked:
        if place["is"] == SOURCES:
            places[name] = str(sources / place["path"])
        elif place["is"] != LOCKED:
            places[name] = sys.executable if place["is"] == PYTHON else compiler[place["as"]]
    for tool, identity in order["tools"].items():
        if tool in found and found[tool] != identity:
            raise ToolchainError(f"Its {tool} is {found[tool]}, not {identity}.")
        if tool not in found and identity not in digests:
            raise ToolchainError(f"It has no {tool}.")
    return places


def _locked(path: str, supply: Supply, store: Path) -> LockedItem:
    for item in read_lock().items.values():
        if supply.folder_of(item).relative_to(store).as_posix() == path:
            return item
    raise ToolchainError(f"Its lock has no {path}.")


@contextmanager
def workroom(store: Path) -> Iterator[Path]:
    """An empty folder for one step, gone afterwards. Clears what killed workers left.

    Several steps may run at once in one store, so each holds a lock on its folder.
    """
    rooms = store / "orders"
    with locked(store / "locks" / "orders", SilentReporter(), waiting="waiting for {}"):
        rooms.mkdir(parents=True, exist_ok=True)
        for old in rooms.iterdir():
            _remove_abandoned(old)
        folder = Path(tempfile.mkdtemp(dir=rooms))
        handle = _lock(folder)
    try:
        (folder / "tmp").mkdir()
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(handle)


def _lock(folder: Path) -> int:
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise
    return handle


def _remove_abandoned(folder: Path) -> None:
    try:
        handle = _lock(folder)
    except OSError:  # at work, or just removed by its owner
        return
    shutil.rmtree(folder, ignore_errors=True)
    os.close(handle)
