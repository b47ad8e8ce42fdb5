"""A CPU kernel of a few lines that counts its calls, in a project folder of its own, built by the command line."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kernel_builder.settings import Settings

ROOT = Path(__file__).parents[2]
VARIANT = "torch-stable-abi210-cpu-x86_64-linux"

_BUILD = """
[general]
name = "{name}"
version = {version}
edition = 5
license = "Apache-2.0"
backends = ["cpu"]

[general.hub]
repo-id = "acme/{name}"

[torch]
src = ["torch-ext/torch_binding.cpp"]
include = ["csrc"]
stable-abi = "2.10"

[kernel.counter]
backend = "cpu"
depends = []
src = ["csrc/count.cpp", "csrc/count.h"]
"""
_FILES = {
    "csrc/count.h": """#pragma once
constexpr int kStep = 1;
inline int& calls() {{ static int count = 0; return count; }}
long long count_calls();
""",
    "csrc/count.cpp": """#include "count.h"

long long count_calls() {{ return calls() += kStep; }}
""",
    "torch-ext/torch_binding.cpp": """#include <cstdint>

#include "count.h"
#include "kb/torch.h"

namespace {{
std::int64_t count_op(const kb::Tensor&) {{ return count_calls(); }}
}}  // namespace

KB_LIBRARY(m) {{ m.def("count(Tensor x) -> int"); }}
KB_LIBRARY_IMPL(m) {{ m.impl("count", KB_OP(count_op)); }}
""",
    "torch-ext/{name}/__init__.py": """from ._ops import ops

__all__ = ["count"]


def count(x):
    return ops.count(x)
""",
}


@dataclass(frozen=True, kw_only=True)
class Project:
    """A folder with ``kernels-src``. ``store`` has the machine's downloads, and compiled units of its own."""

    place: Path
    store: Path

    @classmethod
    def make(cls, place: Path, store: Path | None = None) -> Project:
        project = cls(place=place, store=store or place / "store")
        shutil.copytree(ROOT / "kernels-src" / "common", place / "kernels-src" / "common")
        project.store.mkdir(exist_ok=True)
        downloads = Settings.from_environment().store
        for name in ("toolkits", "sdks", "floor"):
            (downloads / name).mkdir(parents=True, exist_ok=True)
            if not (project.store / name).exists():
                (project.store / name).symlink_to(downloads / name)
        return project

    def write(self, name: str = "toy", *, version: int = 1, files: dict[str, str] | None = None) -> Toy:
        toy = Toy(project=self, name=name)
        for path, text in {"build.toml": _BUILD, **_FILES}.items():
            file = toy.folder / path.format(name=name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text.format(name=name, version=version))
        for path, text in (files or {}).items():
            (toy.folder / path).parent.mkdir(parents=True, exist_ok=True)
            (toy.folder / path).write_text(text)
        return toy

    def run(self, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
        """``kernel-builder ARGUMENTS`` in this folder."""
        argv = [sys.executable, "-m", "kernel_builder", *map(str, arguments)]
        environ = {**os.environ, "KERNEL_BUILDER_CACHE": str(self.store), **env}
        return subprocess.run(argv, cwd=self.place, env=environ, capture_output=True, text=True, check=False)


@dataclass(frozen=True, kw_only=True)
class Made:
    """What one ``build --json`` said."""

    data: dict[str, Any] = field(repr=False)
    stderr: str

    @property
    def folder(self) -> Path:
        """The only variant."""
        (variant,) = self.data["variants"]
        return Path(variant["path"])

    @property
    def metadata(self) -> dict[str, Any]:
        return json.loads((self.folder / "metadata.json").read_text())


@dataclass(frozen=True, kw_only=True)
class Toy:
    """One kernel of a project."""

    project: Project
    name: str

    @property
    def folder(self) -> Path:
        return self.project.place / "kernels-src" / self.name

    def edit(self, path: str, old: str, new: str) -> Path:
        file = self.folder / path
        text = file.read_text()
        assert text.count(old) == 1, f"{path} does not hold {old!r} once"
        file.write_text(text.replace(old, new))
        return file

    def attempt(self, *arguments: object, **env: str) -> subprocess.CompletedProcess[str]:
        return self.project.run("build", self.name, "--only", VARIANT, *arguments, **env)

    def build(self, *arguments: object, **env: str) -> Made:
        done = self.attempt(*arguments, "--json", **env)
        assert done.returncode == 0, done.stderr
        return Made(data=json.loads(done.stdout), stderr=done.stderr)


def python(code: str, *arguments: object, **env: str) -> str:
    """What a fresh interpreter prints."""
    argv = [sys.executable, "-W", "ignore", "-c", code, *map(str, arguments)]
    done = subprocess.run(argv, env={**os.environ, **env}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()
