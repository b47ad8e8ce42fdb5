"""Environment cells, and what serves each: asked of the loader itself, never decided here."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from kernel_loader.environment import Environment, dotted, numbers
from kernel_loader.format.metadata import Metadata
from kernel_loader.format.variants import NoarchVariant
from kernel_loader.select import refine, select

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from kernel_builder.plan.matrix import Gpu, Matrix
    from kernel_builder.plan.model import VariantPlan
    from kernel_loader.format.archs import Arch
    from kernel_loader.format.variants import Backend
    from kernel_loader.format.versions import MajorMinor
    from kernel_loader.select import Selection

Grade = Literal["native", "PTX", "noarch", "unserved"]
_RANK: Mapping[Grade, int] = {"unserved": 0, "noarch": 1, "PTX": 2, "native": 3}


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """A kind of machine that loads kernels.

    Attributes:
        gpu: None for cpu.
        in_torch: Torch's own wheel has machine code for this GPU; True for cpu.
    """

    torch: MajorMinor
    backend: Backend
    platform: str
    gpu: Gpu | None = None
    in_torch: bool = True

    @property
    def build(self) -> Cell:
        """The cell's torch build, whatever the GPU."""
        return replace(self, gpu=None, in_torch=True)

    @property
    def environment(self) -> Environment:
        """The cell as the loader sees it."""
        cpu, os = self.platform.split("-")
        return Environment(
            torch=f"{self.torch}.0",
            cuda=self.backend.version,
            backend=self.backend.name,
            cpu=cpu,
            os=os,
            capabilities=() if self.gpu is None else (self.gpu.capability,),
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class Offer:
    """A variant that is planned, or lies in a hub: what a cell can be served with.

    Attributes:
        devices: Architectures of each separately compiled device source, machine code and PTX apart; all of them have
            to run. Empty for cpu, and where nothing is known.
        driver: Oldest driver for its PTX; "" when unknown.
    """

    name: str
    backend: str
    devices: tuple[tuple[Arch, ...], ...] = ()
    driver: str = ""

    @property
    def metadata(self) -> Metadata:
        """What the loader reads of the variant before it decides."""
        archs = {arch for device in self.devices for arch in device}
        served = tuple(sorted(a for a in archs if all(_serves(device, a) for device in self.devices)))
        return Metadata(name="", id="", version=0, license="", backend=self.backend, archs=served)


@dataclass(frozen=True, kw_only=True, slots=True)
class Service:
    """What the loader does in a cell.

    Attributes:
        variant: Its choice, None when it has none.
        driver: Oldest driver, for grade PTX.
        reason: Why a cell is unserved: the nearest miss.
    """

    cell: Cell
    variant: str | None
    grade: Grade
    driver: str = ""
    reason: str = ""

    @property
    def rank(self) -> int:
        """Higher is better."""
        return _RANK[self.grade]

    def to_json(self) -> dict[str, Any]:
        """The cell as plain data."""
        cell, gpu = self.cell, self.cell.gpu
        return {
            "torch": str(cell.torch),
            "backend": str(cell.backend),
            "platform": cell.platform,
            "capability": None if gpu is None else dotted(gpu.capability),
            "gpu": None if gpu is None else gpu.name,
            "in-torch": cell.in_torch,
            "variant": self.variant,
            "grade": self.grade,
            "driver": self.driver or None,
            "reason": self.reason or None,
        }


def cells_of(matrix: Matrix) -> tuple[Cell, ...]:
    """Every cell of the window: torch, its builds, GPU classes."""
    return tuple(
        Cell(torch=torch.version, backend=backend, platform=matrix.platform, gpu=gpu, in_torch=in_torch)
        for torch in matrix.torches
        for backend in torch.backends
        for gpu, in_torch in _gpus(matrix, torch.cuda.get(backend.version) if backend.version else None)
    )


def _gpus(matrix: Matrix, own: Sequence[Arch] | None) -> list[tuple[Gpu | None, bool]]:
    if own is None:
        return [(None, True)]
    return [(gpu, _native(own, gpu.capability)) for gpu in matrix.gpus]


def offer(variant: VariantPlan, matrix: Matrix) -> Offer:
    """A planned variant as an offer."""
    compiler = variant.nvcc or variant.toolkit
    return Offer(
        name=str(variant.variant),
        backend=variant.backend,
        devices=tuple(variant.archs.values()),
        driver=matrix.toolkits[compiler].driver if compiler else "",
    )


def fitting(build: Cell, offers: Iterable[Offer]) -> tuple[Offer, ...]:
    """Those that the loader would look at in a torch build, their names allowing."""
    known = {offered.name: offered for offered in offers}
    return tuple(known[d.name] for d in _by_name(tuple(known), build).decisions if d.accepted)


def serve(cell: Cell, offers: Iterable[Offer]) -> Service:
    """Ask the loader what it would load in a cell."""
    known = {offered.name: offered for offered in offers}
    environment = cell.environment
    selection = refine(_by_name(tuple(known), cell.build), lambda name: known[name].metadata, environment)
    best = selection.best
    if best is None:
        miss = selection.decisions[0] if selection.decisions else None
        return Service(cell=cell, variant=None, grade="unserved", reason=miss.detail if miss else "nothing is built")
    if isinstance(best.variant, NoarchVariant):
        return Service(cell=cell, variant=best.name, grade="noarch")
    devices, capability = known[best.name].devices, cell.environment.capabilities
    if all(_native(archs, capability[0]) for archs in devices):
        return Service(cell=cell, variant=best.name, grade="native")
    if all(any(arch.covers(capability[0]) for arch in archs) for archs in devices):
        driver = _newer(known[best.name].driver, cell.gpu.driver if cell.gpu else "")
        return Service(cell=cell, variant=best.name, grade="PTX", driver=driver)
    reason = "its device sources have no architecture in common that this GPU runs"
    return Service(cell=cell, variant=best.name, grade="unserved", reason=reason)


@lru_cache(maxsize=8192)
def _by_name(names: tuple[str, ...], build: Cell) -> Selection:
    """What the loader says about names; it depends on the torch build, not on the GPU."""
    return select(names, build.environment)


def summary(services: Iterable[Service]) -> str:
    """``60 cells: 54 native, 6 PTX``."""
    counts = Counter(service.grade for service in services)
    grades = (f"{counts[grade]} {grade}" for grade in ("native", "PTX", "noarch", "unserved") if counts[grade])
    return f"{sum(counts.values())} cells: {', '.join(grades)}"


def _newer(one: str, other: str) -> str:
    """The newer of two drivers, "" being older than any."""
    return max(one, other, key=lambda driver: numbers(driver) if driver else ())


def _native(archs: Iterable[Arch], capability: tuple[int, int]) -> bool:
    return any(not arch.ptx and arch.covers(capability) for arch in archs)


def _serves(device: Iterable[Arch], arch: Arch) -> bool:
    """Whether a device source runs wherever code for ``arch`` does."""
    return arch in device or any(own.covers((arch.major, arch.minor)) for own in device if not arch.ptx or own.ptx)


def existing_offer(name: str, metadata: Metadata) -> Offer:
    """A variant of a hub as an offer. ``9.0+PTX`` in metadata means machine code and PTX."""
    both = {plain for arch in metadata.archs for plain in (arch, replace(arch, ptx=False))}
    return Offer(name=name, backend=metadata.backend, devices=(tuple(sorted(both)),) if both else ())
