"""Rules between keys, and between a spec and the files beside it."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from kernel_builder.spec.includes import HEADER_SUFFIXES
from kernel_builder.spec.paths import check_file, check_folder
from kernel_builder.spec.sources import python_folder

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel_builder.spec.faults import Place
    from kernel_builder.spec.model import Component, Kernel

LINE_TABLES = ("-lineinfo", "--generate-line-info")
COMPILED_SUFFIXES = frozenset({".cpp", ".cc", ".cxx", ".cu"})


def check(kernel: Kernel, build: Place, builder: Place) -> None:
    """Note every fault that no single key shows."""
    _framework(kernel, build)
    _versions(kernel, build)
    _backends(kernel, build, builder)
    _compiled_once(kernel, build)
    _sources(kernel, build)
    _devices(kernel, builder)


def notes(kernel: Kernel) -> Iterator[str]:
    """What is done otherwise than the spec says, in sentences for the author."""
    for component in kernel.components:
        if set(component.cuda_flags) & set(LINE_TABLES):
            yield f"kernel.{component.key}: line tables hold paths of this machine; only build --dev makes them"


def _framework(kernel: Kernel, build: Place) -> None:
    if kernel.framework == "torch-noarch":
        for component in kernel.components:
            build.key("kernel").key(component.key).fault(
                "a torch-noarch kernel compiles nothing", "use [torch] instead"
            )
    folder = python_folder(kernel)
    if kernel.name and not (folder / "__init__.py").is_file():
        build.fault(f"the Python package {folder.relative_to(kernel.root).as_posix()}/__init__.py does not exist")


def _versions(kernel: Kernel, build: Place) -> None:
    bounds = (
        (kernel.torch.minver, kernel.torch.maxver, build.key(kernel.framework)),
        (kernel.cuda_minver, kernel.cuda_maxver, build.key("general").key("cuda")),
    )
    for low, high, at in bounds:
        if low is not None and high is not None and low > high:
            at.fault(f"minver {low} is above maxver {high}")


def _backends(kernel: Kernel, build: Place, builder: Place) -> None:
    for component in kernel.components:
        if component.backend and component.backend not in kernel.backends:
            build.key("kernel").key(component.key).key("backend").fault(
                f"{component.backend!r} is not in general.backends", "add it there or remove the table"
            )
    if kernel.devices and "cuda" not in kernel.backends:
        builder.key("device").fault("device code is for cuda, which is not in general.backends")
    elif kernel.devices and not any(component.backend == "cuda" for component in kernel.components):
        builder.key("device").fault('no [kernel.*] table with backend = "cuda" launches the device code')


def _compiled_once(kernel: Kernel, build: Place) -> None:
    seen = {(backend, path): "torch" for backend in kernel.backends for path in kernel.torch.sources if _compiled(path)}
    for component in kernel.components:
        for index, path in enumerate(component.sources):
            first = seen.setdefault((component.backend, path), component.key) if _compiled(path) else component.key
            if first != component.key:
                owner = "torch" if first == "torch" else f"kernel.{first}"
                at = build.key("kernel").key(component.key).key("src").item(index)
                at.fault(f"{path} is compiled by {owner} already", "define everything once")


def _compiled(path: str) -> bool:
    return PurePosixPath(path).suffix in COMPILED_SUFFIXES


def _sources(kernel: Kernel, build: Place) -> None:
    at = build.key(kernel.framework)
    _files(kernel, kernel.torch.sources, at)
    _folders(kernel, kernel.torch.include, at)
    if kernel.framework == "torch" and not at_fault(at) and not any(map(_compiled, kernel.torch.sources)):
        at.key("src").fault("lists no C++ source: the library would register no operator")
    for component in kernel.components:
        at = build.key("kernel").key(component.key)
        _files(kernel, component.sources, at)
        _folders(kernel, component.include, at)
        if component.backend in ("cpu", "cuda") and component.sources:
            _component(component, at)


def at_fault(at: Place) -> bool:
    """Whether a fault was noted at this place or below, so that followers of it stay unsaid."""
    prefix = f"{at.file}: {at.path}"
    return any(fault.where.startswith(prefix) for fault in at.faults)


def _component(component: Component, at: Place) -> None:
    for index, path in enumerate(component.sources):
        suffix = PurePosixPath(path).suffix
        if suffix not in COMPILED_SUFFIXES | HEADER_SUFFIXES:
            at.key("src").item(index).fault(f"{path} is neither a C++ nor a CUDA source nor a header")
        elif suffix == ".cu" and component.backend != "cuda":
            at.key("src").item(index).fault(f"{path} is a CUDA source, the backend is {component.backend}")
    if not any(map(_compiled, component.sources)) and not at_fault(at):
        at.key("src").fault("lists headers only: nothing would be compiled")


def _devices(kernel: Kernel, builder: Place) -> None:
    for device in kernel.devices:
        at = builder.key("device").key(device.name)
        if not device.source:
            continue
        if PurePosixPath(device.source).suffix != ".cu":
            at.key("src").fault(f"{device.source} does not end with .cu")
        check_file(kernel.root, device.source, at.key("src"))
        _folders(kernel, device.include, at)


def _files(kernel: Kernel, paths: tuple[str, ...], at: Place) -> None:
    for index, path in enumerate(paths):
        check_file(kernel.root, path, at.key("src").item(index))


def _folders(kernel: Kernel, paths: tuple[str, ...], at: Place) -> None:
    for index, path in enumerate(paths):
        check_folder(kernel.root, path, at.key("include").item(index))
