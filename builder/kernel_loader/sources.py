"""Where variants come from: a folder on this machine, a commit in a folder hub, or a commit in the cache."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_loader.errors import LoaderError, NotFoundError
from kernel_loader.format.digest import METADATA, Digest, is_bytecode, is_hashed
from kernel_loader.format.hubstore import variants_of
from kernel_loader.format.metadata import Metadata, MetadataError, parse_metadata
from kernel_loader.format.variants import VariantNameError, parse
from kernel_loader.hub import HubRepo, parse_tree
from kernel_loader.integrity import read_regular

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from kernel_loader.cache import CachedRepo
    from kernel_loader.format.hubstore import RepoId, TreeEntry

_METADATA_LIMIT = 64 << 20


class InvalidKernel(LoaderError):  # noqa: N818 - the name says what is wrong
    """A variant's metadata.json is missing or cannot be read."""

    exit_code = 6


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalSource:
    """A folder that the caller named.

    Attributes:
        base: Folder of the variant folders.
        single: The one variant that the caller named itself, so that its name is not asked whether it fits.
    """

    base: Path
    single: str | None = None

    @classmethod
    def find(cls, path: Path) -> LocalSource:
        """Accept a repository with ``build/``, its ``build`` folder, or one variant folder.

        Raises:
            NotFoundError: It is none of them.
        """
        path = path.expanduser().resolve()
        if (path / METADATA).is_file():
            return cls(base=path.parent, single=path.name)
        for base in (path / "build", path):
            if base.is_dir() and _variant_folders(base):
                return cls(base=base)
        raise NotFoundError(
            "The folder holds no kernel variant.",
            where=str(path),
            hint="name a folder with build/<variant>/metadata.json, its build folder, or one variant folder",
        )

    @property
    def label(self) -> str:
        """The folder."""
        return str(self.base / self.single if self.single else self.base)

    def variants(self) -> tuple[str, ...]:
        """Names of the variant folders."""
        return (self.single,) if self.single else _variant_folders(self.base)

    def folder(self, variant: str) -> Path:
        """Folder of a variant."""
        return self.base / variant

    def metadata_json(self, variant: str) -> bytes:
        """Content of metadata.json as it lies there."""
        return read_regular(self.folder(variant) / METADATA, limit=_METADATA_LIMIT)


def _variant_folders(base: Path) -> tuple[str, ...]:
    names = [entry.name for entry in base.iterdir() if entry.is_dir() and not entry.name.startswith(".")]
    return tuple(sorted(name for name in names if _is_variant(name) or (base / name / METADATA).is_file()))


def _is_variant(name: str) -> bool:
    try:
        return bool(parse(name))
    except VariantNameError:
        return False


@dataclass(frozen=True, kw_only=True, slots=True)
class HubSource:
    """A commit of a folder hub."""

    repo: HubRepo
    revision: str
    commit: str
    commit_json: bytes
    tree: Mapping[str, TreeEntry]

    @classmethod
    def open(cls, repo: HubRepo, revision: str) -> HubSource:
        """Resolve a branch or commit id of a hub; errors are those of ``HubRepo.resolve`` and ``parse_tree``."""
        commit, data = repo.resolve(revision)
        tree = parse_tree(data, where=f"{repo.hub}: {repo.repo} {commit}").tree
        return cls(repo=repo, revision=revision, commit=commit, commit_json=data, tree=tree)

    @property
    def label(self) -> str:
        """Repository and revision."""
        return f"{self.repo.repo} {self.revision}"

    def variants(self) -> tuple[str, ...]:
        """Names of the folders under ``build/``."""
        return variants_of(self.tree)

    def metadata_json(self, variant: str) -> bytes:
        """Verified content of metadata.json."""
        path = f"build/{variant}/{METADATA}"
        if path not in self.tree or self.tree[path].size > _METADATA_LIMIT:
            raise FileNotFoundError(path)
        return b"".join(self.repo.chunks(path, self.tree[path]))


@dataclass(frozen=True, kw_only=True, slots=True)
class CachedSource:
    """A commit of the cache, when its hub is out of reach.

    Attributes:
        tree: Files of the commit; None when the commit itself was never kept.
    """

    repo: RepoId
    cached: CachedRepo
    revision: str
    commit: str
    tree: Mapping[str, TreeEntry] | None

    @property
    def label(self) -> str:
        """Repository and revision."""
        return f"{self.repo} {self.revision} (cached)"

    def variants(self) -> tuple[str, ...]:
        """Names of the variants that were fetched."""
        return _variant_folders(self.cached.builds(self.commit))

    def folder(self, variant: str) -> Path:
        """Folder of a variant."""
        return self.cached.variant(self.commit, variant)

    def metadata_json(self, variant: str) -> bytes:
        """Content of metadata.json as it lies in the cache."""
        return read_regular(self.folder(variant) / METADATA, limit=_METADATA_LIMIT)


Source = LocalSource | HubSource | CachedSource


def metadata_of(source: Source, variant: str) -> Metadata:
    """Parsed metadata of a variant.

    Raises:
        InvalidKernel: It is missing or malformed.
    """
    where = f"{source.label}: {variant}/{METADATA}"
    try:
        return parse_metadata(source.metadata_json(variant), where=METADATA)
    except LoaderError:
        raise
    except FileNotFoundError as e:
        raise InvalidKernel("The variant has no metadata.json.", where=where) from e
    except MetadataError as e:
        hint = "if the file is right, it may need a newer kernel-loader"
        raise InvalidKernel(f"The metadata cannot be read: {e}.", where=where, hint=hint) from e


def files_of(tree: Mapping[str, TreeEntry], variant: str) -> dict[str, TreeEntry]:
    """A variant's files in a tree: path inside the variant → entry; byte code is left out."""
    prefix = f"build/{variant}/"
    found = {path.removeprefix(prefix): entry for path, entry in tree.items() if path.startswith(prefix)}
    return {path: entry for path, entry in sorted(found.items()) if not is_bytecode(path)}


def tree_digest(tree: Mapping[str, TreeEntry], variant: str) -> Digest:
    """What a tree says about a variant, as a digest of the format."""
    files = files_of(tree, variant)
    hashes = {path: base64.b64encode(bytes.fromhex(entry.sha256)).decode() for path, entry in files.items()}
    return Digest(files={path: value for path, value in hashes.items() if is_hashed(path)})
