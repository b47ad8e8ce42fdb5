"""What a build leaves behind: libraries that load, a log, and bytes that know nothing of this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from compile_trio import Bench
from elftools.elf.elffile import ELFFile

from kernel_builder.settings import Settings

if TYPE_CHECKING:
    from kernel_builder.compile.model import Artefact, BuildResult

pytestmark = pytest.mark.toolchain

IMPORT = """
import importlib.machinery, importlib.util, sys
loader = importlib.machinery.ExtensionFileLoader(sys.argv[1], sys.argv[2])
module = importlib.util.module_from_spec(importlib.util.spec_from_loader(sys.argv[1], loader))
loader.exec_module(module)
assert module.__name__ == sys.argv[1]
"""
STEP = f"""
import warnings
warnings.simplefilter("ignore")
import torch
{IMPORT}
step = getattr(torch.ops, sys.argv[1]).step
print(step(torch.tensor([1.0, 2.0, 3.0]))[1:].tolist())
try:
    step(torch.zeros(1, dtype=torch.int64))
except Exception as error:
    print(error)
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    return Bench.make(tmp_path_factory.mktemp("library"))


@pytest.fixture(scope="module")
def result(bench: Bench) -> BuildResult:
    return bench.build(only=["*stable*"])


def _artefact(result: BuildResult, backend: str) -> Artefact:
    return next(a for a in result.artefacts if str(a.plan.variant.backend) == backend)


def _run(python: str, program: str, name: str, library: Path) -> subprocess.CompletedProcess[str]:
    command = [python, "-c", program, name, str(library)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=library.parent)


def test_the_cpu_library_runs_in_torch_and_messages_name_relative_files(result: BuildResult) -> None:
    artefact = _artefact(result, "cpu")
    done = _run(sys.executable, STEP, artefact.plan.op_id, artefact.library)
    assert done.returncode == 0, done.stderr
    first, second = done.stdout.splitlines()[:2]
    assert first == "[6.0, 8.0]"
    assert second.startswith("trio/torch-ext/torch_binding.cpp: float32 is needed")


def _pythons() -> list[str]:
    """This interpreter, those on PATH, and those that a version manager keeps beside this one."""
    named = [found for minor in range(9, 15) if (found := shutil.which(f"python3.{minor}"))]
    beside = sorted(map(str, Path(sys.base_prefix).parent.glob("3.*/bin/python3")))
    return [sys.executable, *named, *beside]


def _version(python: str) -> str:
    """``3.12``; empty for what does not run or is older than the limited API that the library declares."""
    show = "import sys; print('%d.%d' % sys.version_info[:2] if sys.version_info >= (3, 9) else '')"
    return subprocess.run([python, "-c", show], capture_output=True, text=True, check=False).stdout.strip()


def test_the_module_imports_on_every_python_at_hand(result: BuildResult, tmp_path: Path) -> None:
    artefact = _artefact(result, "cpu")
    library = tmp_path / artefact.filename
    subprocess.run(["g++", "-shared", str(artefact.objects["identity"]), "-o", str(library)], check=True)
    pythons = {version: python for python in _pythons() if (version := _version(python))}
    assert pythons
    done = {version: _run(python, IMPORT, artefact.plan.op_id, library).stderr for version, python in pythons.items()}
    assert done == dict.fromkeys(pythons, "")


@pytest.mark.parametrize("backend", ["cpu", "cu128", "cu130"])
def test_only_the_init_function_is_exported(result: BuildResult, backend: str) -> None:
    artefact = _artefact(result, backend)
    with artefact.library.open("rb") as file:
        elf = ELFFile(file)
        symbols = elf.get_section_by_name(".dynsym").iter_symbols()
        defined = {symbol.name for symbol in symbols if symbol["st_shndx"] != "SHN_UNDEF"}
        tags = {tag.entry.d_tag for tag in elf.get_section_by_name(".dynamic").iter_tags()}
        names = {section.name for section in elf.iter_sections()}
    assert defined == {f"PyInit_{artefact.plan.op_id}"}
    assert artefact.filename == f"{artefact.plan.op_id}.abi3.so"
    assert not tags & {"DT_RPATH", "DT_RUNPATH", "DT_TEXTREL"}
    assert not names & {".symtab", ".note.gnu.build-id"}
    assert (".nv_fatbin" in names) == (backend != "cpu")


def test_device_code_is_embedded_uncompressed(result: BuildResult) -> None:
    artefact = _artefact(result, "cu128")
    library = artefact.library.read_bytes()
    found = {(code.device, str(code.arch)) for code in artefact.device_code}
    pair = ("8.0", "9.0", "9.0+PTX")
    assert found == {(name, arch) for name in ("plus", "times") for arch in pair} | {("hopper", "9.0a")}
    for code in artefact.device_code:
        content = code.path.read_bytes()
        assert content.startswith(b"//" if code.arch.ptx else b"\x7fELF")
        assert b"trio_" + code.device.encode() in content
        # nvFatbin keeps PTX as text, without its comments.
        assert (b".visible .entry trio_" if code.arch.ptx else content) in library


def test_objects_are_named_for_findings(result: BuildResult) -> None:
    objects = _artefact(result, "cu130").objects
    assert {"torch-ext/torch_binding.cpp", "csrc/step_cuda.cpp", "identity", "device images"} <= set(objects)
    assert all(path.is_file() for path in objects.values())


def test_results_cannot_be_written(result: BuildResult) -> None:
    for artefact in result.artefacts:
        for path in (artefact.library, *artefact.objects.values(), *(code.path for code in artefact.device_code)):
            assert path.stat().st_mode & 0o777 == 0o444


def test_every_compiler_in_the_log_is_the_host_compiler_or_lies_in_the_store(bench: Bench, result: BuildResult) -> None:
    assert result.log is not None
    commands = [line for line in result.log.read_text().splitlines() if line and not line.startswith("#")]
    host = bench.toolchain().host.cxx
    own = {host, sys.executable}
    assert {line.split()[0] for line in commands} == own
    store = str(Settings.from_environment().store)
    libraries = [path for line in commands for path in re.findall(r"--(?:nvrtc|builtins|nvfatbin)=(\S+)", line)]
    assert libraries
    assert all(path.startswith(store) for path in libraries)
    assert len([line for line in commands if "--nvrtc=" in line]) == len(_artefact(result, "cu128").device_code) * 2


def test_another_folder_store_and_number_of_jobs_give_the_same_bytes(
    result: BuildResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = Bench.make(tmp_path / "a deep" / "place with spaces")
    (tmp_path / "trap").mkdir()
    (tmp_path / "trap" / "stdint.h").write_text("#error this header must not be found\n")
    monkeypatch.setenv("CPATH", str(tmp_path / "trap"))
    monkeypatch.setenv("MAX_JOBS", "1")
    monkeypatch.setenv("LD_RUN_PATH", "/nowhere")
    again = deep.build(only=["*stable*cu128*"])
    assert again.reused == 0
    assert any("1 at once, as asked for" in note for note in deep.notes.notes)
    ours, theirs = _artefact(again, "cu128"), _artefact(result, "cu128")
    for one, other in zip(ours.device_code, theirs.device_code, strict=True):
        assert one.path.read_bytes() == other.path.read_bytes()
    library = ours.library.read_bytes()
    assert library == theirs.library.read_bytes()
    assert b"kernel/csrc/hopper.cu" in library
    assert str(tmp_path).encode() not in library
