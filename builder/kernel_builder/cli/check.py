"""``kernel-builder check``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from kernel_builder.cli.options import epilog, quiet_and_json, read_output


@click.command(
    epilog=epilog(
        "kernel-builder check dist/rmsnorm",
        "kernel-builder check dist/rmsnorm/build/torch-stable-abi210-cu128-x86_64-linux",
        "kernel-builder check dist/rmsnorm --json",
        codes=(2, 6),
    )
)
@click.argument("path", type=click.Path(path_type=Path, exists=True, file_okay=False))
@quiet_and_json
def check(path: Path, **options: Any) -> int:
    """Check packaged variants.

    PATH is a variant folder, a build folder, or dist/KERNEL.
    """
    from kernel_builder.check.check import check_variant
    from kernel_builder.check.report import errors
    from kernel_builder.errors import CheckError
    from kernel_builder.package.read import variant_folders
    from kernel_builder.toolchain.lock import read_lock
    from kernel_builder.toolchain.symbols.tables import stored

    settings, output = read_output(options)
    symbols = stored(read_lock(), settings.store)
    findings = {folder: check_variant(folder, symbols=symbols) for folder in variant_folders(path)}
    refused = [folder for folder, found in findings.items() if errors(found)]
    rows = [(f.severity, f.code, f.where, f.message) for found in findings.values() for f in found]
    verdict = f"{len(findings) - len(refused)} of {len(findings)} variants keep their promises"
    output.result(
        data={
            "variants": [
                {"path": str(folder), "ok": folder not in refused, "findings": [f.to_json() for f in found]}
                for folder, found in findings.items()
            ]
        },
        ids=[str(folder) for folder in refused],
        lines=[*(output.table(("SEVERITY", "CODE", "WHERE", "FINDING"), rows) if rows else []), verdict],
    )
    return CheckError.exit_code if refused else 0
