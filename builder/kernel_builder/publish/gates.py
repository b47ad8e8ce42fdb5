"""What a release must be able to show. Every refusal names the flag that overrides it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.errors import CheckError, PublishError
from kernel_builder.publish.content import source_digest_of
from kernel_builder.test.receipts import level_of, receipt_path

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from kernel_builder.check.model import Finding
    from kernel_builder.package.model import PackagedVariant
    from kernel_loader.format.metadata import Metadata

FLAGS = ("dirty", "untested", "api-change", "fewer")  # as ``--allow-<flag>``

# What ``check`` notes when nobody looked up the imports of a binding.
_UNPROVEN = "torch-symbols-unproven"


def check_gates(
    variants: Sequence[PackagedVariant],
    allowed: Collection[str],
    check: Callable[[PackagedVariant], Sequence[Finding]],
    *,
    published: Iterable[tuple[Metadata, str]],
) -> tuple[str, ...]:
    """Refuse variants that must not be released; returns those that go out untested because that was allowed.

    Args:
        variants: What would be published.
        allowed: Of ``FLAGS``, those that the user gave.
        check: Gives what ``check`` finds in a packaged variant.
        published: Variants that the branch has, with the level of their receipt.

    Raises:
        PublishError: One is a development build, from uncommitted sources, or without proof.
        CheckError: One does not keep its promises.
    """
    unproven = set()
    for variant in variants:
        _check_origin(variant, allowed)
        findings = check(variant)
        for finding in findings:
            if finding.severity == "error":
                raise CheckError(finding.message, where=finding.where, hint=finding.hint)
        if any(finding.code == _UNPROVEN for finding in findings):
            unproven.add(variant.name)
    untested = _untested(variants, unproven, {_code(m) for m, level in published if level == "A"})
    if untested and "untested" not in allowed:
        raise PublishError(
            f"Nothing proves that {_named(untested)}.",
            where=str(variants[0].path.parent),
            hint="`kernel-builder test` on a device makes receipts; --allow-untested publishes without",
        )
    return untested


def _check_origin(variant: PackagedVariant, allowed: Collection[str]) -> None:
    where = str(variant.path)
    if variant.metadata.builder.get("dev"):
        raise PublishError("It was built with --dev.", where=where, hint="build it without")
    if variant.metadata.dirty and "dirty" not in allowed:
        hint = "commit and build again, or --allow-dirty"
        raise PublishError("It was built from uncommitted sources.", where=where, hint=hint)


def _named(names: Sequence[str]) -> str:
    return f"{names[0]} works" if len(names) == 1 else f"{names[0]} and {len(names) - 1} more variants work"


def _untested(
    variants: Sequence[PackagedVariant], unproven: Collection[str], published: Collection[tuple[str, str]]
) -> tuple[str, ...]:
    """Variants without proof: neither tested (A), nor of proven imports and with the code of one that was (B)."""
    levels = {variant.name: level_of(receipt_path(variant)) for variant in variants}
    tested = {_code(v.metadata) for v in variants if levels[v.name] == "A"} | set(published)
    proven = {v.name for v in variants if levels[v.name] != "failed" and v.name not in unproven}
    return tuple(
        v.name
        for v in variants
        if levels[v.name] != "A" and not (v.name in proven and _code(v.metadata) in tested and _code(v.metadata)[0])
    )


def _code(metadata: Metadata) -> tuple[str, str]:
    """What decides a variant's device code: the sources, and the digests of the compilers, ``cpu`` for none."""
    builder = metadata.builder
    compilers = [builder[key].get("digest") for key in ("toolkit", "nvcc") if isinstance(builder.get(key), dict)]
    return source_digest_of(metadata), " ".join(map(str, compilers)) or "cpu"
