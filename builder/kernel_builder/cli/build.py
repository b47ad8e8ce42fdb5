"""``kernel-builder build``: plan → toolchain → compile → check → package → stage."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernel_builder.cli.options import epilog, kernels, quiet_and_json, read_output, selection
from kernel_builder.cli.plan import read_nvccs, read_plan
from kernel_builder.console.progress import reporting
from kernel_builder.console.text import and_more

if TYPE_CHECKING:
    from kernel_builder.cli.pipeline import Built
    from kernel_builder.compile.run import Executor
    from kernel_builder.console.output import Output
    from kernel_builder.plan.model import Plan
    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    epilog=epilog(
        "kernel-builder build",
        "kernel-builder build rmsnorm --stage dist/hub",
        "kernel-builder build rmsnorm --dev --arch native",
        codes=(2, 3, 4, 5, 6, 8, 9),
    )
)
@kernels
@selection
@click.option("--out", type=_FOLDER, help="Where packaged variants go; default: dist, with --dev dist/dev.")
@click.option("--stage", "hub", type=_FOLDER, help="Also stage the kernels into this folder hub.")
@click.option("--jobs", type=click.IntRange(min=1), help="Parallel compile steps; default MAX_JOBS, bounded by memory.")
@click.option("--keep-going", is_flag=True, help="Build the other variants when one fails.")
@click.option("--prune", is_flag=True, help="Remove packaged variants of these kernels that this run does not make.")
@click.option("--dev", is_flag=True, help="One variant for the torch installed here, with line numbers.")
@click.option("--arch", metavar="native|9.0a", help="With --dev: the one architecture; default: this machine's GPU.")
@click.option("--executor", metavar="dask://HOST:PORT", help="Compile on the workers of a dask cluster.")
@quiet_and_json
def build(**options: Any) -> int:
    """Build, check and package variants."""
    from kernel_builder.cli.pipeline import run_pipeline

    started = time.monotonic()
    settings, output = read_output(options)
    _check_dev(options)
    executor = _executor(options.pop("executor"))
    with reporting(output) as reporter:
        planned = _plan(options, settings, reporter)
        for note in planned.notes:
            reporter.note(f"{note.label}: {note.text}")
        built = run_pipeline(planned, settings, reporter, nvcc=options.pop("toolkit"), executor=executor, **options)
    seconds = time.monotonic() - started
    output.result(
        data=built.to_json(seconds),
        ids=[str(variant.path) for d in built.distributions for variant in d.variants],
        lines=[
            *output.table(("VARIANT", "ARCHS", "SIZE", "DIGEST", "RECEIPT"), built.rows()),
            "",
            *built.summary(seconds),
        ],
    )
    return _report_failures(built, output)


def _check_dev(options: dict[str, Any]) -> None:
    from kernel_builder.errors import UsageError

    if options["arch"] is not None and not options["dev"]:
        hint = "TORCH_CUDA_ARCH_LIST narrows the architectures of a release"
        raise UsageError("--arch is for --dev builds.", where="--arch", hint=hint)
    if not options["dev"]:
        return
    given = [name for name in ("torch", "cuda", "backends", "only", "skip", "missing", "hub", "prune") if options[name]]
    if given or options["matrix"] != "cover":
        name = {"backends": "backend", "hub": "stage"}.get(given[0], given[0]) if given else "matrix"
        raise UsageError(f"A --dev build has no --{name}.", where=f"--{name}", hint="leave out --dev, or this option")


def _plan(options: dict[str, Any], settings: Settings, reporter: Reporter) -> Plan:
    """The plan of a release, or of the inner loop; also decides where packages go."""
    dev, arch = options.pop("dev"), options.pop("arch")
    options["out"] = options["out"] or Path("dist/dev" if dev else "dist")
    if not dev:
        return read_plan(options, settings)
    from kernel_builder.cli.dev import dev_plan
    from kernel_builder.spec.read import find_kernels

    for name in ("torch", "cuda", "backends", "only", "skip", "matrix", "missing"):
        options.pop(name)
    options["prune"] = True  # what an earlier run made for another GPU must not be loaded instead
    kernels = find_kernels(options.pop("kernels"), options.pop("kernels_dir"))
    return dev_plan(kernels, arch, reporter, nvccs=read_nvccs(options["toolkit"], settings))


def _executor(address: str | None) -> Executor | None:
    if address is None:
        return None
    from kernel_builder.compile.cluster.executor import connect

    return connect(address)


def _report_failures(built: Built, output: Output) -> int:
    """Say what went wrong, worst stage last; returns the exit code."""
    from kernel_builder.errors import CheckError, CompileError

    code = 0
    refusals = built.refusals()
    for message, hint in dict.fromkeys((finding.message, finding.hint) for finding in refusals):
        output.error(message, where=and_more([f.where for f in refusals if f.message == message]), hint=hint)
        code = CheckError.exit_code
    failed = built.result.failed
    for sentence in dict.fromkeys(failed.values()):
        where = and_more([label for label, own in failed.items() if own == sentence])
        output.error(sentence, where=where, hint=f"the log is {built.result.log}" if built.result.log else "")
        code = CompileError.exit_code
    return code
