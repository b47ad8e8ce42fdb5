"""``kernel-builder store``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kernel_builder.cli.options import epilog, quiet_and_json, read_output
from kernel_builder.console.text import size

if TYPE_CHECKING:
    from pathlib import Path


@click.group(
    epilog=epilog(
        "kernel-builder store path",
        "kernel-builder store size",
        "du -sh $(kernel-builder store path)",
        codes=(2,),
    )
)
def store() -> None:
    """Look at the store of toolkits and compiled units."""


@store.command()
@quiet_and_json
def path(**options: Any) -> None:
    """Print the store's folder (KERNEL_BUILDER_CACHE)."""
    settings, output = read_output(options)
    output.result(data={"path": str(settings.store)}, ids=[str(settings.store)], lines=[str(settings.store)])


@store.command("size")
@quiet_and_json
def size_(**options: Any) -> None:
    """Print how many bytes each part of the store takes."""
    settings, output = read_output(options)
    folders = sorted(p for p in settings.store.iterdir() if p.is_dir()) if settings.store.is_dir() else []
    sizes = {folder.name: _bytes(folder) for folder in folders}
    rows = [(name, size(count)) for name, count in sizes.items()]
    output.result(
        data={"path": str(settings.store), "bytes": sizes},
        ids=[str(sum(sizes.values()))],
        lines=output.table(("PART", "SIZE"), [*rows, ("total", size(sum(sizes.values())))]),
    )


def _bytes(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())
