"""Makes what holds built libraries at the manylinux_2_28 floor: stand-in libraries and a small compat archive."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.errors import ToolchainError
from kernel_builder.files import sha256_of, tree_digest
from kernel_builder.processes import find_program, run
from kernel_builder.resources import templates
from kernel_builder.toolchain import stubs
from kernel_builder.toolchain.model import Floor
from kernel_builder.toolchain.store import folder_digest, install

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.model import HostCompiler

# In link order. All but the first three may be absent: glibc 2.34 folded them into libc.so.6.
_LIBRARIES = (
    "libstdc++.so.6",
    "libc.so.6",
    "libgcc_s.so.1",
    "libm.so.6",
    "libmvec.so.1",
    "libpthread.so.0",
    "libdl.so.2",
    "librt.so.1",
    "libutil.so.1",
    "libresolv.so.2",
    "libanl.so.1",
    "ld-linux-x86-64.so.2",
)
_REQUIRED = _LIBRARIES[:3]
_TORCH = ("torch", "torch_cpu", "torch_cuda", "c10", "c10_cuda")
_TORCH_OF_LINK = {"cpu": ("torch", "torch_cpu", "c10"), "cuda": _TORCH[:4], "nvcc": _TORCH}
_ARCHIVE = "libfloor_compat.a"
_NONSHARED = "libc_nonshared.a"
_SHARED = ("-shared", "-nostdlib", "-Wl,--build-id=none", "-Wl,-s")


def make_floor(host: HostCompiler, settings: Settings, reporter: Reporter) -> Floor:
    """The floor made from this machine's libraries with its compiler; made once per state of both.

    Raises:
        ToolchainError: The machine has no glibc or libstdc++ to read, or the compiler fails.
    """
    compiler = _Compiler(host, settings.path)
    found = {name: path for name in (*_LIBRARIES, _NONSHARED) if (path := compiler.find_library(name))}
    missing = [name for name in _REQUIRED if name not in found]
    if missing:
        raise ToolchainError(
            f"The C++ compiler does not find {', '.join(missing)}.",
            where=host.cxx,
            hint="install the compiler's own libraries (Debian, Ubuntu: apt install g++; Fedora: dnf install gcc-c++)",
        )
    root = install(
        settings.store, "floor", _recipe(host, found)[:20], lambda folder: _fill(folder, found, compiler), reporter
    )
    return Floor(
        root=root / "lib",
        torch=root / "torch",
        digest=folder_digest(root),
        link={key: _link_arguments(root, names) for key, names in _TORCH_OF_LINK.items()},
    )


def _recipe(host: HostCompiler, found: Mapping[str, Path]) -> str:
    """Digest over all that goes into the floor: libraries, compat sources, the compiler and this code."""
    code = [Path(__file__), Path(stubs.__file__), Path(__file__).with_name("floor_moved.tsv")]
    inputs = {name: sha256_of(path) for name, path in found.items()}
    inputs.update({path.name: sha256_of(path) for path in (*code, *_compat_sources())})
    inputs["compiler"] = host.identity
    return tree_digest(inputs)


def _fill(folder: Path, found: Mapping[str, Path], compiler: _Compiler) -> None:
    for sub in ("lib", "torch", "work"):
        (folder / sub).mkdir()
    symbols = {name: stubs.read_symbols(found[name]) for name in _LIBRARIES if name in found}
    for soname, offered in stubs.distribute(symbols).items():
        compiler.make_stub(folder / "lib" / soname, folder / "work", offered)
    for name in _TORCH:
        compiler.make_stub(folder / "torch" / f"lib{name}.so", folder / "work", ())
    compiler.make_archive(folder / "lib" / _ARCHIVE, folder / "work", _compat_sources())
    if _NONSHARED in found:
        (folder / "lib" / _NONSHARED).write_bytes(found[_NONSHARED].read_bytes())
    for path in (folder / "work").iterdir():
        path.unlink()
    (folder / "work").rmdir()


def _link_arguments(root: Path, torch: Sequence[str]) -> tuple[str, ...]:
    libraries = sorted(path.name for path in (root / "lib").iterdir() if ".so" in path.name)
    ordered = sorted(libraries, key=_LIBRARIES.index)
    archives = [_NONSHARED] if (root / "lib" / _NONSHARED).exists() else []
    return (
        "-nodefaultlibs",
        f"-L{root / 'torch'}",
        # The stand-ins define nothing, so as-needed would drop them, and the library would not load beside torch.
        "-Wl,--no-as-needed",
        *(f"-l{name}" for name in torch),
        "-Wl,--as-needed",
        f"-L{root / 'lib'}",
        f"-Wl,--exclude-libs,{_ARCHIVE}:{_NONSHARED}:libgcc.a",
        "-Wl,--start-group",
        *(f"-l:{name}" for name in ordered),
        "-lgcc",
        *(f"-l:{name}" for name in (*archives, _ARCHIVE)),
        "-Wl,--end-group",
    )


def _compat_sources() -> list[Path]:
    return sorted((templates() / "floor").glob("*.cpp"))


class _Compiler:
    """The host compiler, used to find libraries and to make stand-ins and the archive."""

    def __init__(self, host: HostCompiler, path: str) -> None:
        self._cxx, self._path = shlex.split(host.cxx), path

    def find_library(self, name: str) -> Path | None:
        """Where the compiler's linker would take this file from."""
        path = Path(self._run([*self._cxx, f"-print-file-name={name}"]).strip())
        return path.resolve() if path.is_absolute() and path.is_file() else None

    def make_stub(self, target: Path, work: Path, symbols: Sequence[stubs.Symbol]) -> None:
        """Link a library that offers these names under the soname of its file."""
        source, script = work / "stub.s", work / "stub.map"
        source.write_text(stubs.assembly(symbols), encoding="ascii")
        script.write_text(stubs.version_script(symbols), encoding="ascii")
        versions = [f"-Wl,--version-script,{script}"] if symbols else []
        self._run([*self._cxx, *_SHARED, f"-Wl,-soname,{target.name}", *versions, "-o", str(target), str(source)])

    def make_archive(self, target: Path, work: Path, sources: Sequence[Path]) -> None:
        """Compile each source to one member, so that a link takes only what it lacks."""
        objects = [work / f"{source.stem}.o" for source in sources]
        for source, made in zip(sources, objects, strict=True):
            # C++20 names are explicit instantiations; the others do not depend on the standard.
            flags = ["-std=c++2a", "-O2", "-fPIC", "-fvisibility=hidden", f"-ffile-prefix-map={source.parent}=floor"]
            self._run([*self._cxx, *flags, "-c", str(source), "-o", str(made)])
        self._run([self._archiver(), "crD", str(target), *map(str, objects)])

    def _archiver(self) -> str:
        name = self._run([*self._cxx, "-print-prog-name=ar"]).strip()
        program = find_program(name, self._path)
        if program is None:
            raise ToolchainError("The archiver ar is missing.", hint="install binutils")
        return program

    def _run(self, command: Sequence[str]) -> str:
        try:
            done = run(command, timeout=300)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolchainError(f"The host compiler cannot be run: {error}.", where=command[0]) from error
        if done.status != 0:
            raise ToolchainError(
                "The host compiler cannot make the floor libraries.",
                where=shlex.join(command),
                detail=done.stderr.strip(),
            )
        return done.stdout
