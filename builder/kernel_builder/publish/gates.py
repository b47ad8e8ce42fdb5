"""What a release must be able to show. Every refusal names the flag that overrides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.errors import CheckError, PublishError
from kernel_builder.test.receipts import level_of, receipt_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from kernel_builder.check.model import Finding
    from kernel_builder.package.model import PackagedVariant
    from kernel_loader.format.metadata import Metadata

FLAGS = ("dirty", "untested", "api-change", "fewer")  # as ``--allow-<flag>``


def check_gates(
    variants: Sequence[PackagedVariant],
    allowed: Collection[str],
    check: Callable[[PackagedVariant], Sequence[Finding]],
    *,
    proven: Mapping[str, str],
) -> tuple[str, ...]:
    """Refuse variants that must not be released; returns those that go out untested because that was allowed.

    Args:
        variants: What would be published.
        allowed: Of ``FLAGS``, those that the user gave.
        check: Gives what ``check`` finds in a packaged variant.
        proven: Device code that is proven already: the toolkit of a published variant → its receipt level.

    Raises:
        PublishError: One is a development build, from uncommitted sources, or without proof.
        CheckError: One does not keep its promises.
    """
    for variant in variants:
        where = str(variant.path)
        if variant.metadata.builder.get("dev"):
            raise PublishError("It was built with --dev.", where=where, hint="build it without")
        if variant.metadata.dirty and "dirty" not in allowed:
            hint = "commit and build again, or --allow-dirty"
            raise PublishError("It was built from uncommitted sources.", where=where, hint=hint)
        found = [finding for finding in check(variant) if finding.severity == "error"]
        if found:
            raise CheckError(found[0].message, where=found[0].where, hint=found[0].hint)
    untested = untested_of(variants, proven)
    if untested and "untested" not in allowed:
        raise PublishError(
            f"Nothing proves that {_named(untested)}.",
            where=str(variants[0].path.parent),
            hint="`kernel-builder test` on a device makes receipts; --allow-untested publishes without",
        )
    return untested


def _named(names: Sequence[str]) -> str:
    return f"{names[0]} works" if len(names) == 1 else f"{names[0]} and {len(names) - 1} more variants work"


def untested_of(variants: Sequence[PackagedVariant], proven: Mapping[str, str]) -> tuple[str, ...]:
    """Variants without proof: neither tested themselves (A), nor with the device code of one that was (B)."""
    levels = {variant.name: level_of(receipt_path(variant)) for variant in variants}
    tested = {toolkit_of(variant.metadata) for variant in variants if levels[variant.name] == "A"} | set(proven)
    return tuple(
        variant.name
        for variant in variants
        if levels[variant.name] != "A"
        and (levels[variant.name] == "failed" or toolkit_of(variant.metadata) not in tested)
    )


def toolkit_of(metadata: Metadata) -> str:
    """Which device code a variant has: the digests of its compilers, ``cpu`` for none."""
    builder = metadata.builder
    compilers = [builder[key]["digest"] for key in ("toolkit", "nvcc") if isinstance(builder.get(key), dict)]
    return " ".join(map(str, compilers)) or "cpu"
