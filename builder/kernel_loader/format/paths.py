"""Relative file paths as metadata, commits and archives may name them."""

from __future__ import annotations


class UnsafePathError(ValueError):
    """A path that could leave its folder, or that not every system can write."""


def check_path(path: str) -> str:
    """Return ``path`` if it stays inside whatever folder it is joined to.

    Raises:
        UnsafePathError: It is absolute, holds ``..``, ``.``, empty or control-character parts, a backslash, a colon,
            or characters that UTF-8 cannot encode.
    """
    parts = path.split("/")
    printable = path.isprintable() and not any(0xD800 <= ord(char) <= 0xDFFF for char in path)
    if not printable or "\\" in path or ":" in path or any(part in ("", ".", "..") for part in parts):
        raise UnsafePathError(f"{path!r} is not a safe relative path")
    if any(len(part.encode()) > 255 for part in parts) or len(parts) > 64:
        raise UnsafePathError(f"{path[:80]!r}… is too long for a file system")
    return path
