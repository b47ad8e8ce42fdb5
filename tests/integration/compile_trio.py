"""Builds of `trio`, the test kernel of three device sources in two groups of architectures."""

from __future__ import annotations

import shutil
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from kernel_builder.compile.build import build
from kernel_builder.plan.matrix import Matrix, Row, default_matrix
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection
from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.spec.read import read_kernel
from kernel_builder.toolchain.provision import provision
from kernel_loader.format.variants import Backend
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from kernel_builder.compile.model import BuildResult
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


def _row(abi: Literal["stable", "full"], torch: str, backend: str) -> Row:
    version = MajorMinor.parse(torch)
    return Row(abi=abi, torch=version, sdk=version, backend=Backend.parse(backend), platform="x86_64-linux")


# Two torch SDKs and two toolkits, whatever the package's own matrix says.
MATRIX = Matrix(
    rows=(*(_row("stable", "2.10", backend) for backend in ("cpu", "cu128", "cu130")), _row("full", "2.13", "cpu")),
    toolkits=default_matrix().toolkits,
)


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
        plan = make_plan([read_kernel(self.folder)], selection=Selection.parse(**selection), matrix=MATRIX)
        return provision(plan, Settings.from_environment(), SilentReporter())

    def build(
        self, toolchain: Toolchain | None = None, *, keep_going: bool = False, **selection: list[str]
    ) -> BuildResult:
        self.notes = Notes()
        settings = replace(Settings.from_environment(), store=self.store)
        return build(toolchain or self.toolchain(**selection), settings, self.notes, keep_going=keep_going)
