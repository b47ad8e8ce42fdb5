"""Kernels of the public kernels-community repository, as they are: what this toolchain does with each build.toml.

    git clone https://github.com/huggingface/kernels-community DIR
    python ci/community.py --folder DIR                                   # plan all: planned, or refused and why
    python ci/community.py --folder DIR --kernels relu,activation,rotary  # then build some, check and package them

Nothing in DIR is changed, and nothing of it belongs into this repository.
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from kernel_builder.errors import KernelBuilderError, NothingSelectedError
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection
from kernel_builder.spec.read import read_kernel

ROWS = "*/torch{211,213}-cxx11-{cpu,cu130}-*", "*/torch-stable-abi*-{cpu,cu130}-*"


@dataclass(frozen=True, kw_only=True)
class Row:
    """What became of one build.toml; ``variants`` is 0 where it was refused."""

    name: str
    variants: int
    text: str

    def __str__(self) -> str:
        return f"{self.name:28}{f'planned {self.variants:3}' if self.variants else 'refused':12}  {self.text}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="a checkout of the repository")
    parser.add_argument("--kernels", default="", help="kernels to build, by commas")
    parser.add_argument("--only", action="append", help=f"variants to build; default: {' and '.join(ROWS)}")
    parser.add_argument("--out", type=Path, help="where packaged variants go; default: a folder that is then removed")
    asked = parser.parse_args()
    folders = sorted(path.parent for path in asked.folder.glob("*/build.toml"))
    if not folders:
        sys.exit(f"{asked.folder} has no folder with a build.toml")
    rows = [survey(folder) for folder in folders]
    print("\n".join(map(str, rows)))
    print(f"{sum(row.variants > 0 for row in rows)} planned, {sum(not row.variants for row in rows)} refused")
    names = [name for name in asked.kernels.split(",") if name]
    return build([asked.folder / name for name in names], asked.only or list(ROWS), asked.out) if names else 0


def survey(folder: Path) -> Row:
    """Plan everything that a kernel could be built for."""
    try:
        kernel = read_kernel(folder)
        plan = make_plan([kernel], selection=Selection())
    except KernelBuilderError as error:
        return Row(name=folder.name, variants=0, text=reason(error, folder))
    said = (note.text.removeprefix("backend ").partition(":") for note in plan.notes)
    left_out = [backend for backend, _, text in said if text.startswith(" not built")]
    text = ", ".join(sorted({str(variant.variant.backend) for variant in plan.variants}))
    without = f"; not {', '.join(left_out)}" if left_out else ""
    return Row(name=folder.name, variants=len(plan.variants), text=text + without)


def reason(error: KernelBuilderError, folder: Path) -> str:
    """Why a kernel is refused: of a plan without variants, what it says about each backend."""
    if isinstance(error, NothingSelectedError) and error.detail:
        said = [line.removeprefix(f"{folder.name}: ") for line in error.detail.splitlines()]
        return "; ".join(line for line in said if line not in read_kernel(folder).notes)
    return f"{error.message} [{error.where.replace(f'{folder}/', '')}]"


def build(folders: list[Path], only: list[str], out: Path | None) -> int:
    """Build kernels through the command line; its exit status."""
    missing = [str(folder) for folder in folders if not (folder / "build.toml").is_file()]
    if missing:
        sys.exit(f"no kernel: {', '.join(missing)}")
    target = out or Path(tempfile.mkdtemp())
    patterns = [word for pattern in only for word in ("--only", pattern)]
    command = [sys.executable, "-m", "kernel_builder", "build", *map(str, folders), *patterns, "--keep-going"]
    try:
        return subprocess.run([*command, "--out", str(target)], check=False).returncode
    finally:
        if out is None:
            shutil.rmtree(target)


if __name__ == "__main__":
    sys.exit(main())
