"""Examines the machine: what a build would use, and what is in its way."""

from __future__ import annotations

import os
import platform
import shutil
from contextlib import closing
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal

from kernel_builder.errors import ToolchainError, UsageError
from kernel_builder.toolchain.host import find_host_compiler
from kernel_builder.toolchain.index.places import Index
from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.nvcc.archive import releases
from kernel_builder.toolchain.nvcc.debian import find_tools
from kernel_builder.toolchain.nvcc.system import find_candidates
from kernel_builder.toolchain.pip_settings import read_pip_settings
from kernel_builder.toolchain.supply import Supply

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.lock import LockedItem

_TOPICS = {"toolkit": "toolkit", "torch": "torch-sdk", "nvcc": "nvcc"}
State = Literal["ok", "absent", "problem"]
# Two toolkits, two SDKs and the units of a matrix; measured at 0.5 GB.
_ROOM = 1 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class Condition:
    """One thing that was looked at. ``absent`` things are fetched when a build needs them; a ``problem`` stops builds.

    Attributes:
        topic: Stable kebab-case name, e.g. ``host-compiler``.
        message: One sentence or value.
        hint: What to do about a problem, may be empty.
    """

    topic: str
    state: State
    message: str
    hint: str = ""

    def to_json(self) -> dict[str, Any]:
        """The condition as plain data."""
        return {"topic": self.topic, "state": self.state, "message": self.message, "hint": self.hint}


def examine(settings: Settings, reporter: Reporter, *, network: bool = True) -> tuple[Condition, ...]:
    """Look at compiler, ninja, C library, store, toolkits, nvccs, SDKs and, with ``network``, at pip's indexes.

    Nothing is changed or downloaded but an index page. A CUDA installation is not needed: those that are found are
    named because ``--toolkit system`` would take them.
    """
    items = list(read_lock().items.values())
    with closing(Supply(settings, reporter)) as supply:
        provisioned = [_item(item, supply.folder_of(item), settings.path) for item in items]
    return (
        _host(settings),
        _ninja(),
        Condition(topic="c-library", state="ok", message=" ".join(platform.libc_ver()).strip() or "unknown"),
        *_store(settings.store),
        *provisioned,
        _installed_nvcc(settings),
        _archives(settings),
        *([_index(items, settings, reporter)] if network else []),
    )


def _host(settings: Settings) -> Condition:
    try:
        host = find_host_compiler(settings)
    except ToolchainError as error:
        return Condition(topic="host-compiler", state="problem", message=error.message, hint=error.hint)
    return Condition(topic="host-compiler", state="ok", message=f"{host.cxx}: {host.identity}")


def _ninja() -> Condition:
    # The package, not a program on PATH: its syntax module writes the graph.
    if find_spec("ninja"):
        return Condition(topic="ninja", state="ok", message="found")
    return Condition(
        topic="ninja", state="problem", message="ninja was not found.", hint="pip install 'kernel-builder[build]'"
    )


def _store(store: Path) -> tuple[Condition, ...]:
    place = next(folder for folder in (store, *store.parents) if folder.exists())
    hint = "set KERNEL_BUILDER_CACHE to another folder"
    if not os.access(place, os.W_OK | os.X_OK):
        return (Condition(topic="store", state="problem", message=f"{store} cannot be written.", hint=hint),)
    free = shutil.disk_usage(place).free
    room = f"{free / 1e9:.1f} GB free"
    if free < _ROOM:
        return (Condition(topic="store", state="problem", message=f"{store} has only {room}.", hint=hint),)
    return (Condition(topic="store", state="ok", message=f"{store} ({room})"),)


def _item(item: LockedItem, folder: Path, path: str) -> Condition:
    topic = f"{_TOPICS[item.kind]}-{item.version}"
    if folder.is_dir():
        return Condition(topic=topic, state="ok", message=f"{item.label} in {folder}")
    if item.package:
        try:
            find_tools(item.package, path)
        except ToolchainError as error:
            return Condition(topic=topic, state="absent", message=error.message, hint=error.hint)
    return Condition(topic=topic, state="absent", message=f"{item.label} is downloaded when a plan needs it")


def _installed_nvcc(settings: Settings) -> Condition:
    found = "; ".join(map(str, find_candidates(settings)))
    return Condition(
        topic="nvcc-system",
        state="ok" if found else "absent",
        message=f"--toolkit system would use {found}" if found else "no nvcc is installed, and none is needed",
    )


def _archives(settings: Settings) -> Condition:
    if not settings.redist:
        return Condition(
            topic="nvcc-archive", state="absent", message="KERNEL_BUILDER_REDIST names no release manifest"
        )
    try:
        names = ", ".join(f"{release.version}: {release.location}" for release in releases(settings).values())
    except UsageError as error:
        return Condition(topic="nvcc-archive", state="problem", message=error.message, hint=error.hint)
    return Condition(topic="nvcc-archive", state="ok", message=f"--toolkit archive would use {names}")


def _index(items: list[LockedItem], settings: Settings, reporter: Reporter) -> Condition:
    """Ask for the smallest locked wheel: an index that has it answers with one short page."""
    wheel = min((wheel for item in items for wheel in item.wheels), key=lambda wheel: wheel.unpacked)
    names = {file.name for file in wheel.files}
    try:
        with closing(Index(read_pip_settings(settings.path, reporter), reporter)) as index:
            origin = next((found.origin for found in index.files(wheel.project) if found.name in names), None)
            reasons = "; ".join(index.failures)
    except ToolchainError as error:
        return Condition(topic="index", state="problem", message=error.message, hint=error.hint)
    if origin:
        return Condition(topic="index", state="ok", message=f"{origin} offers {wheel.project} {wheel.version}")
    return Condition(
        topic="index",
        state="problem",
        message=f"No index offers {wheel.project} {wheel.version}: {reasons or 'nothing is configured'}.",
        hint="pip config list",
    )
