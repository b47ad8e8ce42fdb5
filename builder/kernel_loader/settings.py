"""The only place of the loader that reads the environment."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_loader.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Mapping

VARIABLES = {
    "KERNELS_CACHE": "folder of fetched kernels; default: that of the Hub client",
    "HF_HUB_CACHE": "the Hub client's cache; default `$HF_HOME/hub`",
    "HF_HOME": "the Hub client's home; default `~/.cache/huggingface`",
    "XDG_CACHE_HOME": "used instead of `~/.cache`",
    "KERNEL_LOADER_HUB": "folder hub to load from when a call names none",
    "LOCAL_KERNELS": "folders that replace repositories: `org/a=path:org/b=path`",
    "HF_HUB_OFFLINE": "`1`: load from the cache only",
    "KERNEL_BUILDER_DEBUG": "`1`: tracebacks instead of one-sentence errors",
}
# A path may hold colons: only a colon that begins the next "org/name=" separates entries.
_NEXT_ENTRY = re.compile(r":(?=[^:=/]+/[^:=/]+=)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Settings:
    """What the user's environment says.

    Attributes:
        cache: Folder of fetched kernels (KERNELS_CACHE, HF_HUB_CACHE, HF_HOME/hub, ~/.cache/huggingface/hub).
        hub: Folder hub to load from when a call names none (KERNEL_LOADER_HUB).
        local_kernels: Repository → folder that replaces it (LOCAL_KERNELS: ``org/a=path:org/b=path``).
        offline: Load from the cache only (HF_HUB_OFFLINE).
        debug: Tracebacks on the command line (KERNEL_BUILDER_DEBUG=1).
    """

    cache: Path
    hub: str | None = None
    local_kernels: Mapping[str, Path] = field(default_factory=dict)
    offline: bool = False
    debug: bool = False

    @classmethod
    def from_environment(cls, environ: Mapping[str, str] | None = None) -> Settings:
        """Read the environment.

        Raises:
            UsageError: LOCAL_KERNELS is not of the form ``org/name=path:org/name=path``.
        """
        env = os.environ if environ is None else environ
        return cls(
            cache=_cache(env),
            hub=env.get("KERNEL_LOADER_HUB") or None,
            local_kernels=_local_kernels(env.get("LOCAL_KERNELS", "")),
            offline=env.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"),
            debug=env.get("KERNEL_BUILDER_DEBUG") == "1",
        )


def _cache(env: Mapping[str, str]) -> Path:
    explicit = env.get("KERNELS_CACHE") or env.get("HF_HUB_CACHE")
    if explicit:
        return Path(explicit).expanduser().absolute()
    home = env.get("HF_HOME") or Path(env.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    return Path(home).expanduser().absolute() / "hub"


def _local_kernels(text: str) -> Mapping[str, Path]:
    overrides = {}
    for entry in filter(None, _NEXT_ENTRY.split(text.strip().strip(":"))):
        repo, equals, path = entry.partition("=")
        if not equals or repo.count("/") != 1 or not path:
            raise UsageError(
                f"LOCAL_KERNELS has an entry {entry!r} that is not of the form org/name=path.",
                where="environment: LOCAL_KERNELS",
                hint="separate entries by colons: LOCAL_KERNELS=org/a=/path/a:org/b=/path/b",
            )
        overrides[repo] = Path(path).expanduser()
    return overrides
