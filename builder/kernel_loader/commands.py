"""The commands of ``python -m kernel_loader``: each returns an exit code, JSON data and the lines for people."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_loader.cache import Cache
from kernel_loader.errors import LoaderError, UsageError
from kernel_loader.format.digest import METADATA, compare
from kernel_loader.format.versions import branch_of
from kernel_loader.install import Wish, choose, verify_variant
from kernel_loader.resolve import make_reference, open_repo, open_source
from kernel_loader.select import select
from kernel_loader.sources import CachedSource, HubSource, LocalSource, files_of, metadata_of, tree_digest
from kernel_loader.verify import mismatch

if TYPE_CHECKING:
    from kernel_loader.environment import Environment
    from kernel_loader.format.metadata import Metadata
    from kernel_loader.hub import HubRepo
    from kernel_loader.settings import Settings
    from kernel_loader.sources import Source


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """The kernel that a command is about: a repository at a version, or a folder."""

    name: str
    version: int | None = None
    revision: str | None = None
    hub: str | None = None

    @property
    def is_path(self) -> bool:
        """Whether the name is a folder: it is spelled as one, or is one and nothing says that a repository is meant."""
        spelled = self.name.startswith(("/", ".", "~"))
        return spelled or (
            self.version is None and self.revision is None and self.hub is None and Path(self.name).is_dir()
        )

    def open(self, settings: Settings) -> Source:
        """The source of the kernel's variants."""
        if self.is_path:
            return LocalSource.find(Path(self.name))
        return open_source(make_reference(self.name, self.revision, self.version), self.hub, settings)


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What a command found."""

    exit_code: int
    data: dict[str, Any]
    lines: tuple[str, ...]


def explain(target: Target, settings: Settings, env: Environment, wish: Wish) -> Result:
    """Which variant would be loaded, and why not the others."""
    selection = choose(target.open(settings), env, wish)
    best = selection.best.name if selection.best else None
    lines = [f"environment: {env}"]
    for decision in selection.decisions:
        mark = "->" if decision.name == best else "  "
        lines.append(f"{mark} {decision.name}: {decision.detail or 'fits'}")
    if best is None:
        lines.append("no variant fits")
    data = {
        "environment": env.to_json(),
        "best": best,
        "decisions": [decision.to_json() for decision in selection.decisions],
    }
    return Result(exit_code=0 if best else 9, data=data, lines=tuple(lines))


def info(target: Target, settings: Settings) -> Result:
    """What a kernel says about itself."""
    source = target.open(settings)
    variants = source.variants()
    if not variants:
        raise UsageError("The version holds no variant.", where=source.label)
    metadata = metadata_of(source, variants[0])
    facts = _facts(metadata)
    lines = [f"{key}: {value}" for key, value in facts.items() if value not in (None, "", [])]
    return Result(
        exit_code=0,
        data={**facts, "variants": list(variants)},
        lines=(*lines, "variants:", *(f"  {name}" for name in variants)),
    )


def _facts(metadata: Metadata) -> dict[str, Any]:
    return {
        "name": metadata.name,
        "kernel_version": metadata.version,
        "license": metadata.license,
        "upstream": metadata.upstream,
        "source": metadata.source,
        "python_depends": list(metadata.python_depends),
    }


def versions(target: Target, settings: Settings, env: Environment) -> Result:
    """Every version of a repository, with the variant of it that fits."""
    if target.is_path:
        raise UsageError("A folder holds one version; `info` shows it.", where=target.name)
    repo = open_repo(make_reference(target.name, target.revision, target.version), target.hub, settings)
    rows = [_version_row(repo, version, env) for version in repo.versions()]
    lines = [f"v{row['version']}  {row['commit']}  {row['best'] or 'no variant fits'}" for row in rows]
    return Result(exit_code=0, data={"versions": rows}, lines=tuple(lines or ("no versions",)))


def _version_row(repo: HubRepo, version: int, env: Environment) -> dict[str, Any]:
    source = HubSource.open(repo, branch_of(version))
    names = source.variants()
    best = select(names, env).best
    return {"version": version, "commit": source.commit, "variants": list(names), "best": best and best.name}


def verify(target: Target, settings: Settings) -> Result:
    """Whether every variant has the bytes that its digest and its commit name."""
    source = target.open(settings)
    rows = [_verify_variant(source, variant, settings) for variant in source.variants()]
    failed = any(row["status"] == "mismatch" for row in rows)
    lines = [f"{row['status']:<9} {row['variant']}{': ' if row['problem'] else ''}{row['problem']}" for row in rows]
    return Result(exit_code=7 if failed else 0, data={"variants": rows}, lines=tuple(lines))


def _verify_variant(source: Source, variant: str, settings: Settings) -> dict[str, str]:
    try:
        if isinstance(source, HubSource):
            status = _hub_status(source, variant)
        else:
            status = _folder_status(source, variant, settings)
    except LoaderError as e:
        return {"variant": variant, "status": "mismatch", "problem": e.message}
    return {"variant": variant, "status": status, "problem": ""}


def _folder_status(source: LocalSource | CachedSource, variant: str, settings: Settings) -> str:
    installed = verify_variant(source, variant, source.folder(variant), Cache(settings.cache), strict=True)
    has_tree = isinstance(source, CachedSource) and source.tree is not None
    return "ok" if installed.metadata.digest or has_tree else "no-digest"


def _hub_status(source: HubSource, variant: str) -> str:
    digest = metadata_of(source, variant).digest
    if digest and digest.algorithm == "sha256" and (found := compare(digest, tree_digest(source.tree, variant))):
        raise mismatch(found, where=f"{source.label}: {variant}/{METADATA}")
    for path, entry in files_of(source.tree, variant).items():
        for _ in source.repo.chunks(f"build/{variant}/{path}", entry):
            pass
    return "ok"
