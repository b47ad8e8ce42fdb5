"""``kernel-builder build``: plan → toolchain → compile → check → package → stage."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernel_builder.cli.options import epilog, kernels, quiet_and_json, read_output, selection
from kernel_builder.cli.plan import read_plan
from kernel_builder.console.progress import reporting

if TYPE_CHECKING:
    from kernel_builder.cli.pipeline import Built
    from kernel_builder.console.output import Output

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    epilog=epilog(
        "kernel-builder build",
        "kernel-builder build rmsnorm --stage dist/hub",
        "kernel-builder build flash-attn2 --only '*-cu130-*' --jobs 4 --keep-going",
        codes=(2, 3, 4, 5, 6, 8),
    )
)
@kernels
@selection
@click.option("--out", type=_FOLDER, default=Path("dist"), show_default=True, help="Where packaged variants go.")
@click.option("--stage", "hub", type=_FOLDER, help="Also stage the kernels into this folder hub.")
@click.option("--jobs", type=click.IntRange(min=1), help="Parallel compile steps; default MAX_JOBS, bounded by memory.")
@click.option("--keep-going", is_flag=True, help="Build the other variants when one fails.")
@click.option("--prune", is_flag=True, help="Remove packaged variants of these kernels that this run does not make.")
@quiet_and_json
def build(**options: Any) -> int:
    """Build, check and package variants."""
    from kernel_builder.cli.pipeline import run_pipeline

    started = time.monotonic()
    settings, output = read_output(options)
    planned = read_plan(options, settings)
    with reporting(output) as reporter:
        for note in planned.notes:
            reporter.note(f"{note.label}: {note.text}")
        built = run_pipeline(planned, settings, reporter, **options)
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


def _report_failures(built: Built, output: Output) -> int:
    """Say what went wrong, worst stage last; returns the exit code."""
    from kernel_builder.errors import CheckError, CompileError

    code = 0
    for finding in built.refusals():
        output.error(finding.message, where=finding.where, hint=finding.hint)
        code = CheckError.exit_code
    for label, sentence in built.result.failed.items():
        output.error(sentence, where=label, hint=f"the log is {built.result.log}" if built.result.log else "")
        code = CompileError.exit_code
    return code
