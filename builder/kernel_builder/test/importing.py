"""The least that can be proven about a packaged variant: it keeps its promises as a folder, and it imports."""

from __future__ import annotations

from importlib import metadata
from typing import TYPE_CHECKING

from kernel_builder.check.memory import remembered
from kernel_builder.check.report import errors
from kernel_builder.check.smoke import obstacle
from kernel_builder.package.archive import write_file
from kernel_builder.test.receipts import level_of, receipt_path
from kernel_loader.format.tables import write_json
from kernel_loader.format.variants import parse

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from kernel_builder.check.model import Finding
    from kernel_builder.package.model import Distribution, PackagedVariant
    from kernel_builder.reporting import Reporter
    from kernel_builder.toolchain.model import TorchSymbols
    from kernel_loader.format.versions import MajorMinor


def import_variants(
    distribution: Distribution, store: Path, reporter: Reporter
) -> Iterator[tuple[str, tuple[Finding, ...]]]:
    """Check, as packaged, every variant that has no receipt yet; yields variant name and findings.

    One that imports gets a receipt of level C, so that it is not imported again; where no fitting torch is installed,
    a finding says so.
    """
    from kernel_builder.toolchain.lock import read_lock
    from kernel_builder.toolchain.symbols.tables import stored

    symbols = stored(read_lock(), store)
    for index, variant in enumerate(distribution.variants):
        path = receipt_path(variant)
        if level_of(path) != "none":
            continue
        reporter.progress("importing", index, len(distribution.variants), variant.name)
        findings = _findings(variant, symbols, store)
        if not errors(findings) and not any(finding.code == "not-imported" for finding in findings):
            write_file(path, write_json(_receipt(variant)))
        yield variant.name, findings
    reporter.progress("importing", len(distribution.variants), len(distribution.variants))


def _findings(variant: PackagedVariant, symbols: Mapping[MajorMinor, TorchSymbols], store: Path) -> tuple[Finding, ...]:
    def check() -> tuple[Finding, ...]:
        from kernel_builder.check.check import check_variant

        return check_variant(variant.path, symbols=symbols)

    why_not = obstacle(parse(variant.name))
    # What an import says depends on more than the folder, so it is never taken from memory.
    tables = sorted(known.root.name for known in symbols.values())
    return remembered(store, ("variant", variant.digest, why_not, *tables), check) if why_not else check()


def _receipt(variant: PackagedVariant) -> dict[str, object]:
    return {
        "version": 1,
        "variant": variant.name,
        "digest": variant.digest,
        "level": "C",
        "torch": metadata.version("torch"),
        "result": "passed",
        "commit": variant.metadata.commit,
    }
