"""A kernel as its build.toml and kernel-builder.toml describe it. Paths are POSIX, relative to ``Kernel.root``."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernel_loader.format.archs import Arch
    from kernel_loader.format.versions import MajorMinor


FrameworkTable = Literal["torch", "torch-noarch", "tvm-ffi"]


@dataclass(frozen=True, kw_only=True, slots=True)
class HubTarget:
    """``[general.hub]``: where the kernel is published when no target is given."""

    repo_id: str | None = None
    branch: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class KernelDependency:
    """Another Hub kernel that this one imports; exactly one of version and revision is set."""

    repo_id: str
    version: int | None = None
    revision: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Torch:
    """The framework table: ``[torch]``, the binding, compiled once per torch SDK; or ``[torch-noarch]``, ``[tvm-ffi]``.

    Attributes:
        sources: C++ files of the binding; headers among them are not compiled.
        pyext: Extensions of files shipped from ``torch-ext/<python_name>``.
        stable_abi: Backend → lowest torch of the stable ABI; backends not named use the full ABI.
        archs: Backend → architectures that ``[torch-noarch]`` claims; empty otherwise.
    """

    sources: tuple[str, ...] = ()
    include: tuple[str, ...] = ()
    pyext: tuple[str, ...] = ("py", "pyi")
    minver: MajorMinor | None = None
    maxver: MajorMinor | None = None
    stable_abi: Mapping[str, MajorMinor] = field(default_factory=dict)
    cxx_flags: tuple[str, ...] = ()
    archs: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Component:
    """``[kernel.<key>]``: host sources of one backend. Without "torch" in ``depends`` they see no torch header."""

    key: str
    backend: str
    depends: tuple[str, ...]
    sources: tuple[str, ...]
    include: tuple[str, ...] = ()
    cxx_flags: tuple[str, ...] = ()
    cuda_flags: tuple[str, ...] = ()
    cuda_capabilities: tuple[Arch, ...] | None = None
    cuda_minver: MajorMinor | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Device:
    """``[device.<name>]`` of kernel-builder.toml: one device-only source, compiled by NVRTC per arch and toolkit.

    Attributes:
        name: C identifier; the host code finds the code as ``kb::device_image("<name>")``.
        source: The ``.cu`` file. It sees CUDA's headers, ``include`` and the common device headers only.
        capabilities: Architectures asked for; None = the toolkit's defaults.
        defines: Preprocessor definitions, ``NAME`` or ``NAME=VALUE``.
        dynamic_shared_bytes: Largest dynamic shared memory a launch of this unit asks for, for the static fit check.
    """

    name: str
    source: str
    include: tuple[str, ...] = ()
    capabilities: tuple[Arch, ...] | None = None
    defines: tuple[str, ...] = ()
    dynamic_shared_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Kernel:
    """One kernel folder, read and validated.

    Attributes:
        root: Absolute folder of build.toml.
        common: Absolute folder of the shared headers (``kernels-src/common``), or None when absent.
        framework: Which framework table build.toml has; only ``torch`` is built by this version.
        sources: Every file the build depends on → lower-case hex SHA-256 of its content. Keys are POSIX paths
            relative to ``root``, or ``common/…`` for shared headers that are reached by includes. Sorted.
        notes: Sentences for the author, such as that build.toml is of an older edition.
    """

    root: Path
    common: Path | None
    name: str
    version: int
    license: str
    backends: tuple[str, ...]
    torch: Torch
    components: tuple[Component, ...]
    framework: FrameworkTable = "torch"
    devices: tuple[Device, ...] = ()
    upstream: str | None = None
    source: str | None = None
    hub: HubTarget = field(default_factory=HubTarget)
    python_depends: tuple[str, ...] = ()
    kernel_depends: tuple[KernelDependency, ...] = ()
    backend_python_depends: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    backend_kernel_depends: Mapping[str, tuple[KernelDependency, ...]] = field(default_factory=dict)
    cuda_minver: MajorMinor | None = None
    cuda_maxver: MajorMinor | None = None
    sources: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def python_name(self) -> str:
        """Import name: ``flash-attn2`` → ``flash_attn2``."""
        return self.name.replace("-", "_")
