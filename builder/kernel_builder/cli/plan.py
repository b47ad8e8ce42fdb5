"""``kernel-builder plan``."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernel_builder.cli.options import (
    KERNELS_DIR,
    epilog,
    kernels,
    quiet_and_json,
    read_output,
    read_selection,
    selection,
)
from kernel_loader.environment import dotted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from kernel_builder.console.output import Output
    from kernel_builder.plan.cells import Offer, Service
    from kernel_builder.plan.model import Plan, VariantPlan
    from kernel_builder.plan.selection import Selection
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.nvcc.provide import NvccSource
    from kernel_loader.format.versions import MajorMinor


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """A plan, the selection that it was made for, and the variants that are there already, by kernel."""

    plan: Plan
    selection: Selection
    existing: Mapping[str, tuple[Offer, ...]]


@click.command(
    epilog=epilog(
        "kernel-builder plan rmsnorm --cells",
        "kernel-builder plan --torch 2.9 --cuda 12.8 --matrix full",
        "kernel-builder plan rmsnorm --missing dist/hub/kernel-builder/rmsnorm@v1",
        codes=(2, 3),
    )
)
@kernels
@selection
@click.option("--cells", is_flag=True, help="Show what serves each torch build and GPU, and how well.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(["table", "github"]),
    default="table",
    help="github: one line of JSON, a CI matrix with one job per variant.",
)
@quiet_and_json
def plan(cells: bool, format_: str, **options: Any) -> None:  # noqa: FBT001 - click's signature
    """Show the variants that build would make, and stop."""
    settings, output = read_output(options)
    given = dict(options)
    asked = _ask(options, settings)
    for note in asked.plan.notes:
        output.note(f"{note.label}: {note.text}")
    if format_ == "github":
        output.lines([json.dumps({"include": [_job(variant, given) for variant in asked.plan.variants]})])
    elif cells:
        _show_cells(asked, output)
    else:
        output.result(
            data=asked.plan.to_json(),
            ids=[variant.label for variant in asked.plan.variants],
            lines=output.table(("VARIANT", "TORCH SDK", "TOOLKIT", "ARCHS"), [*map(_row, asked.plan.variants)]),
        )


def read_plan(options: dict[str, Any], settings: Settings) -> Plan:
    """The plan that a verb's options ask for; takes them out of ``options``, all but ``toolkit``."""
    return _ask(options, settings).plan


def _ask(options: dict[str, Any], settings: Settings) -> Asked:
    from kernel_builder.plan.plan import make_plan
    from kernel_builder.spec.read import find_kernels

    selected = read_selection(options)
    strategy, missing = options.pop("matrix"), options.pop("missing")
    found = find_kernels(options.pop("kernels"), options.pop("kernels_dir"))
    existing: dict[str, tuple[Offer, ...]] = {}
    if missing is not None:
        from kernel_builder.cli.existing import read_existing

        kernel, there = read_existing(missing, found)
        found, existing = (kernel,), {kernel.name: there}
    planned = make_plan(
        found,
        selection=selected,
        cuda_archs=settings.cuda_archs,
        strategy=strategy,
        nvccs=read_nvccs(options["toolkit"], settings),
        existing=existing if missing is not None else None,
    )
    return Asked(plan=planned, selection=selected, existing=existing)


def read_nvccs(toolkit: NvccSource, settings: Settings) -> tuple[MajorMinor, ...] | None:
    """Versions of the nvccs of another source than the lock; None for the lock's."""
    if toolkit == "locked":
        return None
    from kernel_builder.toolchain.nvcc.provide import offered

    return offered(toolkit, settings)


def _row(variant: VariantPlan) -> tuple[str, ...]:
    compilers = [str(variant.toolkit)] if variant.toolkit else []
    compilers += [f"nvcc {variant.nvcc}"] if variant.nvcc else []
    return (variant.label, str(variant.sdk), ", ".join(compilers) or "–", _archs(variant) or "–")


def _archs(variant: VariantPlan) -> str:
    return " ".join(map(str, sorted({arch for archs in variant.archs.values() for arch in archs})))


def _job(variant: VariantPlan, given: Mapping[str, Any]) -> dict[str, str]:
    """One job of a CI matrix: the variant, and the command that builds it alone."""
    kernel, name = variant.kernel, str(variant.variant)
    folder: Path = given["kernels_dir"]
    paths = [word for word in given["kernels"] if Path(word).resolve() == kernel.root]
    command = ["kernel-builder", "build", *(paths[:1] or [kernel.root.name]), "--only", name]
    command += ["--kernels-dir", str(folder)] if folder != KERNELS_DIR else []
    command += ["--matrix", given["matrix"]] if given["matrix"] != "cover" else []
    command += ["--toolkit", given["toolkit"]] if given["toolkit"] != "locked" else []
    return {
        "kernel": kernel.name,
        "variant": name,
        "torch": str(variant.variant.framework.version),
        "cuda": str(variant.variant.backend.version or ""),
        "only": f"{kernel.name}/{name}",
        "command": shlex.join(command),
    }


def _show_cells(asked: Asked, output: Output) -> None:
    from kernel_builder.plan.cells import summary
    from kernel_builder.plan.plan import services_of

    services = services_of(asked.plan, selection=asked.selection, existing=asked.existing)
    every = [service for of_kernel in services.values() for service in of_kernel]
    rows = [row for name, of_kernel in services.items() for row in _merged(name, of_kernel)]
    output.result(
        data={
            **asked.plan.to_json(),
            "cells": {name: [service.to_json() for service in s] for name, s in services.items()},
        },
        ids=[variant.label for variant in asked.plan.variants],
        lines=[
            *output.table(("KERNEL", "TORCH", "BUILD", "GPU", "VARIANT", "GRADE"), rows),
            "",
            summary(every),
        ],
    )


def _merged(name: str, services: Iterable[Service]) -> Iterator[tuple[str, ...]]:
    """Table rows: GPU classes with one answer share a row, then torches with the same rows do."""
    rows: dict[tuple[str, ...], list[str]] = {}
    by_build: dict[tuple[str, str], dict[tuple[str, str], list[str]]] = {}
    for service in services:
        cell = service.cell
        answers = by_build.setdefault((str(cell.torch), str(cell.backend)), {})
        answer = (service.variant or "–", _grade(service))
        answers.setdefault(answer, []).append("–" if cell.gpu is None else dotted(cell.gpu.capability))
    for (torch, build), answers in by_build.items():
        for (variant, grade), gpus in answers.items():
            rows.setdefault((build, " ".join(gpus), variant, grade), []).append(torch)
    yield from ((name, " ".join(torches), *row) for row, torches in rows.items())


def _grade(service: Service) -> str:
    if service.grade == "PTX":
        return f"PTX, driver {service.driver} or newer" if service.driver else "PTX"
    return f"unserved: {service.reason}" if service.grade == "unserved" else service.grade
