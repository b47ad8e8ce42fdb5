"""The ninja graph of one run: exactly the units that are missing, in paths relative to the run's folder."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel_builder.compile import measured
from kernel_builder.compile.store import PEAK
from kernel_builder.compile.units import Unit, expand
from kernel_builder.errors import CompileError
from kernel_builder.rendering import render_file
from kernel_builder.resources import templates

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from kernel_builder.compile.parallelism import Jobs
    from kernel_builder.compile.store import UnitStore


# Steps of a C++ or CUDA compiler that a compiler cache knows how to keep.
_LAUNCHED = ("binding", "component", "support", "nvcc")
# sccache fails with it, and takes care of what it is for: it runs nvcc's steps one by one in a folder of its own.
_NOT_FOR_SCCACHE = "--objdir-as-tempdir"


@dataclass(frozen=True, kw_only=True, slots=True)
class Step:
    """A unit in a run: its command line, and its result relative to the run's folder."""

    unit: Unit
    command: str
    output: str


def write_graph(
    run: Path, missing: Sequence[Unit], store: UnitStore, jobs: Jobs, launcher: Sequence[str] = ()
) -> dict[str, Step]:
    """Write ``build.ninja`` and the generated sources; returns unit key → step.

    Args:
        run: Folder of the run, which ninja starts in.
        jobs: Bounds the steps that need much memory.
        missing: Units without a result, inputs first.
        store: Has the results of all other units.
        launcher: Program that compilers are started with, such as ``sccache``; no part of any key.

    Raises:
        CompileError: A path cannot stand in a command.
    """
    from ninja.ninja_syntax import Writer, escape

    results = {unit.key: f"{unit.key}/{unit.output}" for unit in missing}
    steps = {unit.key: _prepare(run, unit, results, store, launcher, jobs.threads) for unit in missing}
    output: Any  # ninja's annotation of it is wrong
    with (run / "build.ninja").open("w", encoding="utf-8") as output:
        graph = Writer(output, width=1 << 20)
        graph.pool("heavy", jobs.heavy)
        # The description is what the status line shows, and how the run recognises the step.
        graph.rule("step", "$line", description="$key")
        for key, step in steps.items():
            graph.build(
                [step.output],
                "step",
                implicit=[results[upstream.key] for upstream in step.unit.inputs if upstream.key in results],
                variables={"line": escape(f"{_measured(key)} {step.command}"), "key": key},
                pool="heavy" if step.unit.memory > jobs.threshold else None,
            )
    return steps


def _prepare(
    run: Path, unit: Unit, results: Mapping[str, str], store: UnitStore, launcher: Sequence[str], threads: int
) -> Step:
    (run / unit.key).mkdir()
    inputs = [results.get(upstream.key) or os.path.relpath(store.result(upstream), run) for upstream in unit.inputs]
    places = {**unit.places, "out": results[unit.key], **{f"in{index}": path for index, path in enumerate(inputs)}}
    if unit.template:
        places["source"] = f"{unit.key}/{unit.template.removesuffix('.j2')}"
        text = render_file(templates() / "build" / unit.template, **unit.context, paths=inputs)
        (run / places["source"]).write_text(text, encoding="utf-8")
    words = [word for argument in unit.argv for word in _words(argument, places)]
    if unit.kind == "nvcc" and threads > 1:
        words.append(f"--threads={threads}")
    if unit.kind in _LAUNCHED:
        sccache = any(word.rpartition("/")[2] == "sccache" for word in launcher)
        words = [*launcher, *(word for word in words if not (sccache and word == _NOT_FOR_SCCACHE))]
    if any("\n" in word for word in words):
        raise CompileError("A path or flag contains a line break.", where=unit.label)
    return Step(unit=unit, command=shlex.join(words), output=results[unit.key])


def _measured(key: str) -> str:
    return shlex.join([sys.executable, "-I", "-S", measured.__file__, f"{key}/{PEAK}"])


def _words(argument: str, places: Mapping[str, str]) -> list[str]:
    # CXX may be several words, such as a compiler cache and a compiler.
    return shlex.split(places["cxx"]) if argument == "@cxx@" else [expand(argument, places)]
