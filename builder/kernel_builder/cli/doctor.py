"""``kernel-builder doctor``."""

from __future__ import annotations

from typing import Any

import click

from kernel_builder.cli.options import epilog, quiet_and_json, read_output
from kernel_builder.console.progress import reporting

_MARKS = {"ok": "ok", "absent": "–", "problem": "PROBLEM"}


@click.command(
    epilog=epilog(
        "kernel-builder doctor",
        "kernel-builder doctor --offline",
        "kernel-builder doctor --json",
        codes=(4,),
    )
)
@click.option("--offline", is_flag=True, help="Ask no index.")
@quiet_and_json
def doctor(offline: bool, **options: Any) -> int:  # noqa: FBT001 - click hands flags over by name
    """Examine this machine for what builds need."""
    from kernel_builder.errors import ToolchainError
    from kernel_builder.toolchain.doctor import examine

    settings, output = read_output(options)
    with reporting(output) as reporter:
        conditions = examine(settings, reporter, network=not offline)
    problems = [condition for condition in conditions if condition.state == "problem"]
    rows = [(_MARKS[c.state], c.topic, f"{c.message} {f'– {c.hint}' if c.hint else ''}".rstrip()) for c in conditions]
    output.result(
        data={"conditions": [condition.to_json() for condition in conditions]},
        ids=[condition.topic for condition in problems],
        lines=output.table(("STATE", "TOPIC", "FOUND"), rows),
    )
    return ToolchainError.exit_code if problems else 0
