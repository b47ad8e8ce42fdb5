"""``kernel-builder init``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kernel_builder.cli.options import epilog, quiet_and_json, read_output


@click.command(
    epilog=epilog(
        "kernel-builder init my-kernel",
        "kernel-builder init kernels-src/my-kernel --repo-id my-org/my-kernel",
        "kernel-builder init my-kernel && kernel-builder build ./my-kernel --backend cpu",
        codes=(2,),
    )
)
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--repo-id", default="", metavar="ORG/NAME", help="Repository that the kernel will be published to.")
@quiet_and_json
def init(folder: Path, repo_id: str, **options: Any) -> None:
    """Write a new kernel that builds and passes its tests."""
    from kernel_builder.scaffold import scaffold

    _, output = read_output(options)
    files = [str(path) for path in scaffold(folder, repo_id=repo_id)]
    output.result(
        data={"folder": str(folder), "files": files},
        ids=files,
        lines=[*files, "", f"next: kernel-builder build {folder} --backend cpu"],
    )
