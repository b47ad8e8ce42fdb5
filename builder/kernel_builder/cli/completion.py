"""``kernel-builder completion``."""

from __future__ import annotations

import click

from kernel_builder.cli.options import epilog


@click.command(
    epilog=epilog(
        'eval "$(kernel-builder completion bash)"',
        "kernel-builder completion zsh > ~/.zfunc/_kernel-builder",
        "kernel-builder completion fish > ~/.config/fish/completions/kernel-builder.fish",
        codes=(2,),
    )
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print a shell's completion script."""
    from click.shell_completion import get_completion_class

    writer = get_completion_class(shell)
    assert writer is not None
    click.echo(writer(context.find_root().command, {}, "kernel-builder", "_KERNEL_BUILDER_COMPLETE").source())
