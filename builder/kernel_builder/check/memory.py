"""Findings that are known already: a check is a function of bytes, so the same bytes need no second look."""

from __future__ import annotations

import contextlib
import hashlib
import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import kernel_loader
from kernel_builder.check.model import Finding
from kernel_builder.files import sha256_of, tree_digest, write_whole
from kernel_builder.toolchain.symbols.tables import SHIM_TABLE

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


def remembered(store: Path, question: Sequence[str], answer: Callable[[], tuple[Finding, ...]]) -> tuple[Finding, ...]:
    """The findings of ``answer``, from the store when the same question was answered by the same code.

    Args:
        store: Settings.store; findings lie in its folder ``findings``.
        question: Everything that decides the answer, as digests and names.
        answer: Does the checking.
    """
    key = hashlib.sha256("\0".join((_code(), *question)).encode()).hexdigest()
    path = store / "findings" / key[:2] / f"{key}.json"
    try:
        return tuple(Finding(**fields) for fields in json.loads(path.read_bytes()))
    except (OSError, ValueError, TypeError):
        findings = answer()
    # A store that cannot be written costs time, not the result.
    with contextlib.suppress(OSError):
        write_whole(path, json.dumps([finding.to_json() for finding in findings]).encode())
    return findings


@cache
def _code() -> str:
    """Digest of the code, policies and tables that answer."""
    folders = (Path(__file__).parent, Path(kernel_loader.__file__).parent, SHIM_TABLE.parent)
    files = [path for folder in folders for path in folder.rglob("*") if path.suffix in (".py", ".toml", ".txt")]
    return tree_digest({str(path): sha256_of(path) for path in files})
