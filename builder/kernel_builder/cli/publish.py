"""``kernel-builder publish``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kernel_builder.cli.options import epilog, kernels, quiet_and_json, read_output
from kernel_builder.console.text import counted

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from kernel_builder.check.model import Finding
    from kernel_builder.console.output import Output
    from kernel_builder.package.model import PackagedVariant
    from kernel_builder.publish.model import Outcome
    from kernel_builder.publish.release import Release
    from kernel_builder.settings import Settings
    from kernel_builder.spec.model import Kernel

_FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    epilog=epilog(
        "kernel-builder publish rmsnorm --branch v1 --to /srv/hub",
        "kernel-builder publish rmsnorm --to /srv/hub --dry-run",
        "kernel-builder publish rmsnorm --to /srv/hub --add-missing",
        codes=(2, 3, 6, 7, 8),
    )
)
@kernels
@click.option("--branch", metavar="vN", help="Only kernels whose build.toml says version N; default: each to its own.")
@click.option("--to", "target", required=True, metavar="FOLDER", help="Folder hub to publish into.")
@click.option("--out", type=_FOLDER, default=Path("dist"), show_default=True, help="Where packaged variants are.")
@click.option("--add-missing", is_flag=True, help="Add variants that the branch lacks, and touch nothing else.")
@click.option("--dry-run", is_flag=True, help="Say what would be added, replaced and removed, and stop.")
@click.option("--allow-dirty", is_flag=True, help="Publish what was built from uncommitted sources.")
@click.option("--allow-untested", is_flag=True, help="Publish variants that nothing proves to work.")
@click.option("--allow-api-change", is_flag=True, help="Change the public API of a released version.")
@click.option("--allow-fewer", is_flag=True, help="Drop variants that the branch has and this release lacks.")
@quiet_and_json
def publish(**options: Any) -> None:
    """Move kernels' version branches to what is packaged.

    A branch moves in one step or not at all. Hubs are folders so far; other targets are not there yet.
    """
    from kernel_builder.publish.release import publish as publish_release
    from kernel_builder.spec.read import find_kernels

    settings, output = read_output(options)
    hub, branch, dry_run = _hub(options.pop("target")), options.pop("branch"), options.pop("dry_run")
    found = find_kernels(options.pop("kernels"), options.pop("kernels_dir"))
    releases = _releases(_of_branch(found, branch, output), branch, settings, **options)
    for release in releases:
        output.note(f"{release.root.name} → {release.repo_id}@{release.branch} in {hub}")
    if len(releases) > 1 and not dry_run:
        # A refusal of the last must come before the first has moved.
        for release in releases:
            publish_release(release, hub, dry_run=True)
    outcomes = [publish_release(release, hub, dry_run=dry_run) for release in releases]
    output.result(
        data={"hub": str(hub), "published": [outcome.to_json() for outcome in outcomes]},
        ids=[f"{outcome.repo}@{outcome.branch} {outcome.commit}" for outcome in outcomes],
        lines=[line for outcome in outcomes for line in _lines(outcome)],
    )


def _hub(target: str) -> Path:
    from kernel_builder.errors import UsageError

    if "://" in target:
        raise UsageError(
            f"{target} cannot be published to: hubs are folders so far.", where="--to", hint="name a folder"
        )
    if Path(target).exists() and not Path(target).is_dir():
        raise UsageError(f"{target} is no folder.", where="--to", hint="name a folder hub, new or not")
    return Path(target).absolute()


def _of_branch(found: Sequence[Kernel], branch: str | None, output: Output) -> list[Kernel]:
    """Kernels of this version; says which are left out."""
    from kernel_builder.errors import NothingSelectedError, UsageError
    from kernel_loader.format.versions import branch_of, version_of

    if branch is None:
        return list(found)
    if version_of(branch) is None:
        raise UsageError(f"{branch!r} is no version branch.", where="--branch", hint="write v1, v2, v3, …")
    chosen = [kernel for kernel in found if branch_of(kernel.version) == branch]
    for kernel in found:
        if kernel not in chosen:
            output.note(f"{kernel.name} is left out: its build.toml says version {kernel.version}")
    if not chosen:
        raise NothingSelectedError(f"No kernel has version {version_of(branch)}.", where="--branch")
    return chosen


def _releases(kernels: Sequence[Kernel], branch: str | None, settings: Settings, **options: Any) -> list[Release]:
    from kernel_builder.publish.gates import FLAGS
    from kernel_builder.publish.release import Release
    from kernel_builder.publish.stage import target_of

    check = _checker(settings)
    targets = [target_of(kernel) for kernel in kernels]
    return [
        Release(
            root=options["out"] / kernel.name,
            repo_id=repo_id,
            branch=branch or own,
            version=kernel.version,
            add_missing=options["add_missing"],
            allowed=frozenset(flag for flag in FLAGS if options[f"allow_{flag.replace('-', '_')}"]),
            check=check,
        )
        for kernel, (repo_id, own) in zip(kernels, targets, strict=True)
    ]


def _checker(settings: Settings) -> Callable[[PackagedVariant], Sequence[Finding]]:
    """Checks a variant once, however often its release is planned."""
    from kernel_builder.check.check import check_variant
    from kernel_builder.toolchain.lock import read_lock
    from kernel_builder.toolchain.symbols.tables import stored

    symbols = stored(read_lock(), settings.store)
    known: dict[str, Sequence[Finding]] = {}

    def check(variant: PackagedVariant) -> Sequence[Finding]:
        if variant.digest not in known:
            known[variant.digest] = check_variant(variant.path, imports=False, symbols=symbols)
        return known[variant.digest]

    return check


def _lines(outcome: Outcome) -> list[str]:
    where = f"{outcome.repo}@{outcome.branch}"
    if outcome.status == "no-changes":
        return [f"{where} already holds this"]
    if outcome.status == "dry-run":
        return [*(f"{operation:<8}{path}" for operation, path in outcome.operations), f"{where} would change"]
    lines = [f"{where} is at {outcome.commit[:12]}: {outcome.added} files added, {outcome.removed} removed"]
    if outcome.second_group:
        lines.append(f"second source-digest group: {outcome.second_group}")
    if outcome.untested:
        lines.append(f"{counted(len(outcome.untested), 'variant')} untested")
    return lines
