"""Runs the ninja graph: one program, one log, results taken as they come."""

from __future__ import annotations

import re
import secrets
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from kernel_builder.errors import CompileError, ToolchainError
from kernel_builder.processes import find_program, stream

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.compile.graph import Step
    from kernel_builder.compile.parallelism import Jobs
    from kernel_builder.compile.store import UnitStore
    from kernel_builder.compile.units import Unit
    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings

_SHOWN_LINES = 40
# Variables that lead compilers and linkers to files or paths that no unit key speaks of.
_UNSET = (
    "CPATH", "C_INCLUDE_PATH", "CPLUS_INCLUDE_PATH", "OBJC_INCLUDE_PATH", "LIBRARY_PATH", "LD_RUN_PATH",
    "COMPILER_PATH", "GCC_EXEC_PREFIX", "GCC_COMPARE_DEBUG", "DEPENDENCIES_OUTPUT", "SUNPRO_DEPENDENCIES",
    "MAKEFLAGS", "LDEMULATION", "COLLECT_NO_DEMANGLE", "NVRTC_ADD_OPTIONS",
    "NVCC_PREPEND_FLAGS", "NVCC_APPEND_FLAGS", "NVCC_CCBIN",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Failure:
    """A step that left no result: its command, and the last lines of what it said."""

    unit: Unit
    sentence: str
    command: str
    output: tuple[str, ...]

    def error(self, log: Path) -> CompileError:
        """The failure as the user meets it."""
        text = "\n".join(self.output[-_SHOWN_LINES:])
        killed = "Killed" in text or "out of memory" in text
        return CompileError(
            self.sentence,
            where=self.unit.label,
            hint="memory may have run out; try fewer --jobs" if killed else "",
            detail=f"{text}\n\ncommand: {self.command}\nlog: {log}".lstrip("\n"),
        )


@dataclass(kw_only=True)
class Run:
    """One run of ninja over ``steps`` (unit key → step) in ``folder``.

    Attributes:
        done: Units that ran and whose results were taken, in order.
        failures: Steps that failed.
    """

    folder: Path
    steps: Mapping[str, Step]
    store: UnitStore
    reporter: Reporter
    log: TextIO
    done: list[Unit] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)
    _refused: set[str] = field(default_factory=set)
    _finished: int = 0
    # The step whose output is being read, and that output.
    _current: Step | None = None
    _lines: list[str] = field(default_factory=list)

    def start(self, jobs: Jobs, settings: Settings, *, keep_going: bool) -> None:
        """Run to the end.

        Raises:
            CompileError: ninja itself failed.
        """
        marker = secrets.token_hex(8)
        pattern = re.compile(rf"{marker} ([0-9a-f]{{64}})")

        def on_line(line: str) -> None:
            found = pattern.fullmatch(line)
            if found is None:
                self._lines.append(line)
                return
            self._finish()
            self._current = self.steps[found[1]]

        argv = [*_wrapped(settings.path), _ninja(), "-j", str(jobs.total), "-k", "0" if keep_going else "1"]
        environment = {"NINJA_STATUS": f"{marker} ", "LC_ALL": "C", "SOURCE_DATE_EPOCH": "0"}
        if not settings.launcher:  # its server may outlive this run, and with it needs a place for temporary files
            environment["TMPDIR"] = str(self.folder / "tmp")
        status = stream(argv, on_line, cwd=self.folder, env=environment)
        self._finish()
        if status != 0 and not self.failures:
            raise CompileError(f"ninja stopped with status {status}.", detail="\n".join(self._lines[-_SHOWN_LINES:]))

    def _finish(self) -> None:
        """Close the step whose output has been read: ninja says FAILED first if it did."""
        step, lines = self._current, [line for line in self._lines if not line.startswith("ninja: build stopped")]
        if step is None:
            return
        self._current, self._lines, self._finished = None, [], self._finished + 1
        failed = bool(lines) and lines[0].startswith("FAILED: ") and lines[0].rstrip().endswith(step.output)
        output = tuple(lines[2:] if failed else lines)
        self.log.write("\n".join([f"# {step.unit.label}", step.command, *output, "# FAILED" * failed, ""]))
        self.log.flush()
        if failed:
            self._fail(step, "A compile step failed.", output)
        else:
            self._take(step, output)
        self.reporter.progress("compile", self._finished, len(self.steps), step.unit.label)

    def _take(self, step: Step, output: tuple[str, ...]) -> None:
        unit = step.unit
        touched = [name for name, file in unit.files.items() if not file.untouched()]
        if touched:
            self._fail(step, f"{touched[0]} was changed while it was compiled; run the build again.", output)
        elif any(upstream.key in self._refused for upstream in unit.inputs):
            self._refused.add(unit.key)
        else:
            self.store.adopt(unit, self.folder / step.output)
            self.done.append(unit)

    def _fail(self, step: Step, sentence: str, output: tuple[str, ...]) -> None:
        self._refused.add(step.unit.key)
        self.failures.append(Failure(unit=step.unit, sentence=sentence, command=step.command, output=output))


class Ran(Protocol):
    """What an executor did: units whose results were adopted, in order, and steps that failed."""

    done: list[Unit]
    failures: list[Failure]


class Executor(Protocol):
    """Runs the steps of a graph and adopts their results into the store."""

    def __call__(
        self,
        folder: Path,
        steps: Mapping[str, Step],
        store: UnitStore,
        reporter: Reporter,
        log: TextIO,
        jobs: Jobs,
        settings: Settings,
        *,
        keep_going: bool,
    ) -> Ran:
        """Run ``steps`` (unit key → step), whose graph lies in ``folder``, to the end."""


def run_here(
    folder: Path,
    steps: Mapping[str, Step],
    store: UnitStore,
    reporter: Reporter,
    log: TextIO,
    jobs: Jobs,
    settings: Settings,
    *,
    keep_going: bool,
) -> Run:
    """The executor of this machine: ninja.

    Raises:
        CompileError: ninja itself failed.
    """
    run = Run(folder=folder, steps=steps, store=store, reporter=reporter, log=log)
    run.start(jobs, settings, keep_going=keep_going)
    return run


def _wrapped(path: str) -> list[str]:
    """Programs that start ninja without misleading variables, and stop it when this process dies."""
    env, setpriv = find_program("env", path), find_program("setpriv", path)
    clean = [env, *(word for name in _UNSET for word in ("-u", name))] if env else []
    return [*clean, *([setpriv, "--pdeathsig", "TERM"] if setpriv else [])]


def _ninja() -> str:
    try:
        import ninja
    except ImportError:
        program = None
    else:
        program = Path(ninja.BIN_DIR) / "ninja"
    if program is None or not program.exists():
        raise ToolchainError("ninja is not installed.", hint="pip install 'kernel-builder[build]'")
    return str(program)
