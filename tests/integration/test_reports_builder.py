"""Faults that users of other toolchains reported, put to the command line one at a time; each test names its report."""

from __future__ import annotations

import io
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from importlib import metadata
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from toy_kernel import ROOT, VARIANT, Made, Project, Toy, python

pytestmark = pytest.mark.toolchain

# Passes everything on, but what a sentence in a file beside it speaks of.
HOST_COMPILER = """#!/bin/bash
here=$(dirname "$0")
case "$*" in $(cat "$here/refused")) echo "internal compiler error: as asked for" >&2; exit 1;; esac
exec c++ "$@"
"""
LOADS = "import sys, torch\nfrom kernel_loader import get_local_kernel\nx = torch.ones(1)\n"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One store of compiled units for this module, empty at first."""
    return tmp_path_factory.mktemp("store")


@pytest.fixture(scope="module")
def sound(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The kernel as it should be, built once."""
    toy = Project.make(tmp_path_factory.mktemp("sound"), store).write()
    return toy.build("--stage", "hub", MAX_JOBS="3")


@pytest.fixture
def project(store: Path, tmp_path: Path) -> Project:
    return Project.make(tmp_path, store)


@pytest.fixture
def toy(project: Project) -> Toy:
    return project.write()


def test_the_number_of_jobs_is_the_users_and_is_said_first(sound: Made) -> None:
    """B002: how much runs at once is no guess, and is known before the first compiler starts."""
    assert "3 at once, as asked for" in sound.stderr
    assert sound.stderr.index("3 at once") < sound.stderr.index("checking")


def test_a_function_that_the_oldest_supported_system_lacks_stops_the_build(toy: Toy) -> None:
    """B005: found by the build, with the function and its file, not by users of older systems."""
    toy.edit("csrc/count.cpp", "{ return", "{ calls() += arc4random() & 1; return")
    source = toy.folder / "csrc" / "count.cpp"
    source.write_text('extern "C" unsigned arc4random();\n' + source.read_text())
    done = toy.attempt()
    assert done.returncode in (5, 6)
    assert "arc4random" in done.stderr
    assert "count.cpp" in done.stderr
    assert not list(toy.project.place.glob("dist/*/build/*"))


def test_functions_that_new_systems_moved_do_not_raise_the_floor(toy: Toy) -> None:
    """B005: built on a newer system, run on glibc 2.28; metadata holds what the loader compares before it opens it."""
    headers = ("fcntl.h", "memory", "mutex", "string", "sys/stat.h", "thread")
    included = "".join(f"#include <{name}>\n" for name in headers)
    toy.edit("csrc/count.cpp", "#include", f"{included}#include")
    toy.edit(
        "csrc/count.cpp",
        "{ return",
        """{
  static std::once_flag once;
  std::call_once(once, [] {
    struct stat found;
    std::thread([] { ++calls(); }).join();
    if (stat("/", &found) == 0) calls() += std::stoi("0") + *std::make_shared<int>(-1);
  });
  return""",
    )
    made = toy.build()
    floor = made.metadata["kernel-builder"]["floors"]["glibc"]
    assert tuple(map(int, floor.split("."))) <= (2, 28)
    assert newest_glibc(made.folder) == floor
    assert python(LOADS + "print(get_local_kernel(sys.argv[1]).count(x))", made.folder) == "1"


def newest_glibc(folder: Path) -> str:
    """Read here from the file, without the product's own reader."""
    (library,) = folder.glob("*.so")
    with library.open("rb") as file:
        section = ELFFile(file).get_section_by_name(".gnu.version_r")
        names = [version.name for _, versions in section.iter_versions() for version in versions]
    numbers = [tuple(map(int, n.removeprefix("GLIBC_").split("."))) for n in names if n.startswith("GLIBC_")]
    return ".".join(map(str, max(numbers)))


@pytest.mark.parametrize(
    ("declared", "call", "code", "says"),
    [
        ("#include <ATen/ATen.h>", "at::empty({1}).numel()", 5, "ATen.h"),
        ("namespace at { long empty(long); }", "at::empty(1)", 6, "at::empty"),
    ],
    ids=["header", "symbol"],
)
def test_a_stable_kernel_that_calls_the_unstable_api_is_refused(
    toy: Toy, declared: str, call: str, code: int, says: str
) -> None:
    """B009: one include is enough to leak; and the symbols in the file decide, not the label."""
    toy.edit("torch-ext/torch_binding.cpp", "#include <cstdint>\n", f"{declared}\n#include <cstdint>\n")
    toy.edit("torch-ext/torch_binding.cpp", "return count_calls();", f"return count_calls() + {call};")
    done = toy.attempt()
    assert done.returncode == code, done.stderr
    assert says in done.stderr
    assert "torch_binding.cpp" in done.stderr
    assert not list(toy.project.place.glob("dist/*/build/*"))


