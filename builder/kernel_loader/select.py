"""Which variant fits: a decision with a reason for every name, and a total order on those that fit."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kernel_loader.environment import Environment, dotted, numbers
from kernel_loader.format.variants import ArchVariant, NoarchVariant, Variant, VariantNameError, parse
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kernel_loader.format.metadata import Metadata

# From the farthest miss to the nearest: a variant is rejected by the first test that it fails.
REASONS = (
    "unknown-name",
    "os",
    "cpu",
    "free-threaded",
    "backend",
    "no-torch",
    "tvm-ffi",
    "torch-version",
    "stable-abi-major",
    "stable-abi-newer",
    "cxx-abi",
    "backend-version",
    "cuda-major",
    "cuda-minor",
    "macos",
    "floor",
    "arch",
)
# Python 3.15 is the first whose stable ABI covers free-threaded builds.
_FREE_THREADED_ABI = (3, 15)
_FIRST_METAL_MACOS = 26


@dataclass(frozen=True, kw_only=True, slots=True)
class Decision:
    """What was decided about one variant name.

    Attributes:
        variant: The parsed name, None for a name that this version does not know.
        reason: ``""`` when accepted, otherwise one of ``REASONS``.
        detail: The reason in words.
    """

    name: str
    variant: Variant | None
    accepted: bool
    reason: str = ""
    detail: str = ""

    def to_json(self) -> dict[str, Any]:
        """The decision as plain data."""
        return {"variant": self.name, "accepted": self.accepted, "reason": self.reason, "detail": self.detail}


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """Decisions, accepted ones first in order of preference, then rejected ones, nearest miss first."""

    best: Decision | None
    decisions: tuple[Decision, ...]


Rejection = tuple[str, str]


def select(names: Iterable[str], env: Environment, backend: str | None = None) -> Selection:
    """Decide by name alone. The order of ``names`` does not matter.

    Args:
        names: Folder names under ``build/``.
        env: The process that will import the kernel.
        backend: Backend to use instead of the environment's own.
    """
    wanted = backend or env.backend
    return _ordered([_decide(name, env, wanted) for name in sorted(set(names))], env)


def refine(
    selection: Selection, read: Callable[[str], Metadata], env: Environment, *, check_arch: bool = True
) -> Selection:
    """Decide again by metadata, which is small and fetched before the payload.

    ``read`` is called for accepted variants in order of preference until one stands.
    """
    decisions = list(selection.decisions)
    for index, decision in enumerate(decisions):
        if not decision.accepted:
            break
        rejection = next(_metadata_rejections(read(decision.name), env, check_arch=check_arch), None)
        if rejection is None:
            break
        decisions[index] = replace(decision, accepted=False, reason=rejection[0], detail=rejection[1])
    return _ordered(decisions, env)


def _ordered(decisions: list[Decision], env: Environment) -> Selection:
    accepted = sorted((d for d in decisions if d.accepted), key=_preference)
    rejected = sorted((d for d in decisions if not d.accepted), key=lambda d: _distance(d, env))
    return Selection(best=accepted[0] if accepted else None, decisions=(*accepted, *rejected))


def _decide(name: str, env: Environment, backend: str) -> Decision:
    try:
        variant = parse(name)
    except VariantNameError:
        detail = "the name is unknown to this version; it may need a newer kernel-loader"
        return Decision(name=name, variant=None, accepted=False, reason="unknown-name", detail=detail)
    if isinstance(variant, NoarchVariant):
        rejections = _noarch_rejections(variant, backend)
    else:
        rejections = _arch_rejections(variant, env, backend)
    rejection = next(rejections, None)
    if rejection is None:
        return Decision(name=name, variant=variant, accepted=True)
    return Decision(name=name, variant=variant, accepted=False, reason=rejection[0], detail=rejection[1])


def _noarch_rejections(variant: NoarchVariant, backend: str) -> Iterator[Rejection]:
    wanted = "npu" if backend == "cann" else backend
    if variant.backend not in (wanted, "universal"):
        yield "backend", f"built for {variant.backend}, wanted is {wanted}"


def _arch_rejections(variant: ArchVariant, env: Environment, backend: str) -> Iterator[Rejection]:
    if variant.os != env.os:
        yield "os", f"built for {variant.os}, this is {env.os}"
    if variant.cpu != env.cpu:
        yield "cpu", f"built for {variant.cpu} processors, this is {env.cpu}"
    if env.free_threaded and env.python < _FREE_THREADED_ABI:
        yield "free-threaded", "machine code needs Python 3.15 or newer when Python is free-threaded"
    if variant.backend.name != backend:
        yield "backend", f"built for {variant.backend.name}, wanted is {backend}"
    if variant.framework.kind == "tvm-ffi":
        yield from _tvm_ffi_rejections(variant.framework.version, env)
    else:
        yield from _torch_rejections(variant, env)
    yield from _backend_version_rejections(variant, env)
    if backend == "metal" and (env.macos is None or env.macos.major < _FIRST_METAL_MACOS):
        yield "macos", f"needs macOS {_FIRST_METAL_MACOS} or newer, this is {env.macos}"


def _tvm_ffi_rejections(version: MajorMinor, env: Environment) -> Iterator[Rejection]:
    if env.tvm_ffi != version:
        have = f"tvm-ffi {env.tvm_ffi} is installed" if env.tvm_ffi else "it is not installed"
        yield "tvm-ffi", f"built for tvm-ffi {version}, {have}"


def _torch_rejections(variant: ArchVariant, env: Environment) -> Iterator[Rejection]:
    built, running = variant.framework.version, env.torch_version
    if running is None:
        yield "no-torch", f"needs torch {built}, and torch is not installed"
        return
    if variant.framework.kind == "torch":
        if built != running:
            yield "torch-version", f"built for torch {built}, this is torch {running}"
    elif built.major != running.major:
        yield "stable-abi-major", f"built for torch {built.major}.x from {built}, this is torch {running}"
    elif built > running:
        yield "stable-abi-newer", f"needs torch {built} or newer, this is torch {running}"
    tag = variant.framework.cxx_abi
    if tag and env.os == "linux" and env.cxx11 is not None and (tag == "cxx11") != env.cxx11:
        yield "cxx-abi", f"built with the {tag} ABI, torch uses {'cxx11' if env.cxx11 else 'cxx98'}"


def _backend_version_rejections(variant: ArchVariant, env: Environment) -> Iterator[Rejection]:
    built, running = variant.backend.version, env.version_of(variant.backend.name)
    if built is None or built == running:
        return
    if variant.backend.name != "cuda" or running is None:
        yield "backend-version", f"built for {variant.backend.name} {built}, this is {running or 'unknown'}"
    elif built.major != running.major:
        yield "cuda-major", f"built with CUDA {built}, torch uses CUDA {running}"
    elif built.minor > running.minor:
        yield "cuda-minor", f"built with CUDA {built}, which is newer than torch's CUDA {running}"


def _metadata_rejections(metadata: Metadata, env: Environment, *, check_arch: bool) -> Iterator[Rejection]:
    floors = metadata.builder.get("floors")
    yield from _floor_rejections(floors if isinstance(floors, dict) else {}, env)
    if not check_arch or not metadata.archs or not env.capabilities or metadata.backend not in ("", "cuda"):
        return
    if not any(arch.covers(capability) for arch in metadata.archs for capability in env.capabilities):
        devices = ", ".join(map(dotted, env.capabilities))
        yield "arch", f"has code for {', '.join(map(str, metadata.archs))}, the GPU is {devices}"


def _floor_rejections(floors: dict[str, Any], env: Environment) -> Iterator[Rejection]:
    driver = env.driver and (env.driver.major, env.driver.minor)
    for key, have in (("glibc", env.glibc), ("glibcxx", env.glibcxx), ("driver", driver)):
        try:
            need = numbers(str(floors[key])) if key in floors else None
        except ValueError:
            yield "floor", f"needs {key} {floors[key]!r}, which is no version that this loader can compare"
            continue
        if need and have and have < need:
            yield "floor", f"needs {key} {dotted(need)} or newer, this is {dotted(have)}"


def _preference(decision: Decision) -> tuple[Any, ...]:
    """Sort key without ties: stable ABI, full ABI, tvm-ffi, noarch, universal; newer first; then the name."""
    variant = decision.variant
    if not isinstance(variant, ArchVariant):
        universal = isinstance(variant, NoarchVariant) and variant.backend == "universal"
        return (4 if universal else 3, 0, 0, "", 0, 0, decision.name)
    framework, backend = variant.framework, variant.backend.version or MajorMinor(0, 0)
    rank = ("torch-stable-abi", "torch", "tvm-ffi").index(framework.kind)
    newest = (-framework.version.major, -framework.version.minor)
    return (rank, *newest, framework.cxx_abi, -backend.major, -backend.minor, decision.name)


def _distance(decision: Decision, env: Environment) -> tuple[Any, ...]:
    """Sort key of rejections: the later the failed test the nearer, then by how far the versions are apart."""
    rank, variant = -REASONS.index(decision.reason), decision.variant
    if not isinstance(variant, ArchVariant):
        return (rank, 0, 0, decision.name)
    torch, backend = env.torch_version, env.version_of(variant.backend.name)
    apart = _apart(variant.framework.version, torch), _apart(variant.backend.version, backend)
    return (rank, *apart, decision.name)


def _apart(one: MajorMinor | None, other: MajorMinor | None) -> int:
    if one is None or other is None:
        return 0
    return abs((one.major - other.major) * 100 + one.minor - other.minor)
