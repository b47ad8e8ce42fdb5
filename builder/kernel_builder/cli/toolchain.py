"""``kernel-builder toolchain``."""

from __future__ import annotations

from contextlib import closing
from typing import TYPE_CHECKING, Any

import click

from kernel_builder.cli.options import epilog, quiet_and_json, read_output
from kernel_builder.console.progress import reporting
from kernel_builder.reporting import SilentReporter

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.lock import LockedItem


@click.group(
    epilog=epilog(
        "kernel-builder toolchain list",
        "kernel-builder toolchain where nvcc-13.0",
        "kernel-builder toolchain lock torch-2.13",
        codes=(2, 4),
    )
)
def toolchain() -> None:
    """Look at toolkits, nvccs and torch SDKs, and pin others."""


@toolchain.command("list")
@quiet_and_json
def list_(**options: Any) -> None:
    """List what the lock pins, and what of it is in the store."""
    settings, output = read_output(options)
    items = _items(settings)
    rows = [(name, item.label, item.digest[:12], str(folder or "–")) for name, (item, folder) in items.items()]
    output.result(
        data={"items": [_json(name, item, folder) for name, (item, folder) in items.items()]},
        ids=list(items),
        lines=output.table(("NAME", "RELEASE", "DIGEST", "FOLDER"), rows),
    )


@toolchain.command()
@click.argument("name")
@quiet_and_json
def where(name: str, **options: Any) -> int:
    """Print the folder of NAME, such as 12.8, torch-2.13 or nvcc-13.0."""
    from kernel_builder.errors import ToolchainError, UsageError
    from kernel_builder.spec.faults import nearest

    settings, output = read_output(options)
    items = _items(settings)
    if name not in items:
        raise UsageError(f"The lock has no {name!r}.", hint=nearest(name, list(items)))
    item, folder = items[name]
    if folder is None:
        raise ToolchainError(
            f"{item.label} is not in the store yet.", where=str(settings.store), hint="a build fetches it"
        )
    output.result(data=_json(name, item, folder), ids=[str(folder)], lines=[str(folder)])
    return 0


@toolchain.command()
@click.argument("names", nargs=-1, metavar="[NAME]...")
@quiet_and_json
def lock(names: tuple[str, ...], **options: Any) -> None:
    """Read the wheels of NAMES (12.8, torch-2.13, nvcc-13.0; none = all) and pin what they hold in the lock file."""
    from kernel_builder.toolchain.relock import relock

    settings, output = read_output(options)
    with reporting(output) as reporter:
        renewed = relock(names, settings, reporter)
    labels = [item.label for item in renewed.items.values()]
    output.result(data={"items": labels}, ids=labels, lines=[f"pinned {label}" for label in labels])


def _items(settings: Settings) -> dict[str, tuple[LockedItem, Path | None]]:
    """Name → item and its folder, None when it is not in the store."""
    from kernel_builder.toolchain.lock import read_lock
    from kernel_builder.toolchain.supply import Supply

    named = read_lock().items
    with closing(Supply(settings, SilentReporter())) as supply:
        folders = {name: supply.folder_of(item) for name, item in named.items()}
    return {name: (item, folders[name] if folders[name].is_dir() else None) for name, item in named.items()}


def _json(name: str, item: LockedItem, folder: Path | None) -> dict[str, Any]:
    return {
        "name": name,
        "release": item.release,
        "digest": item.digest,
        "folder": None if folder is None else str(folder),
    }
