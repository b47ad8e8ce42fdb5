"""Libraries made by the machine's own compiler: faults that real builds have, put in one at a time."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import pytest

from kernel_builder.check.check import check_artefact, check_variant
from kernel_builder.compile.model import Artefact
from kernel_builder.plan.model import Plan, VariantPlan
from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.spec.model import Kernel, Torch
from kernel_builder.toolchain.floor import make_floor
from kernel_builder.toolchain.host import find_host_compiler
from kernel_builder.toolchain.model import Toolchain
from kernel_loader.format.variants import ArchVariant, parse
from kernel_loader.format.versions import MajorMinor
from kernel_loader.integrity import hash_folder

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.check.model import Finding

pytestmark = pytest.mark.toolchain

NAME = "torch-stable-abi210-cpu-x86_64-linux"
IDENTITY = "_sample_cpu_0123456789"
# A module that Python can import, against hand-written declarations of the limited API.
MODULE = """
struct Definition { long head[5]; const char* name; const char* doc; long size; void* methods; void* rest[4]; };
extern "C" int PyModuleDef_Init(Definition*) __attribute__((weak));
extern "C" void* PyModule_Create2(Definition*, int);
static Definition definition = {{1}, "NAME", nullptr, -1, nullptr, {nullptr}};
extern "C" __attribute__((visibility("default"))) void* PyInit_NAME() { return PyModule_Create2(&definition, 3); }
""".replace("NAME", IDENTITY)
# pthread_once moved to a newer version of libc; shared_ptr asks libc a question that old ones do not know.
MODERN = """
#include <memory>
#include <pthread.h>
void once(pthread_once_t* flag, void (*f)()) { pthread_once(flag, f); }
std::shared_ptr<int> share(const std::shared_ptr<int>& p) { return p; }
"""


@pytest.fixture(scope="module")
def toolchain() -> Toolchain:
    settings = Settings.from_environment()
    host = find_host_compiler(settings)
    floor = make_floor(host, settings, SilentReporter())
    return Toolchain(plan=Plan(variants=()), host=host, floor=floor, toolkits={}, sdks={})


def run(*argv: object, cwd: Path) -> None:
    subprocess.run([str(a) for a in argv], cwd=cwd, check=True, capture_output=True)


def build(folder: Path, *sources: str, compile_with: tuple[str, ...] = (), link_with: tuple[str, ...] = ()) -> Artefact:
    """Objects ``0.o``, ``1.o`` … linked with the plain system compiler."""
    objects = {}
    for n, text in enumerate(sources):
        (folder / f"{n}.cpp").write_text(text)
        flags = ("-O2", "-fPIC", "-fvisibility=hidden", "-fvisibility-inlines-hidden", *compile_with)
        run("g++", *flags, "-c", f"{n}.cpp", "-o", f"{n}.o", cwd=folder)
        objects[f"{n}.o"] = folder / f"{n}.o"
    run("g++", "-shared", *objects, "-o", "library.so", *link_with, cwd=folder)
    return artefact(folder, objects)


def artefact(folder: Path, objects: dict[str, Path]) -> Artefact:
    module = folder / "torch-ext/sample/__init__.py"
    module.parent.mkdir(parents=True, exist_ok=True)
    module.write_text("__all__ = []\n")
    kernel = Kernel(
        root=folder, common=None, name="sample", version=1, license="Apache-2.0", backends=("cpu",), torch=Torch(),
        components=(), sources={"torch-ext/sample/__init__.py": "0" * 64},
    )  # fmt: skip
    variant = parse(NAME)
    assert isinstance(variant, ArchVariant)
    plan = VariantPlan(kernel=kernel, variant=variant, uid="0123456789", sdk=MajorMinor(2, 10), toolkit=None, archs={})
    return Artefact(
        plan=plan, library=folder / "library.so", filename=f"{IDENTITY}.abi3.so", device_code=(), objects=objects
    )


def wrong(findings: tuple[Finding, ...]) -> set[str]:
    return {f.code for f in findings if f.severity != "note"}


def test_a_plain_module_passes(tmp_path: Path, toolchain: Toolchain) -> None:
    findings = check_artefact(build(tmp_path, MODULE), toolchain)
    assert wrong(findings) == set(), findings


@pytest.mark.parametrize("link", [(), ("-s",)], ids=["with symbols", "stripped"])
def test_a_symbol_newer_than_the_floor_is_named_with_its_object(
    tmp_path: Path, toolchain: Toolchain, link: tuple[str, ...]
) -> None:
    built = build(tmp_path, MODULE, MODERN, link_with=link)
    findings = [f for f in check_artefact(built, toolchain) if f.code == "glibc-floor"]
    assert findings
    assert all("1.o" in f.message and "0.o" not in f.message for f in findings)
    assert any("pthread_once needs GLIBC_2.34" in f.message for f in findings)


def test_the_same_code_linked_through_the_floor_passes(tmp_path: Path, toolchain: Toolchain) -> None:
    built = build(tmp_path, MODULE, MODERN, link_with=("-s",))
    (tmp_path / "local.map").write_text("{ global: PyInit_*; local: *; };\n")
    script = "-Wl,--version-script,local.map"
    run("g++", "-shared", *built.objects, *toolchain.floor.link["cpu"], script, "-o", "library.so", cwd=tmp_path)
    findings = check_artefact(built, toolchain)
    assert not wrong(findings) & {"glibc-floor", "needed", "rpath", "exports", "gnu-unique", "executable-stack"}, (
        findings
    )


def test_a_stub_link_without_the_compat_archive_is_refused(tmp_path: Path, toolchain: Toolchain) -> None:
    """Versions alone look fine then: what no old library offers became an import without a version."""
    built = build(tmp_path, MODULE, MODERN)
    link = [
        a for a in toolchain.floor.link["cpu"] if "compat" not in a and a not in ("-Wl,-z,defs", "-Wl,-z", "-Wl,defs")
    ]
    run("g++", "-shared", *built.objects, *link, "-Wl,-z,undefs", "-o", "library.so", cwd=tmp_path)
    findings = check_artefact(built, toolchain)
    assert "unversioned-import" in wrong(findings), findings


def test_a_counter_shared_between_kernels_is_refused(tmp_path: Path, toolchain: Toolchain) -> None:
    counter = 'inline int& n() { static int c = 0; return c; }\nextern "C" int next() { return ++n(); }\n'
    exposed = counter.replace("inline", '__attribute__((visibility("default"))) inline')
    assert "gnu-unique" in wrong(check_artefact(build(tmp_path, MODULE, exposed), toolchain))
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    assert wrong(check_artefact(build(hidden, MODULE, counter), toolchain)) == set()


@pytest.mark.parametrize("tags", ["--enable-new-dtags", "--disable-new-dtags"])
def test_a_path_of_the_build_machine_is_refused(tmp_path: Path, toolchain: Toolchain, tags: str) -> None:
    built = build(tmp_path, MODULE, link_with=(f"-Wl,{tags},-rpath,/opt/build/lib",))
    assert wrong(check_artefact(built, toolchain)) == {"rpath"}


def test_a_link_against_the_driver_is_refused(tmp_path: Path, toolchain: Toolchain) -> None:
    (tmp_path / "driver.c").write_text("int cuInit(unsigned flags) { return 0; }\n")
    run("gcc", "-shared", "-fPIC", "driver.c", "-Wl,-soname,libcuda.so.1", "-o", "libcuda.so", cwd=tmp_path)
    user = 'extern "C" int cuInit(unsigned);\nint f() { return cuInit(0); }\n'
    built = build(tmp_path, MODULE, user, link_with=("-L.", "-lcuda"))
    findings = check_artefact(built, toolchain)
    assert any(f.code == "needed" and "libcuda.so.1" in f.message for f in findings)


def test_a_static_gcc_runtime_is_refused(tmp_path: Path, toolchain: Toolchain) -> None:
    thrower = '#include <stdexcept>\nvoid fail() { throw std::runtime_error("no"); }\n'
    built = build(tmp_path, MODULE, thrower, link_with=("-static-libgcc", "-static-libstdc++"))
    assert wrong(check_artefact(built, toolchain)) & {"glibc-floor", "exports"}


def test_a_leak_of_the_torch_cxx_abi_is_refused_by_name(tmp_path: Path, toolchain: Toolchain) -> None:
    leak = "namespace at { void empty(long); }\nvoid f() { at::empty(1); }\n"
    built = build(tmp_path, MODULE, leak)
    found = [f for f in check_artefact(built, toolchain) if f.code == "torch-abi"]
    assert len(found) == 1
    assert "at::empty" in found[0].message
    assert "1.o" in found[0].message


def test_a_function_outside_the_limited_api_is_named(tmp_path: Path, toolchain: Toolchain) -> None:
    user = 'extern "C" void PyType_GetName();\nvoid f() { PyType_GetName(); }\n'
    found = [f for f in check_artefact(build(tmp_path, MODULE, user), toolchain) if f.code == "python-abi"]
    assert "PyType_GetName" in found[0].message


def test_an_executable_stack_is_refused(tmp_path: Path, toolchain: Toolchain) -> None:
    assert wrong(check_artefact(build(tmp_path, MODULE, link_with=("-z", "execstack")), toolchain)) == {
        "executable-stack"
    }


def packaged(folder: Path, init: str) -> Path:
    """The plain module as a variant that the loader takes."""
    build(folder, MODULE)
    path = folder / "build" / NAME
    path.mkdir(parents=True)
    (folder / "library.so").rename(path / f"{IDENTITY}.abi3.so")
    (path / "_ops.py").write_text(f"from . import {IDENTITY}\n")
    (path / "__init__.py").write_text(init)
    metadata = {
        "name": "sample", "id": IDENTITY, "version": 1, "license": "Apache-2.0", "backend": {"type": "cpu"},
        "python-depends": [], "digest": {"algorithm": "sha256", "files": dict(hash_folder(path).files)},
        "kernel-builder": {"source-digest": "0" * 64},
    }  # fmt: skip
    (path / "metadata.json").write_text(json.dumps(metadata))
    return path


def test_a_variant_is_imported_in_a_fresh_interpreter(tmp_path: Path) -> None:
    path = packaged(tmp_path, 'from . import _ops\n\n__all__ = ["answer"]\nanswer = 42\n')
    assert check_variant(path) == ()


@pytest.mark.parametrize(
    ("init", "text"),
    [
        ("from . import _ops\n__all__ = []\nraise ValueError('broken on import')\n", "broken on import"),
        ("from . import _ops\n__all__ = ['absent']\n", "absent"),
        ("from . import _ops\n__all__ = []\nimport os\nos._exit(3)\n", "exit status 3"),
        ("from . import _ops\n__all__ = []\nimport os\nos.kill(os.getpid(), 11)\n", "signal 11"),
    ],
)
def test_a_variant_that_cannot_be_imported_is_refused_with_the_reason(tmp_path: Path, init: str, text: str) -> None:
    findings = check_variant(packaged(tmp_path, init))
    assert [f.code for f in findings] == ["import"], findings
    assert text in findings[0].message
