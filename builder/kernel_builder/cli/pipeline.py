"""The stages behind ``build``, one after the other, and what they leave."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from kernel_builder.check.memory import remembered
from kernel_builder.check.report import errors
from kernel_builder.compile.build import build
from kernel_builder.console.text import and_more, counted, size
from kernel_builder.package.archive import remove_folder
from kernel_builder.package.package import package
from kernel_builder.publish.stage import stage, target_of
from kernel_builder.spec.identity import source_digest
from kernel_builder.test.importing import import_variants
from kernel_builder.test.receipts import level_of, receipt_path
from kernel_builder.toolchain.provision import provision

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from kernel_builder.check.model import Finding
    from kernel_builder.compile.model import Artefact, BuildResult
    from kernel_builder.compile.run import Executor
    from kernel_builder.package.model import Distribution, PackagedVariant
    from kernel_builder.plan.model import Plan
    from kernel_builder.publish.model import Outcome
    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.model import Toolchain
    from kernel_builder.toolchain.nvcc.provide import NvccSource


@dataclass(frozen=True, kw_only=True, slots=True)
class Built:
    """Everything one run of ``build`` made. ``findings`` is by variant label; ``hub`` is where it was staged."""

    toolchain: Toolchain
    result: BuildResult
    findings: Mapping[str, Sequence[Finding]]
    distributions: tuple[Distribution, ...]
    outcomes: tuple[Outcome, ...]
    hub: Path | None

    def refusals(self) -> list[Finding]:
        """Findings that kept a variant from being packaged."""
        return [f for findings in self.findings.values() for f in findings if f.severity == "error"]

    def failed(self) -> dict[str, str]:
        """Label of every variant that was planned and is not there now → the stage that stopped it."""
        refused = [label for label, findings in self.findings.items() if errors(findings)]
        return dict.fromkeys(self.result.failed, "compile") | dict.fromkeys(refused, "check")

    def rows(self) -> list[tuple[str, ...]]:
        """Table rows: variant, archs, size, digest, receipt; those that failed come last."""
        made = [_row(d, variant) for d in self.distributions for variant in d.variants]
        return made + [(label, "–", "–", "–", f"FAILED: {stage}") for label, stage in self.failed().items()]

    def summary(self, seconds: float) -> Iterator[str]:
        """What it cost, where it went, and how to load it."""
        made, failed = sum(len(d.variants) for d in self.distributions), len(self.failed())
        work = f"{counted(len(self.result.compiled), 'unit')} compiled, {self.result.reused} reused"
        done = counted(made, "variant") + (f", {failed} FAILED" if failed else "")
        yield f"{done}; {work}, {size(self.toolchain.downloaded)} downloaded, {seconds:.1f} s"
        for outcome in self.outcomes:
            yield f"{self.hub}: {outcome.repo}@{outcome.branch} {_state(outcome)}"
        yield from self._ways_to_load()

    def _ways_to_load(self) -> Iterator[str]:
        for outcome, distribution in zip(self.outcomes, self.distributions, strict=bool(self.outcomes)):
            call = f"get_kernel({outcome.repo!r}, version={distribution.kernel.version}, hub={str(self.hub)!r})"
            yield f'python -c "from kernel_loader import get_kernel; print({call})"'
        if self.hub is not None:
            return
        for distribution in self.distributions:
            call = f"get_local_kernel({str(distribution.root)!r})"
            yield f'python -c "from kernel_loader import get_local_kernel; print({call})"'
            if is_dev(self.toolchain.plan) and distribution.kernel.hub.repo_id:
                yield f"export LOCAL_KERNELS={shlex.quote(f'{distribution.kernel.hub.repo_id}={distribution.root}')}"

    def to_json(self, seconds: float) -> dict[str, Any]:
        """The run as plain data."""
        return {
            "variants": [_variant_json(d, variant) for d in self.distributions for variant in d.variants],
            "failed": dict(self.result.failed),
            "findings": [f.to_json() for findings in self.findings.values() for f in findings],
            "staged": [outcome.to_json() for outcome in self.outcomes],
            "compiled": list(self.result.compiled),
            "reused": self.result.reused,
            "downloaded": self.toolchain.downloaded,
            "seconds": round(seconds, 3),
            "log": None if self.result.log is None else str(self.result.log),
        }


def run_pipeline(
    plan: Plan,
    settings: Settings,
    reporter: Reporter,
    *,
    nvcc: NvccSource,
    executor: Executor | None,
    out: Path,
    hub: Path | None,
    jobs: int | None,
    keep_going: bool,
    prune: bool,
) -> Built:
    """Run every stage. Variants that fail a check are left out, and so are kernels without a sound variant."""
    kernels = tuple({variant.kernel.name: variant.kernel for variant in plan.variants}.values())
    for kernel in kernels if hub is not None else ():
        target_of(kernel)  # a missing repository is found before the long part
    toolchain = provision(plan, settings, reporter, nvcc=nvcc)
    result = build(toolchain, settings, reporter, jobs=jobs, keep_going=keep_going, executor=executor)
    findings: dict[str, tuple[Finding, ...]] = {}
    for index, artefact in enumerate(result.artefacts):
        reporter.progress("checking", index, len(result.artefacts), artefact.plan.label)
        findings[artefact.plan.label] = _checked(artefact, toolchain, settings)
    reporter.progress("checking", len(result.artefacts), len(result.artefacts))
    distributions = []
    for kernel in kernels:
        own = [a for a in result.artefacts if a.plan.kernel.name == kernel.name]
        if not all(errors(findings[a.plan.label]) for a in own):
            made = package(kernel, own, toolchain, findings, out=out, settings=settings, prune=prune)
            # The author loads a --dev variant next and sees the same as an import here would show.
            distributions.append(made if is_dev(plan) else _imported(made, findings, settings, reporter))
    distributions = [d for d in distributions if d.variants]
    _say(findings, reporter)
    outcomes = tuple(stage(d, hub) for d in distributions) if hub is not None else ()
    return Built(
        toolchain=toolchain,
        result=result,
        findings=findings,
        distributions=tuple(distributions),
        outcomes=outcomes,
        hub=hub,
    )


def is_dev(plan: Plan) -> bool:
    """Whether this is a plan of ``build --dev``."""
    return any(variant.lineinfo for variant in plan.variants)


def _checked(artefact: Artefact, toolchain: Toolchain, settings: Settings) -> tuple[Finding, ...]:
    def check() -> tuple[Finding, ...]:
        from kernel_builder.check.check import check_artefact

        return check_artefact(artefact, toolchain)

    plan = artefact.plan
    # A library in the store is named by the key of all that it was made from.
    question = (artefact.library.parent.name, source_digest(plan.kernel), json.dumps(plan.to_json(), sort_keys=True))
    exports = toolchain.symbols[plan.sdk].root.name if plan.sdk in toolchain.symbols else ""
    return remembered(settings.store, ("artefact", toolchain.sdks[plan.sdk].digest, exports, *question), check)


def _imported(
    made: Distribution, findings: dict[str, tuple[Finding, ...]], settings: Settings, reporter: Reporter
) -> Distribution:
    """The distribution, and its folder, without variants that turn out not to import; ``findings`` gets the reason."""
    for name, found in import_variants(made, settings.store, reporter):
        findings[f"{made.kernel.name}/{name}"] += found
    broken = [v for v in made.variants if errors(findings[f"{made.kernel.name}/{v.name}"])]
    for variant in broken:
        remove_folder(made.root, variant.path)
    return replace(made, variants=tuple(v for v in made.variants if v not in broken))


def _state(outcome: Outcome) -> str:
    moved = "already holds this" if outcome.status == "no-changes" else f"is at {outcome.commit[:12]}"
    dirty = ", from uncommitted sources" if outcome.dirty else ""
    return f"{moved}{dirty}, {counted(len(outcome.untested), 'variant')} untested"


def _say(findings: Mapping[str, Sequence[Finding]], reporter: Reporter) -> None:
    warnings = [f for group in findings.values() for f in group if f.severity == "warning"]
    for message in dict.fromkeys(finding.message for finding in warnings):
        reporter.warn(f"{and_more([f.where for f in warnings if f.message == message])}: {message}")


def _bytes(variant: PackagedVariant) -> int:
    return sum(path.stat().st_size for path in variant.path.rglob("*") if path.is_file())


def _row(distribution: Distribution, variant: PackagedVariant) -> tuple[str, ...]:
    archs = " ".join(map(str, variant.metadata.archs)) or "–"
    name = f"{distribution.kernel.name}/{variant.name}"
    return (name, archs, size(_bytes(variant)), variant.digest[:12], level_of(receipt_path(variant)))


def _variant_json(distribution: Distribution, variant: PackagedVariant) -> dict[str, Any]:
    return {
        "kernel": distribution.kernel.name,
        "variant": variant.name,
        "path": str(variant.path),
        "digest": variant.digest,
        "archs": [str(arch) for arch in variant.metadata.archs],
        "size": _bytes(variant),
        "receipt": level_of(receipt_path(variant)),
    }
