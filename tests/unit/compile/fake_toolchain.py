"""A kernel of plain text files and a compiler that copies them: the compile stage without compilers.

Run as a program, it builds: ``fake_toolchain.py FOLDER [JOBS]``; it prints what was compiled.
"""

from __future__ import annotations

import shlex
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.compile.build import build
from kernel_builder.plan.model import Plan, VariantPlan
from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.spec.identity import uid
from kernel_builder.spec.model import Component, Kernel, Torch
from kernel_builder.toolchain.model import Floor, HostCompiler, Toolchain, TorchSdk
from kernel_loader.format.variants import parse
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from kernel_builder.compile.model import BuildResult

TORCH = MajorMinor(2, 10)

# Writes half of its output at once and the rest after a delay. A source with an "#error" line fails.
COMPILER = """#!/bin/sh
inputs=
while [ $# -gt 0 ]; do
  case $1 in
    -o) output=$2; shift;;
    -isystem) shift;;
    -*) ;;
    *) inputs="$inputs $1";;
  esac
  shift
done
here=$(dirname "$0")
echo "$output" >> "$here/calls"
printf half > "$output"
sleep "$(cat "$here/delay")"
if grep -q '^#error' $inputs; then echo "$inputs:1: error: as asked for" >&2; exit 1; fi
cat $inputs > "$output"
"""


class Notes(SilentReporter):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.warnings: list[str] = []
        self.steps: list[tuple[int, int]] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def warn(self, text: str) -> None:
        self.warnings.append(text)

    def progress(self, label: str, done: int, total: int, detail: str = "") -> None:
        self.steps.append((done, total))


@dataclass(kw_only=True)
class Workshop:
    """A folder with a kernel, a compiler and a store.

    Attributes:
        identity: What the host compiler says it is.
        flags: Of the kernel's component.
        variants: Names of the variants to build.
        variables: Of the user's environment, beside those that every build here has.
    """

    folder: Path
    identity: str = "copying compiler 1"
    flags: tuple[str, ...] = ()
    variants: tuple[str, ...] = ("torch-stable-abi210-cpu-x86_64-linux",)
    variables: dict[str, str] = field(default_factory=dict)
    notes: Notes = field(default_factory=Notes)

    @classmethod
    def make(cls, folder: Path, parts: int = 2) -> Workshop:
        """``parts`` sources, ``part0.cpp`` …, that include ``part.h``, and a binding that does not."""
        kernel = folder / "copycat"
        (kernel / "csrc").mkdir(parents=True)
        (kernel / "binding.cpp").write_text("binding\n")
        (kernel / "csrc" / "part.h").write_text("header\n")
        for number in range(parts):
            (kernel / "csrc" / f"part{number}.cpp").write_text(f'#include "part.h"\npart {number}\n')
        (folder / "bin").mkdir()
        (folder / "bin" / "c++").write_text(COMPILER)
        (folder / "bin" / "c++").chmod(0o755)
        workshop = cls(folder=folder)
        workshop.delay(0)
        return workshop

    @property
    def kernel(self) -> Path:
        return self.folder / "copycat"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def delay(self, seconds: float) -> None:
        (self.folder / "bin" / "delay").write_text(str(seconds))

    def calls(self) -> list[str]:
        """Outputs that the compiler was asked for so far."""
        log = self.folder / "bin" / "calls"
        return log.read_text().split() if log.exists() else []

    def toolchain(self) -> Toolchain:
        parts = tuple(sorted(path.name for path in (self.kernel / "csrc").glob("*.cpp")))
        kernel = Kernel(
            root=self.kernel,
            common=None,
            name="copycat",
            version=1,
            license="Apache-2.0",
            backends=("cpu",),
            torch=Torch(sources=("binding.cpp",), stable_abi={"cpu": TORCH}),
            components=(
                Component(
                    key="copycat_cpu",
                    backend="cpu",
                    depends=(),
                    sources=(*(f"csrc/{part}" for part in parts), "csrc/part.h"),
                    cxx_flags=self.flags,
                ),
            ),
        )
        plans = [
            VariantPlan(kernel=kernel, variant=parse(name), uid=uid(kernel, "cpu"), sdk=TORCH, toolkit=None, archs={})
            for name in self.variants
        ]
        nowhere = self.folder / "nowhere"
        cxx = shlex.quote(str(self.folder / "bin" / "c++"))
        return Toolchain(
            plan=Plan(variants=tuple(plans)),
            host=HostCompiler(cxx=cxx, version=(12, 2, 0), identity=self.identity),
            floor=Floor(root=nowhere, torch=nowhere, digest="floor", link={"cpu": ("-lfloor",)}),
            toolkits={},
            sdks={
                TORCH: TorchSdk(version=TORCH, release="2.10.0", digest="sdk", root=nowhere, include=(nowhere / "i",))
            },
        )

    def build(self, *, jobs: int | None = None, keep_going: bool = False) -> BuildResult:
        self.notes = Notes()
        variables = {"KERNEL_BUILDER_CACHE": str(self.store), "PATH": "/usr/bin:/bin", **self.variables}
        settings = Settings.from_environment(variables)
        return build(self.toolchain(), settings, self.notes, jobs=jobs, keep_going=keep_going)


if __name__ == "__main__":
    workshop = Workshop(folder=Path(sys.argv[1]))
    built = workshop.build(jobs=int(sys.argv[2]) if len(sys.argv) > 2 else None)
    sys.stdout.write("".join(f"{line}\n" for line in (*workshop.notes.notes, *built.compiled)))
