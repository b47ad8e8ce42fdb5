"""``kernel-builder plan``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from kernel_builder.cli.options import epilog, kernels, quiet_and_json, read_output, read_selection, selection

if TYPE_CHECKING:
    from kernel_builder.plan.model import Plan, VariantPlan
    from kernel_builder.settings import Settings


@click.command(
    epilog=epilog(
        "kernel-builder plan",
        "kernel-builder plan rmsnorm --backend cuda",
        "kernel-builder plan --only '*-cu130-*' --json",
        codes=(2, 3),
    )
)
@kernels
@selection
@quiet_and_json
def plan(**options: Any) -> None:
    """Show the variants that build would make, and stop."""
    settings, output = read_output(options)
    planned = read_plan(options, settings)
    for note in planned.notes:
        output.note(f"{note.label}: {note.text}")
    rows = [_row(variant) for variant in planned.variants]
    output.result(
        data=planned.to_json(),
        ids=[variant.label for variant in planned.variants],
        lines=output.table(("VARIANT", "TORCH SDK", "TOOLKIT", "ARCHS"), rows),
    )


def read_plan(options: dict[str, Any], settings: Settings) -> Plan:
    """The plan that a verb's kernel and selection options ask for."""
    from kernel_builder.plan.plan import make_plan
    from kernel_builder.spec.read import find_kernels

    selected = read_selection(options)
    found = find_kernels(options.pop("kernels"), options.pop("kernels_dir"))
    return make_plan(found, selection=selected, cuda_archs=settings.cuda_archs)


def _row(variant: VariantPlan) -> tuple[str, ...]:
    archs = dict.fromkeys(str(arch) for archs in variant.archs.values() for arch in archs)
    return (variant.label, str(variant.sdk), str(variant.toolkit or "–"), " ".join(archs) or "–")
