"""The portability policy and Python's limited API, as data beside this module."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_builder.toml import parse_toml

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER = Path(__file__).with_name("policies")


@dataclass(frozen=True, kw_only=True, slots=True)
class Policy:
    """One portability floor.

    Attributes:
        versions: Machine (``x86_64``) → namespace (``GLIBC``) → newest version allowed; () allows the bare name.
        needed: Group → DT_NEEDED names; ``{major}`` stands for the CUDA major version.
        refused: DT_NEEDED name → why it is refused.
    """

    name: str
    versions: Mapping[str, Mapping[str, tuple[int, ...]]]
    needed: Mapping[str, tuple[str, ...]]
    refused: Mapping[str, str]


@cache
def read_policy(name: str = "manylinux_2_28") -> Policy:
    """A policy of this package by name."""
    data = parse_toml((_FOLDER / f"{name}.toml").read_text("utf-8"))
    return Policy(
        name=data["name"],
        versions={
            machine: {space: version_numbers(text) or () for space, text in spaces.items()}
            for machine, spaces in data["versions"].items()
        },
        needed={group: tuple(names) for group, names in data["needed"].items()},
        refused=data["refused"],
    )


@cache
def limited_api() -> frozenset[str]:
    """Functions and data that an abi3 module for Python 3.9 and later may import."""
    lines = (_FOLDER / "limited_api_3_9.txt").read_text("utf-8").splitlines()
    return frozenset(line for line in lines if line and not line.startswith("#"))


def version_numbers(text: str) -> tuple[int, ...] | None:
    """``2.28`` → (2, 28), empty → (), None for versions without an order such as ``PRIVATE``."""
    parts = text.split(".") if text else []
    return tuple(map(int, parts)) if all(p.isascii() and p.isdigit() for p in parts) else None
