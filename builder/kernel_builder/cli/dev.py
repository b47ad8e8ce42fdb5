"""``build --dev``: the author's inner loop, one variant for the torch that is installed here."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from kernel_builder.errors import NoVariantError, ToolchainError, UsageError
from kernel_builder.plan.matrix import default_matrix
from kernel_builder.plan.model import Plan
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection
from kernel_builder.test.fitting import probe
from kernel_loader.environment import Environment, dotted
from kernel_loader.format.archs import Arch
from kernel_loader.select import select

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.reporting import Reporter
    from kernel_builder.spec.model import Kernel
    from kernel_loader.format.versions import MajorMinor
    from kernel_loader.select import Decision

NATIVE = "native"


def dev_plan(
    kernels: Sequence[Kernel],
    arch: str | None,
    reporter: Reporter,
    *,
    look: Callable[[], Environment] | None = None,
    nvccs: Sequence[MajorMinor] | None = None,
) -> Plan:
    """The one variant of each kernel that this machine would load, for one architecture, with line numbers.

    Args:
        kernels: What to build.
        arch: ``native``, an architecture such as ``9.0a``, or None: this machine's GPU if it has one, else the CPU.
        reporter: Told which torch is built for.
        look: Gives the environment of this machine; default: asks a fresh Python.
        nvccs: As for ``make_plan``.

    Raises:
        UsageError: ``arch`` is not an architecture.
        NoVariantError: ``native`` is asked for and there is no GPU, or a kernel has no variant that would load here.
    """
    environment = (look or (lambda: _look(reporter)))()
    if arch == NATIVE and not environment.capabilities:
        raise NoVariantError(
            "There is no GPU whose architecture could be built for.",
            where="--arch native",
            hint="name the architecture, for example --arch 9.0a",
        )
    wanted = None if arch in (None, NATIVE) else _read(arch or "")
    if wanted is not None and environment.cuda is None:
        environment = replace(environment, backend="cuda", cuda=_newest_cuda(environment))
    backend = "cuda" if wanted is not None or environment.capabilities else "cpu"
    variants = [_best(kernel, environment, backend, nvccs) for kernel in kernels]
    reporter.note(f"for {environment}")
    return Plan(variants=tuple(_narrowed(variant, wanted, environment) for variant in variants))


def _look(reporter: Reporter) -> Environment:
    """This machine as the loader sees it; without torch, one with the newest torch for the CPU."""
    try:
        return probe("cpu", {})[0]
    except ToolchainError:
        newest = default_matrix().torches[-1].version
        reporter.note(f"torch is not installed here, so this is for torch {newest}")
        return Environment(torch=f"{newest}.0")


def _best(kernel: Kernel, environment: Environment, backend: str, nvccs: Sequence[MajorMinor] | None) -> VariantPlan:
    """The variant that the loader prefers, of the cover and, where that has none, of the full matrix."""
    decisions: tuple[Decision, ...] = ()
    for strategy in ("cover", "full"):
        selection = Selection(backends=(backend,))
        planned = make_plan([kernel], selection=selection, strategy=strategy, nvccs=nvccs).variants
        chosen = select((str(variant.variant) for variant in planned), environment, backend=backend)
        if chosen.best is not None:
            return next(variant for variant in planned if str(variant.variant) == chosen.best.name)
        decisions = decisions or chosen.decisions
    raise NoVariantError(
        f"No variant of {kernel.name} would load here.",
        where=str(environment),
        detail="\n".join(f"{decision.name}: {decision.detail}" for decision in decisions),
    )


def _narrowed(variant: VariantPlan, wanted: Arch | None, environment: Environment) -> VariantPlan:
    for version in (variant.toolkit, variant.nvcc) if wanted else ():
        toolkit = default_matrix().toolkits.get(version) if version else None
        if toolkit is not None and wanted not in toolkit.known:
            known = " ".join(map(str, sorted(toolkit.known, key=lambda arch: (arch.major, arch.minor, arch.feature))))
            raise UsageError(f"CUDA {version} does not know {wanted}.", where="--arch", hint=f"it knows {known}")
    archs = {name: (wanted or _own(planned, environment),) for name, planned in variant.archs.items()}
    return replace(variant, archs=archs, lineinfo=True)


def _own(planned: Sequence[Arch], environment: Environment) -> Arch:
    """The architecture that this machine's GPU would run: of what the source asks for, else the GPU's own."""
    capability = environment.capabilities[0]
    running = [arch for arch in planned if not arch.ptx and arch.covers(capability)]
    return max(running, default=Arch(*capability))


def _read(text: str) -> Arch:
    try:
        arch = Arch.parse(text)
    except ValueError as error:
        raise UsageError(f"{error}.", where="--arch", hint=f"{NATIVE}, or a number such as 9.0a") from error
    if arch.ptx:
        raise UsageError(
            f"{text} is more than one architecture.", where="--arch", hint=dotted((arch.major, arch.minor))
        )
    return arch


def _newest_cuda(environment: Environment) -> MajorMinor | None:
    """The newest CUDA build of the torch that is installed, or of the newest torch."""
    torches = default_matrix().torches
    own = [torch for torch in torches if torch.version == environment.torch_version] or list(torches[-1:])
    return max(own[0].cuda)
