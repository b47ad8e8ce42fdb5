"""Libraries linked with the floor ask for nothing newer than manylinux_2_28, behave, and are the same everywhere."""

from __future__ import annotations

import ctypes
import shlex
import subprocess
from typing import TYPE_CHECKING

import pytest
from elftools.elf.elffile import ELFFile

from kernel_builder.reporting import SilentReporter
from kernel_builder.settings import Settings
from kernel_builder.toolchain.floor import make_floor
from kernel_builder.toolchain.host import find_host_compiler
from kernel_builder.toolchain.stubs import version_key

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.toolchain.model import Floor, HostCompiler

pytestmark = pytest.mark.toolchain

# Names that this machine offers above the floor only, by C++ standard: streams, threads, exceptions, clocks, stat.
SOURCE = r"""
#include <sys/stat.h>
#include <unistd.h>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <exception>
#include <future>
#include <iostream>
#include <mutex>
#include <sstream>
#include <stdexcept>
#include <string>
#include <thread>

extern "C" __attribute__((visibility("default"))) int probe(int number, char* out, size_t room) {
  std::exception_ptr caught;
  std::once_flag once;
  int total = 0;
  std::call_once(once, [&] { total += 1; });
  std::thread worker([&] {
    try {
      if (number < 0) throw std::invalid_argument("negative");
      total += number;
    } catch (...) {
      caught = std::current_exception();
    }
  });
  worker.join();
  std::mutex mutex;
  std::condition_variable never;
  std::unique_lock<std::mutex> lock(mutex);
  const auto start = std::chrono::steady_clock::now();
  never.wait_for(lock, std::chrono::milliseconds(20));
  if (std::chrono::steady_clock::now() - start < std::chrono::milliseconds(15)) total += 1000;
  struct stat status;
  if (stat("/", &status) != 0 || !S_ISDIR(status.st_mode) || gettid() <= 0) total += 2000;
  total += std::async(std::launch::async, [] { return 7; }).get();
  std::ostringstream text;
  try {
    if (caught) std::rethrow_exception(caught);
  } catch (const std::exception& error) {
    text << error.what();
  }
  text << ':' << total << ':' << std::strtol("12", nullptr, 10) << ':' << std::flush;
  std::string result = text.str();
#if __cplusplus >= 202002L
  result = std::move(text).str();
#endif
  try {
    volatile long size = -1;
    delete[] new int[size];
  } catch (const std::bad_array_new_length&) {
    result += "length";
  }
  std::cerr << "";
  result.copy(out, room);
  return total;
}
"""


def imports_of(library: Path) -> dict[str, str]:
    """Name → version (empty without one) of every undefined symbol that is not weak."""
    found = {}
    with library.open("rb") as file:
        elf = ELFFile(file)
        needs = elf.get_section_by_name(".gnu.version_r")
        numbers = elf.get_section_by_name(".gnu.version")
        names = {aux["vna_other"]: aux.name for _, group in needs.iter_versions() for aux in group}
        for place, symbol in enumerate(elf.get_section_by_name(".dynsym").iter_symbols()):
            if symbol["st_shndx"] == "SHN_UNDEF" and symbol["st_info"]["bind"] != "STB_WEAK" and symbol.name:
                found[symbol.name] = names.get(numbers.get_symbol(place)["ndx"], "")
    return found


def needed_by(library: Path) -> list[str]:
    with library.open("rb") as file:
        tags = ELFFile(file).get_section_by_name(".dynamic").iter_tags()
        return [tag.needed for tag in tags if tag.entry.d_tag == "DT_NEEDED"]


@pytest.fixture(scope="module")
def host() -> HostCompiler:
    return find_host_compiler(Settings.from_environment())


