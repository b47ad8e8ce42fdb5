"""Entry point of ``kernel-builder``: the border where every failure becomes a sentence and an exit code."""

from __future__ import annotations

import sys
import traceback
from typing import TYPE_CHECKING

from kernel_builder.console.output import Output
from kernel_builder.errors import KernelBuilderError, ToolchainError

if TYPE_CHECKING:
    from collections.abc import Sequence

_INTERRUPTED = 130


def main() -> None:
    """Run the command line of this process."""
    sys.exit(run(sys.argv[1:]))


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit code."""
    try:
        return _run(arguments)
    except KernelBuilderError as error:
        _traceback_if_asked()
        Output().error(error.message, where=error.where, hint=error.hint, detail=error.detail)
        return error.exit_code
    except KeyboardInterrupt:
        Output().error("Interrupted.")
        return _INTERRUPTED
    except OSError as error:
        _traceback_if_asked()
        Output().error(f"{error.strerror or error}.", where=str(error.filename or ""))
        return KernelBuilderError.exit_code
    except Exception as error:
        _traceback_if_asked()
        hint = "KERNEL_BUILDER_DEBUG=1 shows the traceback; please report it"
        Output().error(f"This is a bug in kernel-builder: {type(error).__name__}: {error}.", hint=hint)
        return KernelBuilderError.exit_code


def _run(arguments: Sequence[str]) -> int:
    try:
        import click

        from kernel_builder.cli.commands import commands
    except ImportError as error:
        raise missing_extra(error) from error
    try:
        answer = commands.main(list(arguments), prog_name="kernel-builder", standalone_mode=False)
    except ImportError as error:
        if (error.name or "").partition(".")[0] in ("kernel_builder", "kernel_loader"):
            raise
        raise missing_extra(error) from error
    except click.ClickException as error:
        command = error.ctx.command_path if isinstance(error, click.UsageError) and error.ctx else "kernel-builder"
        Output().error(error.format_message(), hint=f"{command} --help")
        return error.exit_code
    except click.Abort as error:
        raise KeyboardInterrupt from error
    return answer if isinstance(answer, int) else 0


def missing_extra(error: ImportError) -> ToolchainError:
    """The loader can be installed alone; building needs more packages."""
    return ToolchainError(
        f"Building needs the Python package {error.name or error}, which is not installed.",
        where=sys.executable,
        hint="pip install 'kernel-builder[build]'",
    )


def _traceback_if_asked() -> None:
    from kernel_builder.settings import Settings

    try:
        if Settings.from_environment().debug:
            traceback.print_exc()
    except (KernelBuilderError, ImportError):
        return
