"""Turns the tables of build.toml and kernel-builder.toml into a Kernel, noting every fault of form."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from kernel_builder.spec import schema as s
from kernel_builder.spec.faults import nearest
from kernel_builder.spec.kinds import IDENTIFIER, mismatch
from kernel_builder.spec.model import Component, Device, HubTarget, Kernel, Torch
from kernel_builder.spec.table import Table

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from kernel_builder.spec.faults import Place
    from kernel_builder.spec.model import FrameworkTable
    from kernel_builder.spec.table import Section


def kernel(
    build: Mapping[str, object], top: Place, devices: tuple[Device, ...], root: Path, common: Path | None
) -> Kernel:
    """A Kernel without its inventory; meaningless where faults were noted."""
    for name in build.keys() - {"general", "kernel", *s.FRAMEWORKS}:
        top.key(name).fault(f"unknown table {name!r}", nearest(name, ("general", *s.FRAMEWORKS, "kernel")))
    general = Table(_subtable(build, "general", top), s.GENERAL, top.key("general"))
    hub = Table(general[s.SUBTABLES["hub"]], s.HUB, general.at.key("hub"))
    backends = {
        name: Table(general[s.SUBTABLES[name]], section, general.at.key(name))
        for name, section in s.BACKEND_TABLES.items()
    }
    framework = _framework(build, top)
    return Kernel(
        root=root,
        common=common,
        name=general[s.NAME],
        version=general[s.KERNEL_VERSION],
        license=general[s.LICENSE],
        backends=general[s.BACKEND_LIST],
        framework=framework,
        torch=_torch(
            Table(_subtable(build, framework, top), s.FRAMEWORK_TABLES[framework], top.key(framework)),
            general[s.BACKEND_LIST],
        ),
        components=_components(build, top),
        devices=devices,
        upstream=general[s.UPSTREAM],
        source=general[s.SOURCE],
        hub=HubTarget(repo_id=hub[s.REPO], branch=hub[s.HUB_BRANCH]),
        python_depends=general[s.PYTHON_DEPENDS],
        kernel_depends=general[s.KERNEL_DEPENDS],
        backend_python_depends={n: t[s.PYTHON_DEPENDS] for n, t in backends.items() if t[s.PYTHON_DEPENDS]},
        backend_kernel_depends={n: t[s.KERNEL_DEPENDS] for n, t in backends.items() if t[s.KERNEL_DEPENDS]},
        cuda_minver=backends["cuda"][s.MINVER],
        cuda_maxver=backends["cuda"][s.MAXVER],
    )


def devices(builder: Mapping[str, object], top: Place) -> tuple[Device, ...]:
    """The device units of kernel-builder.toml."""
    for name in builder.keys() - {"device"}:
        top.key(name).fault(f"unknown table {name!r}", nearest(name, ("device",)))
    return tuple(_device(name, table) for name, table in _tables(builder, "device", top, lambda _: s.DEVICE))


def _subtable(tables: Mapping[str, object], name: str, at: Place) -> Mapping[str, object]:
    raw = tables.get(name, {})
    if isinstance(raw, dict):
        return raw
    mismatch(at.key(name), "a table", raw)
    return {}


def _tables(
    tables: Mapping[str, object], name: str, at: Place, section: Callable[[Mapping[str, object]], Section]
) -> list[tuple[str, Table]]:
    group = _subtable(tables, name, at)
    return [
        (key, Table(raw, section(raw), at.key(name).key(key)))
        for key in group
        for raw in (_subtable(group, key, at.key(name)),)
    ]


def _framework(build: Mapping[str, object], top: Place) -> FrameworkTable:
    present = [name for name in s.FRAMEWORKS if name in build]
    if len(present) != 1:
        found = f"found {' and '.join(present)}" if present else "found none"
        top.fault(f"exactly one of the tables {', '.join(s.FRAMEWORKS)} is needed, {found}")
    return cast("FrameworkTable", present[0] if present else "torch")


def _torch(table: Table, backends: tuple[str, ...]) -> Torch:
    archs = {"cuda": table[s.CUDA_ARCHS], "rocm": table[s.ROCM_ARCHS]}
    return Torch(
        sources=_once(table[s.SRC]),
        include=table[s.INCLUDE],
        pyext=table[s.PYEXT],
        minver=table[s.MINVER],
        maxver=table[s.MAXVER],
        stable_abi={name: version for name, version in table[s.STABLE].items() if name in backends},
        cxx_flags=table[s.CXX_FLAGS],
        archs={backend: listed for backend, listed in archs.items() if listed},
    )


def _once(paths: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(paths))


def _component_section(raw: Mapping[str, object]) -> Section:
    return s.COMPONENT_TABLES.get(str(raw.get("backend")), s.ANY_COMPONENT)


def _components(build: Mapping[str, object], top: Place) -> tuple[Component, ...]:
    return tuple(
        Component(
            key=key,
            backend=table[s.BACKEND],
            depends=table[s.DEPENDS],
            sources=_once(table[s.SRC_REQUIRED]),
            include=table[s.INCLUDE],
            cxx_flags=table[s.CXX_FLAGS],
            cuda_flags=table[s.CUDA_FLAGS],
            cuda_capabilities=table[s.CAPABILITIES],
            cuda_minver=table[s.CUDA_MINVER],
        )
        for key, table in _tables(build, "kernel", top, _component_section)
    )


def _device(name: str, table: Table) -> Device:
    IDENTIFIER.check(name, table.at)
    return Device(
        name=name,
        source=table[s.DEVICE_SRC],
        include=table[s.INCLUDE],
        capabilities=table[s.DEVICE_CAPABILITIES],
        defines=table[s.DEFINES],
        dynamic_shared_bytes=table[s.SHARED_BYTES],
    )