def test_the_library_holds_the_architectures_of_the_kernel_alone(project: Project) -> None:
    """B011, B012: neither TORCH_CUDA_ARCH_LIST without an overlap nor a missing GPU changes what is compiled."""
    shutil.copytree(ROOT / "tests" / "integration" / "kernels" / "trio", project.place / "kernels-src" / "trio")
    misleading = {"TORCH_CUDA_ARCH_LIST": "7.5", "CUDA_VISIBLE_DEVICES": "", "NVCC_APPEND_FLAGS": "-arch=sm_75"}
    only = ("--only", "torch-stable-abi210-cu128-*", "--json")
    done = project.run("build", "trio", *only, **misleading)
    assert done.returncode == 0, done.stderr
    (variant,) = json.loads(done.stdout)["variants"]
    assert variant["archs"] == ["9.0", "9.0a"]  # what every device source serves
    (library,) = Path(variant["path"]).glob("*.so")
    assert machine_code(library) == {80: 2, 90: 2, "90a": 1}


def machine_code(library: Path) -> Counter[int | str]:
    """Architecture → number of images, read here from the ELF flags that CUDA 12.8 writes; ``a`` is a bit of them."""
    with library.open("rb") as file:
        images = ELFFile(file).get_section_by_name(".nv_fatbin").data()
    starts = [match.start() for match in re.finditer(rb"\x7fELF\x02\x01", images)]
    flags = [int(ELFFile(io.BytesIO(images[start:])).header["e_flags"]) for start in starts]
    return Counter(f"{flag & 0xFF}a" if flag & 0x800 else flag & 0xFF for flag in flags)


def test_a_header_that_git_set_back_in_time_is_compiled_again(toy: Toy) -> None:
    """B018: content decides, not the time; only what the header reaches is built, the reason is said."""
    first = toy.build()
    header = toy.edit("csrc/count.h", "kStep = 1", "kStep = 2")
    os.utime(header, (978307200, 978307200))
    second = toy.build()
    assert "csrc/count.h changed" in second.stderr
    assert {"toy: csrc/count.cpp [counter]", f"toy/{VARIANT}"} < set(second.data["compiled"])
    assert not [unit for unit in second.data["compiled"] if unit.startswith("common/")]
    code = LOADS + "print(get_local_kernel(sys.argv[1]).count(x))"
    assert python(code, second.folder) == "2"
    toy.edit("csrc/count.h", "kStep = 2", "kStep = 1")
    third = toy.build()
    assert third.data["compiled"] == []
    assert third.data["variants"] == first.data["variants"]


def test_headers_and_metadata_are_of_the_torch_on_the_label(toy: Toy) -> None:
    """B020: what the builder's own Python has installed takes no part."""
    assert not metadata.version("torch").startswith("2.10.")
    check = "static_assert(TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR == 10);"
    toy.edit(
        "torch-ext/torch_binding.cpp",
        '#include "count.h"',
        f'#include <torch/headeronly/version.h>\n{check}\n#include "count.h"',
    )
    done = toy.project.run("build", "toy", "--matrix", "full", "--torch", "2.10", "--json")
    assert done.returncode == 0, done.stderr
    made = Made(data=json.loads(done.stdout), stderr=done.stderr)
    assert made.folder.name == "torch210-cxx11-cpu-x86_64-linux"
    assert made.metadata["kernel-builder"]["torch-sdk"]["release"].startswith("2.10.")


def test_kernels_and_versions_share_neither_state_nor_names(sound: Made, project: Project) -> None:
    """B022, B023: statics and ops of one build are invisible to every other, in any order of loading."""
    folders = [sound.folder, project.write(version=2).build().folder, project.write("another").build().folder]
    code = LOADS + (
        "kernels = [get_local_kernel(path) for path in sys.argv[1:]]\n"
        "print([kernels[0].count(x) for _ in range(3)], [kernel.count(x) for kernel in kernels[1:]])\n"
    )
    assert python(code, *folders) == "[1, 2, 3] [1, 1]"
    assert python(code, *reversed(folders)) == "[1, 2, 3] [1, 1]"


