"""``kernel-builder explain``."""

from __future__ import annotations

import sys

import click

from kernel_builder.cli.options import epilog
from kernel_builder.processes import run


@click.command(
    context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []},
    epilog=epilog("kernel-builder explain --help", codes=(2, 9)),
)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED)
def explain(arguments: tuple[str, ...]) -> int:
    """Say which variant loads here, and why not the others."""
    # A process of its own: it imports torch, which a builder never does.
    done = run([sys.executable, "-m", "kernel_loader", "explain", *arguments])
    click.echo(done.stdout, nl=False)
    click.echo(done.stderr, nl=False, err=True)
    return done.status
