"""Where receipts lie in the dist tree, and what they say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.package.model import PackagedVariant


def receipt_path(variant: PackagedVariant) -> Path:
    """``dist/<kernel>/receipts/<digest>.json`` for ``dist/<kernel>/build/<variant>``, there or not."""
    return variant.path.parents[1] / "receipts" / f"{variant.digest}.json"


def level_of(path: Path) -> str:
    """``A`` when tests passed on a device, ``C`` when it only imported, ``failed``, or ``none`` without a receipt."""
    return level_in(path.read_bytes()) if path.is_file() else "none"


def level_in(data: bytes) -> str:
    """What a receipt proves, as ``level_of`` says it."""
    try:
        receipt = json.loads(data)
        return str(receipt["level"]) if receipt["result"] == "passed" else "failed"
    except (ValueError, KeyError, TypeError, RecursionError):
        return "none"
