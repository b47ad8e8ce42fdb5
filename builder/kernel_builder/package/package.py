"""Writes ``dist/<kernel>`` from checked artefacts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.check.report import errors
from kernel_builder.package.archive import remove_folder, tar_bytes, write_file, write_folder, writing
from kernel_builder.package.card import render_card
from kernel_builder.package.describe import describe
from kernel_builder.package.layout import archive_files, variant_files
from kernel_builder.package.model import Distribution, PackagedVariant
from kernel_builder.package.provenance import git_state, provenance_of
from kernel_builder.package.read import SOURCE_ARCHIVE
from kernel_builder.spec.identity import source_digest
from kernel_loader.format.digest import METADATA, variant_digest
from kernel_loader.format.metadata import dump_metadata

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from kernel_builder.check.model import Finding
    from kernel_builder.compile.model import Artefact
    from kernel_builder.package.provenance import GitState
    from kernel_builder.settings import Settings
    from kernel_builder.spec.model import Kernel
    from kernel_builder.toolchain.model import Toolchain


def package(
    kernel: Kernel,
    artefacts: Sequence[Artefact],
    toolchain: Toolchain,
    findings: Mapping[str, Sequence[Finding]],
    *,
    out: Path,
    settings: Settings,
    prune: bool = False,
) -> Distribution:
    """Write the variants of one kernel to ``out/<kernel>``; each folder is replaced whole or left as it was.

    Args:
        kernel: The kernel as it was read.
        artefacts: The kernel's libraries. Those with a finding of severity ``error`` are left out.
        toolchain: What they were compiled with; its digests go into metadata.json.
        findings: Variant label → what check found.
        out: The dist folder.
        settings: Time stamp of archives, and PATH for finding git.
        prune: Remove variants that this call did not write. Otherwise they stay, as part of an earlier run.

    Raises:
        SpecError: A source changed meanwhile, or CARD.md has a fault.
    """
    root = out.absolute() / kernel.name
    state = git_state([kernel.root, *([kernel.common] if kernel.common else [])], settings)
    sound = [a for a in artefacts if not errors(findings.get(a.plan.label, ()))]
    with writing(root):
        variants = tuple(_write_variant(a, toolchain, root, state) for a in sorted(sound, key=lambda a: a.plan.label))
        if prune:
            _prune(root, {variant.name for variant in variants})
        archive = tar_bytes(archive_files(kernel), epoch=settings.source_date_epoch)
        write_file(root / SOURCE_ARCHIVE, archive)
        card = render_card(kernel, variants)
        if card is not None:
            write_file(root / "README.md", card.encode())
    return Distribution(
        kernel=kernel,
        root=root,
        variants=variants,
        source_digest=source_digest(kernel),
        dirty=None if state is None else state.dirty,
    )


def _write_variant(artefact: Artefact, toolchain: Toolchain, root: Path, state: GitState | None) -> PackagedVariant:
    files = variant_files(artefact)
    metadata = describe(
        artefact,
        toolchain,
        files,
        source_digest=source_digest(artefact.plan.kernel),
        provenance=provenance_of(state),
    )
    data = dump_metadata(metadata)
    name = str(artefact.plan.variant)
    folder = root / "build" / name
    write_folder(root, folder, {**files, METADATA: data})
    return PackagedVariant(name=name, path=folder, metadata=metadata, digest=variant_digest(data))


def _prune(root: Path, keep: set[str]) -> None:
    for folder in sorted((root / "build").glob("*")):
        if folder.is_dir() and folder.name not in keep:
            remove_folder(root, folder)
