"""Builds of `trio`, the test kernel of three device sources in two groups of architectures."""

from __future__ import annotations

import contextlib
import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.compile.build import build
from kernel_builder.errors import NothingSelectedError, UsageError
from kernel_builder.plan.matrix import Stable, Torch, default_matrix
from kernel_builder.plan.model import Plan, VariantPlan
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection
from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.spec.read import read_kernel
from kernel_builder.toolchain.provision import provision
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from kernel_builder.compile.model import BuildResult
    from kernel_builder.spec.model import Kernel
    from kernel_builder.toolchain.model import Toolchain

ROOT = Path(__file__).parents[2]


class Notes(SilentReporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)


# Two torch SDKs and two toolkits, whatever the package's own matrix says.
_SHIPPED = default_matrix()
_CUDA = {MajorMinor(12, 8): _SHIPPED.toolkits[MajorMinor(12, 8)].default[:-1], MajorMinor(13, 0): ()}
MATRIX = replace(
    _SHIPPED,
    torches=(Torch(version=MajorMinor(2, 10), cuda=_CUDA), Torch(version=MajorMinor(2, 13), cuda={})),
    stables=(Stable(target=MajorMinor(2, 10), torch=MajorMinor(2, 10), sdk=MajorMinor(2, 10)),),
)


def plan_of(kernel: Kernel, **selection: list[str]) -> Plan:
    """The stable ABI for all, and beside it the full ABI of the newest torch on the CPU."""
    variants: list[VariantPlan] = []
    for strategy, words in (("cover", selection), ("full", {"torch": ["2.13"], **selection})):
        with contextlib.suppress(NothingSelectedError, UsageError):
            chosen = Selection.parse(**words)
            variants += make_plan([kernel], selection=chosen, matrix=MATRIX, strategy=strategy).variants
    return Plan(variants=tuple(sorted(variants, key=lambda variant: str(variant.variant))))


@dataclass(kw_only=True)
class Bench:
    """A copy of trio and of the shared code, and a store that has the downloads elsewhere.

    `edit` changes a file, `build` builds what is on disk now.
    """

    folder: Path
    store: Path
    notes: Notes = field(default_factory=Notes)

    @classmethod
    def make(cls, place: Path, store: Path | None = None) -> Bench:
        kernels = place / "kernels"
        shutil.copytree(ROOT / "tests" / "integration" / "kernels" / "trio", kernels / "trio")
        shutil.copytree(ROOT / "kernels-src" / "common", kernels / "common")
        return cls(folder=kernels / "trio", store=store or place / "store")

    def edit(self, path: str, old: str, new: str) -> Path:
        file = self.folder / path
        text = file.read_text()
        assert text.count(old) == 1, f"{path} does not hold {old!r} once"
        file.write_text(text.replace(old, new))
        return file

    def toolchain(self, **selection: list[str]) -> Toolchain:
        return provision(plan_of(read_kernel(self.folder), **selection), Settings.from_environment(), SilentReporter())

    def build(
        self, toolchain: Toolchain | None = None, *, keep_going: bool = False, **selection: list[str]
    ) -> BuildResult:
        self.notes = Notes()
        settings = replace(Settings.from_environment(), store=self.store)
        return build(toolchain or self.toolchain(**selection), settings, self.notes, keep_going=keep_going)
