"""``kernel-builder explain``."""

from __future__ import annotations

import click

from kernel_builder.cli.options import epilog


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []},
    epilog=epilog("kernel-builder explain --help", codes=(2, 9)),
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def explain(arguments: tuple[str, ...]) -> int:
    """Say which variant loads here, and why not the others."""
    from kernel_loader.__main__ import main

    return main(["explain", *arguments])
