"""What the library leans on and what it shows: DT_NEEDED, RPATH, exports, process-wide symbols, stack."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.check.policy import read_policy
from kernel_builder.check.subject import listed
from kernel_builder.check.symbols import is_std
from kernel_loader.demangle import demangle

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel_builder.check.model import Finding
    from kernel_builder.check.subject import Library

_NVCC_SECTION = ".nvFatBinSegment"  # every object that nvcc makes registers its code from here
_MACHINES = {"EM_X86_64": "x86_64", "EM_AARCH64": "aarch64"}


def check_machine(library: Library) -> Iterator[Finding]:
    """The code is for the CPU that the variant names (``machine``)."""
    if _MACHINES.get(library.elf.machine) != library.variant.cpu:
        yield library.finding("machine", f"It holds {library.elf.machine} code in a variant for {library.variant.cpu}.")


def check_needed(library: Library) -> Iterator[Finding]:
    """DT_NEEDED against the allow-list (``needed``), and the C++ run time among it where it is used."""
    policy, allowed = read_policy(), _allowed(library)
    for name in library.elf.needed:
        if name in policy.refused:
            yield library.finding("needed", f"It needs {name}: {policy.refused[name]}.", hint="do not link against it")
        elif name not in allowed:
            yield library.finding(
                "needed",
                f"It needs {name}, which neither the system nor torch provides to a {library.variant.backend} variant.",
                hint="link it statically with hidden symbols, or do without it",
            )
    yield from _runtime(library)


def check_rpath(library: Library) -> Iterator[Finding]:
    """RPATH and RUNPATH lead nowhere but to the variant's own folder (``rpath``)."""
    for kind, entries in (("RPATH", library.elf.rpath), ("RUNPATH", library.elf.runpath)):
        for entry in entries:
            if entry not in ("", "$ORIGIN", "${ORIGIN}"):
                yield library.finding(
                    "rpath",
                    f"{kind} {entry!r} would load libraries from a folder of whoever built or runs it.",
                    hint="link without -rpath",
                )


def check_exports(library: Library) -> Iterator[Finding]:
    """Only ``PyInit_*`` is exported (``exports``), nothing is unique to the process (``gnu-unique``)."""
    if library.elf.unique:
        yield library.finding(
            "gnu-unique",
            f"{listed([demangle(n) for n in library.elf.unique])}: the process has one such object, shared between "
            "kernels that never meant to.",
            hint="compile with -fno-gnu-unique and hidden visibility",
        )
    visible = sorted(n for n in library.elf.exports if not n.startswith("PyInit_") and n not in library.elf.unique)
    if visible:
        yield library.finding(
            "exports",
            f"It exports {listed([demangle(n) for n in visible])}; only PyInit_* may be seen by other libraries.",
            severity="error" if library.own else "warning",
            hint="link with a version script that keeps everything else local",
        )


def check_stack(library: Library) -> Iterator[Finding]:
    """The stack stays non-executable (``executable-stack``): hardened systems refuse to load anything else."""
    if library.elf.executable_stack:
        yield library.finding(
            "executable-stack",
            "Loading it makes the stack of the process executable, which hardened systems refuse.",
            hint="link with -z noexecstack; assembly needs a .note.GNU-stack section",
        )


def _allowed(library: Library) -> frozenset[str]:
    policy, backend = read_policy(), library.variant.backend
    names = [*policy.needed["system"], *policy.needed["torch"]]
    if backend.name == "cuda" and backend.version is not None:
        names += policy.needed["torch_cuda"]
        names += [name.format(major=backend.version.major) for name in policy.needed["cuda"]]
    # What this toolchain compiles without nvcc launches through the driver, and has no use for the run time.
    without = library.own and _NVCC_SECTION not in library.elf.sections
    return frozenset(name for name in names if not (without and name.startswith("libcudart.")))


def _runtime(library: Library) -> Iterator[Finding]:
    names = [i.name for i in library.elf.imports if not i.weak]
    for soname, used in (
        ("libstdc++.so.6", next((n for n in names if is_std(n) and not n.startswith("_Unwind_")), None)),
        ("libgcc_s.so.1", next((n for n in names if n.startswith("_Unwind_")), None)),
    ):
        if used is not None and soname not in library.elf.needed:
            yield library.finding(
                "needed",
                f"It uses {demangle(used)} but does not need {soname}: it works only while another library brings it.",
                hint=f"link against {soname}; never with -static-libgcc or -static-libstdc++",
            )
