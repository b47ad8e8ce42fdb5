"""Options that several verbs share, and how help pages look."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from kernel_builder.console.output import Output
from kernel_builder.errors import EXIT_CODES
from kernel_builder.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel_builder.plan.selection import Selection

KERNELS_DIR = Path("kernels-src")

Command = TypeVar("Command", bound="Callable[..., Any]")


def _codes(*codes: int) -> str:
    return "\b\nExit codes:\n" + "\n".join(f"  {code:<4} {EXIT_CODES[code]}" for code in (0, *codes))


def epilog(*examples: str, codes: tuple[int, ...]) -> str:
    """The end of a help page: three real examples and the verb's exit codes."""
    return "\b\nExamples:\n" + "\n".join(f"  {example}" for example in examples) + "\n\n" + _codes(*codes)


GROUP_EPILOG = epilog(
    "kernel-builder plan",
    "kernel-builder build rmsnorm --stage dist/hub",
    "kernel-builder test rmsnorm --device cpu",
    codes=tuple(code for code in EXIT_CODES if code),
)


class Ordered(click.Group):
    """Lists verbs in the order of the stages."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Names in the order they were added."""
        return list(self.commands)


def _chain(*decorators: Callable[[Command], Command]) -> Callable[[Command], Command]:
    def apply(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


def quiet_and_json(command: Command) -> Command:
    """``-q`` and ``--json``."""
    return _chain(
        click.option("-q", "--quiet", is_flag=True, help="Print ids only, and no progress."),
        click.option("--json", "as_json", is_flag=True, help="Print one JSON object."),
    )(command)


def kernels(command: Command) -> Command:
    """Kernel names and the folder they lie in."""
    return _chain(
        click.argument("kernels", nargs=-1, metavar="[KERNEL]..."),
        click.option(
            "--kernels-dir",
            type=click.Path(path_type=Path),
            default=KERNELS_DIR,
            show_default=True,
            help="Folder of kernel folders.",
        ),
    )(command)


def selection(command: Command) -> Command:
    """Which variants: the same options wherever variants are chosen."""
    return _chain(
        click.option("--torch", multiple=True, metavar="2.9,2.13", help="Only what these torch versions need."),
        click.option("--cuda", multiple=True, metavar="12.6,13.0", help="Only what these CUDA builds of torch need."),
        click.option("--backend", "backends", multiple=True, metavar="cuda,cpu", help="Only these backends."),
        click.option("--only", multiple=True, metavar="GLOB", help="Only variants whose name matches; repeatable."),
        click.option("--skip", multiple=True, metavar="GLOB", help="Not variants whose name matches; repeatable."),
        click.option(
            "--matrix",
            type=click.Choice(["cover", "full"]),
            default="cover",
            show_default=True,
            help="cover: the fewest variants that serve everything; full: one per torch build.",
        ),
        click.option("--missing", metavar="HUB/ORG/NAME@vN", help="Only what this version in a folder hub lacks."),
        click.option(
            "--toolkit",
            type=click.Choice(["locked", "system", "archive"]),
            default="locked",
            show_default=True,
            help="Where nvcc comes from, for kernels whose .cu files have host code.",
        ),
    )(command)


def read_selection(options: dict[str, Any]) -> Selection:
    """Take the selection's options out of a verb's options."""
    from kernel_builder.plan.selection import Selection

    return Selection.parse(**{name: options.pop(name) for name in ("torch", "cuda", "backends", "only", "skip")})


def read_output(options: dict[str, Any]) -> tuple[Settings, Output]:
    """Settings of the environment, and how the verb speaks."""
    settings = Settings.from_environment()
    return settings, Output(as_json=options.pop("as_json"), quiet=options.pop("quiet"), color=settings.color)