@pytest.fixture(scope="module")
def floors(host, tmp_path_factory) -> tuple[Floor, Floor]:
    """Two floors, made from nothing in folders of different depth."""
    stores = (tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b") / "much" / "deeper")
    path = Settings.from_environment().path
    first, second = (make_floor(host, Settings(store=store, path=path), SilentReporter()) for store in stores)
    return first, second


@pytest.fixture(scope="module", params=["c++17", "c++2a"])
def built(request, host, tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("object")
    (folder / "probe.cpp").write_text(SOURCE)
    flags = [f"-std={request.param}", "-O2", "-fPIC", "-fvisibility=hidden", "-Wall"]
    command = [*shlex.split(host.cxx), *flags, "-c", str(folder / "probe.cpp"), "-o", str(folder / "probe.o")]
    subprocess.run(command, check=True)
    return folder / "probe.o"


def link(host: HostCompiler, built: Path, arguments: tuple[str, ...], to: Path) -> Path:
    command = [*shlex.split(host.cxx), "-shared", str(built), *arguments, "-Wl,--build-id=none", "-o", str(to)]
    subprocess.run(command, check=True)
    return to


def test_the_floor_is_the_same_from_any_folder(floors) -> None:
    assert floors[0].digest == floors[1].digest
    assert floors[0].root != floors[1].root


@pytest.mark.parametrize("backend", ["cpu", "cuda"])
def test_linked_libraries_do_not_depend_on_where_the_store_lies(backend, host, built, floors, tmp_path) -> None:
    one, two = (
        link(host, built, floor.link[backend], tmp_path / f"{number}.so").read_bytes()
        for number, floor in enumerate(floors)
    )
    assert one == two


def test_every_import_has_a_version_within_the_floor(host, built, floors, tmp_path) -> None:
    plain = link(host, built, (), tmp_path / "plain.so")
    above = {name for name, version in imports_of(plain).items() if version_key(version) is None}
    assert above, "the sample must need something that the floor lacks, or it proves nothing"
    library = link(host, built, floors[0].link["cpu"], tmp_path / "floor.so")
    assert {n: v for n, v in imports_of(library).items() if version_key(v) is None} == {}


def test_libraries_name_torch_and_the_run_time_they_share_with_it(host, built, floors, tmp_path) -> None:
    cpu = needed_by(link(host, built, floors[0].link["cpu"], tmp_path / "cpu.so"))
    cuda = needed_by(link(host, built, floors[0].link["cuda"], tmp_path / "cuda.so"))
    assert cpu[:3] == ["libtorch.so", "libtorch_cpu.so", "libc10.so"]
    assert cuda[:4] == ["libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so"]
    assert {"libstdc++.so.6", "libgcc_s.so.1"} <= set(cpu) & set(cuda)
    assert not any("cudart" in name for name in cuda)


def test_nothing_of_the_archive_is_exported(host, built, floors, tmp_path) -> None:
    library = link(host, built, floors[0].link["cpu"], tmp_path / "floor.so")
    with library.open("rb") as file:
        symbols = ELFFile(file).get_section_by_name(".dynsym").iter_symbols()
        exported = {s.name for s in symbols if s["st_shndx"] != "SHN_UNDEF" and s.name}
    archive = {
        "__libc_single_threaded",
        "pthread_cond_clockwait",
        "stat",
        "gettid",
        "_ZSt28__throw_bad_array_new_lengthv",
    }
    assert "probe" in exported
    assert not exported & archive


def test_streams_threads_and_exceptions_work(host, built, floors, tmp_path) -> None:
    arguments = tuple(a for a in floors[0].link["cpu"] if not a.startswith(("-ltorch", "-lc10")))
    library = ctypes.CDLL(str(link(host, built, arguments, tmp_path / "run.so")))
    out = ctypes.create_string_buffer(100)
    assert (library.probe(3, out, 100), out.value) == (11, b":11:12:length")
    out = ctypes.create_string_buffer(100)
    assert (library.probe(-3, out, 100), out.value) == (8, b"negative:8:12:length")


MEMBERS = r"""
#include <cstddef>
extern "C" {
long __isoc23_strtol(const char*, char**, int);
unsigned long long __isoc23_strtoull(const char*, char**, int);
void __cxa_call_terminate(void*);
}
void stream_init() __asm__("_ZSt21ios_base_library_initv");
extern "C" long probe(const char* text) {
  stream_init();
  if (text == nullptr) __cxa_call_terminate(nullptr);
  return __isoc23_strtol(text, nullptr, 0) + static_cast<long>(__isoc23_strtoull(text, nullptr, 10));
}
"""


def test_names_that_newer_compilers_emit_are_there(host, floors, tmp_path) -> None:
    (tmp_path / "new.cpp").write_text(MEMBERS)
    command = [*shlex.split(host.cxx), "-O2", "-fPIC", "-c", str(tmp_path / "new.cpp"), "-o", str(tmp_path / "new.o")]
    subprocess.run(command, check=True)
    arguments = tuple(a for a in floors[0].link["cpu"] if not a.startswith(("-ltorch", "-lc10")))
    library = link(host, tmp_path / "new.o", (*arguments, "-Wl,-z,defs"), tmp_path / "new.so")
    assert all(version_key(version) is not None for version in imports_of(library).values())
    assert ctypes.CDLL(str(library)).probe(b"12") == 24