CUSTOM_OP = """import torch

__all__ = ["twice"]


@torch.library.custom_op("my_ops::twice", mutates_args=())
def twice(x: torch.Tensor) -> torch.Tensor:
    return x * 2
"""
LATE_OWN_NAME = """__all__ = ["twice"]


def twice(x):
    from toy.cfg import FACTOR

    return x * FACTOR
"""
LATE_OWN_MODULE = """import importlib

__all__ = ["twice"]


def twice(x):
    return x * importlib.import_module("toy").FACTOR
"""
UNDECLARED = """__all__ = ["twice"]


def twice(x):
    import einops

    return einops.rearrange(x, "a -> a")
"""


@pytest.mark.parametrize(
    ("report", "text", "line", "says"),
    [
        ("B023", CUSTOM_OP, 6, "my_ops::twice"),
        ("B060", LATE_OWN_NAME, 5, "toy"),
        ("B060", LATE_OWN_MODULE, 7, "toy"),
        ("B063", UNDECLARED, 5, "einops"),
    ],
    ids=["B023", "B060 import", "B060 importlib", "B063"],
)
def test_python_that_breaks_only_later_is_refused_with_its_line(
    toy: Toy, report: str, text: str, line: int, says: str
) -> None:
    """B023, B060, B063: what fails in the second kernel, under torch.compile or at a user's is found by the build."""
    (toy.folder / "torch-ext" / "toy" / "__init__.py").write_text(text)
    (toy.folder / "torch-ext" / "toy" / "cfg.py").write_text("FACTOR = 2\n")
    done = toy.attempt()
    assert done.returncode == 6, report
    assert f"__init__.py:{line}" in done.stderr
    assert says in done.stderr
    assert not list(toy.project.place.glob("dist/*/build/*"))


def test_ops_under_a_fixed_name_are_refused_in_cxx(toy: Toy) -> None:
    """B023: torch aborts the process when a second kernel registers the same library."""
    binding = toy.folder / "torch-ext" / "torch_binding.cpp"
    binding.write_text(
        binding.read_text() + '\nSTABLE_TORCH_LIBRARY_FRAGMENT(my_ops, m) { m.def("f(Tensor x) -> int"); }\n'
    )
    done = toy.attempt()
    assert done.returncode == 6
    assert "my_ops" in done.stderr
    assert "torch_binding.cpp" in done.stderr


def test_what_does_not_import_is_not_packaged(toy: Toy) -> None:
    """B044: a variant that fails is not handed on, and what was built before it is not left in its place."""
    module = toy.folder / "torch-ext" / "toy" / "__init__.py"
    module.write_text(module.read_text() + '\nraise RuntimeError("not on this machine")\n')
    done = toy.attempt()
    assert done.returncode == 6
    assert "not on this machine" in done.stderr
    assert not list((toy.project.place / "dist").rglob("metadata.json"))


