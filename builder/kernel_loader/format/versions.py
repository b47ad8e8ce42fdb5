"""Version numbers of the format: torch and toolkit versions (major.minor) and version branches (``v3``)."""

from __future__ import annotations

import re
from dataclasses import dataclass

_MAJOR_MINOR = re.compile(r"(\d+)\.(\d+)")
_BRANCH = re.compile(r"v(0|[1-9][0-9]*)")


@dataclass(frozen=True, order=True, slots=True)
class MajorMinor:
    """The first two numbers of a version; compares numerically, so 2.10 is newer than 2.9."""

    major: int
    minor: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}"

    @classmethod
    def parse(cls, text: str) -> MajorMinor:
        """Read ``2.13``, ``2.13.0+cu130``, ``2.8.0a0+nv25.06``; what follows the minor is ignored.

        Raises:
            ValueError: The text does not begin with two numbers.
        """
        match = _MAJOR_MINOR.match(text.strip())
        if not match or not text.strip().isascii():
            raise ValueError(f"{text!r} is not a version of the form MAJOR.MINOR")
        return cls(int(match[1]), int(match[2]))


def branch_of(version: int) -> str:
    """Branch that holds a kernel version: 3 → ``v3``."""
    if version < 0:
        raise ValueError(f"a kernel version is not negative: {version}")
    return f"v{version}"


def version_of(branch: str) -> int | None:
    """Kernel version of a branch, None for any other branch (``main``, ``v1_0``, ``v01``)."""
    match = _BRANCH.fullmatch(branch)
    return int(match[1]) if match and branch.isascii() else None
