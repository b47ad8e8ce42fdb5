"""Findings that are known already: a check is a function of bytes, so the same bytes need no second look."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import kernel_loader
from kernel_builder.check.model import Finding

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
        path.parent.mkdir(parents=True, exist_ok=True)
        scratch = path.with_suffix(f".{os.getpid()}")
        scratch.write_text(json.dumps([finding.to_json() for finding in findings]), encoding="utf-8")
        scratch.replace(path)
    return findings


@cache
def _code() -> str:
    """Digest of the code and policies that answer."""
    total = hashlib.sha256()
    for folder in (Path(__file__).parent, Path(kernel_loader.__file__).parent):
        for path in sorted(p for p in folder.rglob("*") if p.suffix in (".py", ".toml", ".txt")):
            total.update(f"{path.name}\0{hashlib.sha256(path.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()