def test_the_module_brings_nothing_and_searches_nowhere(sound: Made) -> None:
    """B025: torch's and the system's libraries stay outside, and no folder of the builder is searched for them."""
    assert [path.suffix for path in sound.folder.iterdir()].count(".so") == 1
    (library,) = sound.folder.glob("*.so")
    with library.open("rb") as file:
        tags = list(ELFFile(file).get_section_by_name(".dynamic").iter_tags())
    assert not [tag for tag in tags if tag.entry.d_tag in ("DT_RPATH", "DT_RUNPATH")]
    needed = {tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"}
    assert "libstdc++.so.6" in needed or "libc.so.6" in needed
    assert {name.split(".so")[0] for name in needed} <= {
        "libc", "libm", "libdl", "libpthread", "librt", "libstdc++", "libgcc_s", "ld-linux-x86-64",
        "libtorch", "libtorch_cpu", "libc10",
    }  # fmt: skip


def test_a_package_is_imported_before_torch(sound: Made) -> None:
    """B027: a fresh interpreter that knows neither torch nor the loader imports the folder."""
    code = (
        "import importlib, sys\n"
        "sys.path.insert(0, sys.argv[1])\n"
        "kernel = importlib.import_module(sys.argv[2])\n"
        "import torch\n"
        "print(kernel.count(torch.ones(1)))\n"
    )
    assert python(code, sound.folder.parent, sound.folder.name) == "1"


def test_uncommitted_sources_are_recorded_and_said(project: Project) -> None:
    """B028: who stages and who loads a build of uncommitted sources is told."""
    toy = project.write()

    def git(*arguments: str) -> None:
        identity = ("-c", "user.name=t", "-c", "user.email=t@example.com")
        subprocess.run(["git", *identity, *arguments], cwd=project.place, check=True, capture_output=True)

    git("init", "-q")
    git("add", "kernels-src")
    git("commit", "-q", "-m", "first")
    toy.edit("torch-ext/toy/__init__.py", "return ops.count(x)", "return ops.count(x) + 1")
    staged = toy.attempt("--stage", "hub")
    assert staged.returncode == 0, staged.stderr
    assert "from uncommitted sources" in staged.stdout
    (described,) = project.place.glob("dist/toy/build/*/metadata.json")
    assert json.loads(described.read_text())["provenance"]["kernel"]["dirty"] is True
    code = (
        "import logging, sys, kernel_loader\n"
        "logging.basicConfig(stream=sys.stdout, format='%(levelname)s %(message)s')\n"
        "kernel_loader.get_kernel('acme/toy', version=1, backend='cpu', hub=sys.argv[1])\n"
    )
    said = python(code, project.place / "hub", KERNELS_CACHE=str(project.place / "cache"))
    assert "WARNING" in said
    assert "uncommitted" in said


@pytest.mark.parametrize(
    ("stage", "refused"), [("compile", "*step_cpu.cpp*"), ("link", "*-shared*trio_cpu*")], ids=["compile", "link"]
)
def test_one_variant_that_fails_costs_no_other(project: Project, stage: str, refused: str) -> None:
    """B029: the others are kept and the table says which failed; a re-run makes only that one."""
    shutil.copytree(ROOT / "tests" / "integration" / "kernels" / "trio", project.place / "kernels-src" / "trio")
    compiler = project.place / "c++"
    compiler.write_text(HOST_COMPILER)
    compiler.chmod(0o755)
    (project.place / "refused").write_text(refused)
    module = project.place / "kernels-src" / "trio" / "torch-ext" / "trio" / "__init__.py"
    module.write_text(f"{module.read_text()}\n# linked anew for the failure of a {stage}\n")
    wanted = [word for name in ("cpu", "cu128", "cu130") for word in ("--only", f"torch-stable-abi210-{name}-*")]
    words = ("build", "trio", *wanted, "--keep-going")
    first = project.run(*words, CXX=str(compiler))
    assert first.returncode == 5, stage
    failed, *others = [f"trio/torch-stable-abi210-{name}-x86_64-linux" for name in ("cpu", "cu128", "cu130")]
    rows = {line.split()[0]: line for line in first.stdout.splitlines() if line.startswith("trio/")}
    assert rows[failed].endswith("FAILED: compile")
    assert all("FAILED" not in rows[other] for other in others)
    assert "2 variants, 1 FAILED" in first.stdout
    assert "internal compiler error" in first.stderr
    assert sorted(path.name for path in project.place.glob("dist/trio/build/*")) == [
        other.partition("/")[2] for other in others
    ]
    (project.place / "refused").write_text("nothing")
    again = project.run(*words, "--json", CXX=str(compiler))
    assert again.returncode == 0, again.stderr
    made = json.loads(again.stdout)
    assert failed in made["compiled"]
    assert not [label for label in made["compiled"] if "cuda" in label or "CUDA" in label or label in others]
    assert len(made["variants"]) == 3


def test_one_variant_that_a_check_refuses_costs_no_other(project: Project) -> None:
    """B029: what check refuses is not packaged, the others are."""
    shutil.copytree(ROOT / "tests" / "integration" / "kernels" / "trio", project.place / "kernels-src" / "trio")
    source = project.place / "kernels-src" / "trio" / "csrc" / "step_cpu.cpp"
    text = source.read_text()
    source.write_text(f'extern "C" int reallocarray_of_nobody(void);\nint leak = reallocarray_of_nobody();\n{text}')
    wanted = [word for name in ("cpu", "cu128") for word in ("--only", f"torch-stable-abi210-{name}-*")]
    done = project.run("build", "trio", *wanted, "--keep-going")
    assert done.returncode in (5, 6)
    assert "reallocarray_of_nobody" in done.stderr
    assert [path.name for path in project.place.glob("dist/trio/build/*")] == ["torch-stable-abi210-cu128-x86_64-linux"]
    assert "trio/torch-stable-abi210-cpu-x86_64-linux" in done.stdout
