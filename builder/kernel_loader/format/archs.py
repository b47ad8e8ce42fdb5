"""GPU architectures as metadata.json writes them: ``8.0``, ``9.0a``, ``10.0f``, ``12.0+PTX``."""

from __future__ import annotations

import re
from dataclasses import dataclass

_ARCH = re.compile(r"(\d{1,2})\.(\d)([af]?)(\+PTX)?")


@dataclass(frozen=True, order=True, slots=True)
class Arch:
    """Code for one compute capability.

    Attributes:
        feature: ``"a"`` runs on exactly this capability, ``"f"`` on its family, ``""`` on same major, minor or newer.
        ptx: PTX rather than, or beside, machine code: any newer GPU can run it through the driver's compiler.
    """

    major: int
    minor: int
    feature: str = ""
    ptx: bool = False

    def __post_init__(self) -> None:
        if not (1 <= self.major <= 99 and 0 <= self.minor <= 9) or self.feature not in ("", "a", "f"):
            raise ValueError(f"not a GPU architecture: {self.major}.{self.minor}{self.feature}")

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}{self.feature}{'+PTX' if self.ptx else ''}"

    @classmethod
    def parse(cls, text: str) -> Arch:
        """Read one architecture.

        Raises:
            ValueError: The text is not of the form ``9.0``, ``9.0a``, ``10.0f`` or ``12.0+PTX``.
        """
        match = _ARCH.fullmatch(text)
        if not match or not text.isascii():
            raise ValueError(f"{text!r} is not a GPU architecture such as 8.0, 9.0a or 12.0+PTX")
        return cls(int(match[1]), int(match[2]), match[3], bool(match[4]))

    @property
    def sm(self) -> str:
        """Compiler spelling without prefix: ``90a``."""
        return f"{self.major}{self.minor}{self.feature}"

    def covers(self, capability: tuple[int, int]) -> bool:
        """Whether a GPU of this compute capability can run the code (driver age aside)."""
        own = (self.major, self.minor)
        if self.feature == "a":
            return capability == own
        if self.ptx and capability >= own:
            return True
        return capability[0] == self.major and capability[1] >= self.minor
