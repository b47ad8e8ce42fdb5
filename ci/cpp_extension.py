"""What torch.utils.cpp_extension would run for one variant, from torch's own code, with the headers of the SDK.

torch writes a ``build.ninja`` for the environment that it runs in. It is asked for one here, by a Python that has torch
installed, once per variant with the architectures of that variant; then the folders of the installed torch and of its
CUDA toolkit are replaced by those of the variant's SDK and of the nvcc in the store. Only the compile steps are taken:
linking, which ours includes, is left out.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import ninja
from ninja.ninja_syntax import Writer, escape

if TYPE_CHECKING:
    from collections.abc import Sequence

    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.toolchain.model import Nvcc, TorchSdk

ROOT = Path(__file__).resolve().parents[1]
CLASSIC = ROOT / "ci" / "classic"
KERNEL = ROOT / "kernels-src" / "rmsnorm"
INCLUDES = (ROOT / "kernels-src" / "common" / "include", KERNEL / "csrc", CLASSIC)

# style → backend → sources, and macros that they need
SOURCES = {
    "tutorial": {
        "cuda": (CLASSIC / "tutorial_binding.cpp", CLASSIC / "tutorial_cuda.cu"),
        "cpu": (CLASSIC / "tutorial_binding.cpp", KERNEL / "csrc" / "rms_norm_cpu.cpp"),
    },
    "narrow": {
        "cuda": (KERNEL / "torch-ext" / "torch_binding.cpp", CLASSIC / "narrow_cuda.cu"),
        "cpu": (KERNEL / "torch-ext" / "torch_binding.cpp", KERNEL / "csrc" / "rms_norm_cpu.cpp"),
    },
}
_WRITE = """
import json, os, sys, warnings
warnings.simplefilter("ignore")
asked = json.load(sys.stdin)
os.environ.update(asked["environment"])
from torch.utils import cpp_extension
cpp_extension.CUDA_HOME = asked["environment"]["CUDA_HOME"]  # a torch for the CPU looks for none
cpp_extension._write_ninja_file_to_build_library(
    path=asked["path"], name="rms_norm", sources=asked["sources"], extra_cflags=["-DKB_STABLE_ABI=0"],
    extra_cuda_cflags=[], extra_sycl_cflags=[], extra_ldflags=[], extra_include_paths=asked["include"],
    with_cuda=asked["cuda"], with_sycl=False, is_standalone=False)
print(json.dumps({"torch": os.path.dirname(os.path.dirname(cpp_extension.__file__))}))
"""


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """One command of one variant; ``name`` is unique."""

    name: str
    folder: Path
    command: str


def steps_of(variant: VariantPlan, style: str, sdk: TorchSdk, nvcc: Nvcc, place: Path) -> list[Step]:
    """Compile steps of torch's build of one variant, which run in a folder below ``place``."""
    folder = place / f"{style}-{variant.variant}"
    folder.mkdir(parents=True)
    installed = _written(folder / "build.ninja", variant, style, nvcc)
    listed = subprocess.run(
        [str(Path(ninja.BIN_DIR) / "ninja"), "-t", "commands"], cwd=folder, capture_output=True, text=True, check=True
    )
    return [
        Step(
            name=f"{folder.name}:{number}",
            folder=folder,
            command=_with_sdk(command, installed, sdk, nvcc),
        )
        for number, command in enumerate(listed.stdout.splitlines())
        if re.search(r" -c | --generate-dependencies-with-compile ", command)
    ]


def _written(path: Path, variant: VariantPlan, style: str, nvcc: Nvcc) -> Path:
    """Have torch write its ninja file; returns the folder of the installed torch."""
    archs = dict.fromkeys(str(arch) for planned in variant.archs.values() for arch in planned)
    asked = {
        "path": str(path),
        "sources": [str(source) for source in SOURCES[style][variant.backend]],
        "include": [str(folder) for folder in INCLUDES],
        "cuda": variant.backend == "cuda",
        "environment": {"CUDA_HOME": str(nvcc.nvcc.parents[1]), "TORCH_CUDA_ARCH_LIST": ";".join(archs)},
    }
    done = subprocess.run(
        [sys.executable, "-c", _WRITE], input=json.dumps(asked), capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"torch wrote no ninja file for {variant.label}:\n{done.stderr[-2000:]}")
    return Path(json.loads(done.stdout.splitlines()[-1])["torch"])


def _with_sdk(command: str, installed: Path, sdk: TorchSdk, nvcc: Nvcc) -> str:
    own = [Path(word) for word in re.findall(re.escape(str(installed)) + r"/include\S*", command)]
    for folder in sorted(set(own), key=lambda folder: -len(folder.parts)):
        command = command.replace(str(folder), str(sdk.root / "torch" / folder.relative_to(installed)))
    # torch expects one folder of CUDA headers, and the libraries' headers in it, as an installed toolkit has them.
    extra = [word for folder in nvcc.include for word in ("-isystem", str(folder))]
    return f"{command} {shlex.join(extra)}" if str(nvcc.root) in command else command


def run_steps(steps: Sequence[Step], place: Path, jobs: int) -> dict[str, float]:
    """Run all of them in one ninja; returns step → processor seconds."""
    place.mkdir(parents=True)
    with (place / "build.ninja").open("w", encoding="utf-8") as output:
        graph = Writer(output, width=1 << 20)
        graph.rule("step", "cd $folder && $line && times > $out")
        for step in steps:
            variables = {"folder": str(step.folder), "line": escape(step.command)}
            graph.build([str(place / step.name)], "step", variables=variables)
    argv = [str(Path(ninja.BIN_DIR) / "ninja"), "-j", str(jobs), "--quiet"]
    done = subprocess.run(
        argv, cwd=place, capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}, check=False
    )
    if done.returncode != 0:
        raise SystemExit(f"a step of cpp_extension failed:\n{done.stdout[-4000:]}")
    return {step.name: _processor(place / step.name) for step in steps}


def _processor(times: Path) -> float:
    """User and system seconds of a shell's children, from what its ``times`` printed: ``1m2.5s 0m0.3s``."""
    words = times.read_text().split("\n")[1].split()
    return sum(60 * float(minutes) + float(seconds) for minutes, seconds in (w.rstrip("s").split("m") for w in words))
