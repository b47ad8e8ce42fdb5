"""The package archives that apt on this machine is configured for, in both forms of its source lists."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_ONE_LINE = re.compile(r"deb\s+(?:\[(?P<options>[^\]]*)\]\s+)?(?P<uri>\S+)\s+(?P<suite>\S+)(?P<components>[^#]*)")
_NO = ("no", "false", "without", "off", "disable")


@dataclass(frozen=True, kw_only=True, slots=True)
class Mirror:
    """An archive. ``keyring`` is the file whose keys sign it, None for apt's own trusted keys."""

    uri: str
    keyring: str | None = None


def read_mirrors(folder: Path) -> tuple[Mirror, ...]:
    """Archives of ``sources.list`` and ``sources.list.d`` below ``folder`` that hold a distribution, in apt's order.

    Security archives, media, and repositories without a component ``main`` are left out.
    """
    found: list[Mirror] = []
    lists = [folder / "sources.list", *sorted((folder / "sources.list.d").glob("*"))]
    for path in lists:
        if path.suffix == ".sources":
            found += _stanzas(_text(path))
        elif path.suffix == ".list":
            found += _lines(_text(path))
    return tuple(dict.fromkeys(found))


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _lines(text: str) -> Iterator[Mirror]:
    for line in text.splitlines():
        match = _ONE_LINE.match(line.strip())
        if match and _is_distribution(match["uri"], match["suite"], match["components"].split()):
            options = dict(option.partition("=")[::2] for option in (match["options"] or "").split())
            yield Mirror(uri=match["uri"], keyring=_keyring(options.get("signed-by", "")))


def _stanzas(text: str) -> Iterator[Mirror]:
    for stanza in re.split(r"\n\s*\n", text):
        fields = _fields(stanza)
        if "deb" not in fields.get("types", "").split() or fields.get("enabled", "yes").strip().lower() in _NO:
            continue
        for uri in fields.get("uris", "").split():
            for suite in fields.get("suites", "").split():
                if _is_distribution(uri, suite, fields.get("components", "").split()):
                    yield Mirror(uri=uri, keyring=_keyring(fields.get("signed-by", "").strip()))


def _fields(stanza: str) -> dict[str, str]:
    """Field name in lower case → value, its further lines joined."""
    lines = "\n".join(line for line in stanza.splitlines() if not line.startswith("#"))
    return {
        name.strip().lower(): value
        for name, _, value in (field.partition(":") for field in re.split(r"\n(?=\S)", lines))
        if name.strip()
    }


def _is_distribution(uri: str, suite: str, components: list[str]) -> bool:
    return "main" in components and not suite.endswith(("-security", "/")) and not uri.startswith("cdrom:")


def _keyring(signed_by: str) -> str | None:
    """A file; keys and fingerprints written into the list itself stand for this one suite only."""
    return signed_by if signed_by.startswith("/") and "\n" not in signed_by and "," not in signed_by else None
