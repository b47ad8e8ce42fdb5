"""Real libraries, compiled here in a second each, through the public functions; each case has a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "loader"))
from kernel_fakes import variant_files, write_files

pytestmark = pytest.mark.toolchain

VARIANT = "torch212-cxx11-cpu-x86_64-linux"
# The limited API by hand, as generated code declares it: no Python.h is needed.
SOURCE = """
#include <cstddef>
struct Slot; struct Object;
struct Base { std::ptrdiff_t refs; void* type; void* init; std::ptrdiff_t index; void* copy; };
struct Def {
    Base base; const char* name; const char* doc; std::ptrdiff_t size; void* methods; Slot* slots;
    void* a; void* b; void* c;
};
struct Method { const char* name; Object* (*call)(Object*, Object*); int flags; const char* doc; };
extern "C" Object* PyModule_Create2(Def*, int);
extern "C" Object* PyLong_FromLong(long);
inline int& counter() { static int value = 0; return value; }
static Object* count(Object*, Object*) { EXTRA; return PyLong_FromLong(++counter() * FACTOR); }
static Method methods[] = {{"count", count, 4, nullptr}, {nullptr, nullptr, 0, nullptr}};
static Def def = {{1, nullptr, nullptr, 0, nullptr}, "NAME", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};
extern "C" __attribute__((visibility("default"))) Object* PyInit_NAME() { return PyModule_Create2(&def, 3); }
"""


@pytest.fixture
def build(tmp_path):
    """Compile a kernel with one library and write its variant folder; returns the folder."""

    def compiled(uid, *, factor=1, extra="", declare="", folder="kernel"):
        name = f"_toy_cpu_{uid}"
        text = declare + SOURCE.replace("NAME", name).replace("FACTOR", str(factor)).replace("EXTRA", extra)
        source, library = tmp_path / f"{folder}.cpp", tmp_path / f"{folder}.so"
        source.write_text(text)
        subprocess.run(
            ["c++", "-shared", "-fPIC", "-O1", "-fno-gnu-unique", "-fvisibility=hidden", "-o", library, source],
            check=True,
        )
        files = {"__init__.py": b"from ._ops import count\n", "_ops.py": f"from .{name} import count\n".encode()}
        files[f"{name}.abi3.so"] = library.read_bytes()
        return write_files(tmp_path / folder / VARIANT, variant_files(uid, files=files))

    return compiled


PRELUDE = """
import sys, kernel_loader, kernel_loader.api
from kernel_loader.environment import Environment
kernel_loader.api.probe = lambda: Environment.from_dict({"torch": "2.13.0"})
load = kernel_loader.get_local_kernel
"""


def run(tmp_path, code, *arguments):
    argv = [sys.executable, "-c", PRELUDE + textwrap.dedent(code), *map(str, arguments)]
    environ = {**os.environ, "KERNELS_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_library_is_loaded_under_its_id(build, tmp_path):
    code = "m = load(sys.argv[1]); print(m.count(), m.count(), m.__name__)"
    assert run(tmp_path, code, build("a1")) == "1 2 _toy_cpu_a1"


def test_two_kernels_share_no_state(build, tmp_path):
    code = "a, b = load(sys.argv[1]), load(sys.argv[2]); print(a.count(), a.count(), a.count(), b.count())"
    assert run(tmp_path, code, build("a2"), build("b2", folder="other")) == "1 2 3 1"


def test_other_content_under_one_id_is_refused_before_it_is_opened(build, tmp_path):
    code = """
    first = load(sys.argv[1])
    try:
        load(sys.argv[2])
    except kernel_loader.KernelConflict:
        opened = sys.argv[2] in open("/proc/self/maps").read()
        print("refused", first.count(), opened)
    """
    assert run(tmp_path, code, build("a3"), build("a3", factor=7, folder="other")) == "refused 1 False"


def test_a_flipped_bit_is_found_before_the_library_is_opened(build, tmp_path):
    folder = build("a4")
    library = next(folder.glob("*.so"))
    data = bytearray(library.read_bytes())
    data[len(data) // 2] ^= 1
    library.write_bytes(data)
    code = """
    try:
        load(sys.argv[1])
    except kernel_loader.DigestMismatch as e:
        print(e.message, sys.argv[1] in open("/proc/self/maps").read())
    """
    expected = f"The kernel is not what its digest says: {library.name} has other bytes than when it was built. False"
    assert run(tmp_path, code, folder) == expected


def test_a_missing_torch_symbol_is_explained(build, tmp_path):
    folder = build("a5", declare="namespace c10 { struct Gone { static int of(int); }; }\n", extra="c10::Gone::of(3)")
    code = """
    try:
        load(sys.argv[1])
    except ImportError as e:
        print(type(e).__name__, e, [n for n in sys.modules if n.startswith("_toy")], sep="\\n")
    """
    lines = run(tmp_path, code, folder).splitlines()
    assert lines[0] == "LoadFailed"
    expected = "built for torch 2.12 (cxx11 ABI) and cpu, running is torch 2.13.0; the symbol c10::Gone::of is missing."
    assert lines[1] == f"The kernel does not fit this torch: {expected}"
    assert any("undefined symbol: _ZN3c104Gone2ofEi" in line for line in lines)
    assert any(line.startswith("hint: load another variant") for line in lines)
    assert lines[-1] == "[]"


def test_the_kernel_loads_when_torch_was_not_imported_before(build, tmp_path):
    code = """
    import kernel_loader
    m = kernel_loader.get_local_kernel(sys.argv[1])
    print(m.count(), "torch" in sys.modules)
    """
    argv = [sys.executable, "-W", "ignore", "-c", "import sys\n" + textwrap.dedent(code), str(build("a6"))]
    environ = {**os.environ, "KERNELS_CACHE": str(tmp_path / "cache")}
    done = subprocess.run(argv, env=environ, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1 True"
