"""What the user picks from the matrix: versions, backends, and patterns of variant names."""

from __future__ import annotations

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from kernel_builder.errors import UsageError
from kernel_builder.spec.faults import nearest
from kernel_builder.spec.kinds import BACKENDS
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from kernel_builder.plan.matrix import Matrix
    from kernel_loader.format.variants import Backend

_BRACES = re.compile(r"\{([^{}]*)\}")
_VERSION = re.compile(r"\d+\.\d+(\.\d+)?")
_EXPANSION_LIMIT = 1000


@dataclass(frozen=True, kw_only=True, slots=True)
class Selection:
    """A choice of torch builds and of variants; an empty tuple chooses everything.

    Attributes:
        torch: Torch versions to build for.
        cuda: CUDA builds of torch to build for. Naming one leaves cpu out, unless ``backends`` names it.
        backends: ``cpu``, ``cuda``.
        only: Patterns with ``*``, ``?``, ``[…]`` and ``{a,b}``; a variant is kept when one matches its name or its
            label ``kernel/name``.
        skip: Patterns of variants to leave out.
    """

    torch: tuple[MajorMinor, ...] = ()
    cuda: tuple[MajorMinor, ...] = ()
    backends: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    skip: tuple[str, ...] = ()

    @classmethod
    def parse(
        cls,
        *,
        torch: Iterable[str] = (),
        cuda: Iterable[str] = (),
        backends: Iterable[str] = (),
        only: Iterable[str] = (),
        skip: Iterable[str] = (),
    ) -> Selection:
        """Build a selection from a command line's words; versions and backends may be joined by commas.

        Raises:
            UsageError: A word is not a version.
        """
        return cls(
            torch=_versions(torch, "--torch"),
            cuda=_versions(cuda, "--cuda"),
            backends=tuple(_words(backends)),
            only=tuple(only),
            skip=tuple(skip),
        )

    @property
    def patterns(self) -> tuple[str, ...]:
        """Those of ``only`` and ``skip``."""
        return self.only + self.skip

    def rejects(self, torch: MajorMinor, backend: Backend) -> str:
        """Which option leaves a torch build out, empty when none does."""
        if self.torch and torch not in self.torch:
            return "--torch"
        if self.backends and backend.name not in self.backends:
            return "--backend"
        if self.cuda and backend.version not in self.cuda and not (backend.version is None and self.backends):
            return "--cuda"
        return ""

    def narrowed(self, planned: set[str], possible: set[str]) -> set[str]:
        """Labels that the patterns keep. An ``only`` that matches none of ``planned`` takes ``possible`` ones."""
        kept = planned
        if self.only:
            by_pattern = [
                {label for label in planned if matches(pattern, label)}
                or {label for label in possible if matches(pattern, label)}
                for pattern in self.only
            ]
            kept = set().union(*by_pattern)
        return {label for label in kept if not any(matches(pattern, label) for pattern in self.skip)}

    def check(self, matrix: Matrix, labels: Sequence[str]) -> None:
        """Refuse words that name nothing.

        Args:
            matrix: What can be selected from.
            labels: Every label that the kernels could have.

        Raises:
            UsageError: A version or backend is in no row, or a pattern matches no label.
        """
        _known(self.torch, {torch.version for torch in matrix.torches}, "torch", "--torch")
        _known(self.cuda, set(matrix.cuda), "CUDA", "--cuda")
        for name in self.backends:
            if name not in matrix.backends:
                reason = "not built by this version" if name in BACKENDS else "not known"
                raise UsageError(
                    f"The backend {name!r} is {reason}.", where="--backend", hint=nearest(name, matrix.backends)
                )
        for option, patterns in (("--only", self.only), ("--skip", self.skip)):
            for pattern in patterns:
                if not any(matches(pattern, label) for label in labels):
                    short = [label if "/" in pattern else label.partition("/")[2] for label in labels]
                    raise UsageError(
                        f"The pattern {pattern!r} matches no variant.",
                        where=option,
                        hint=nearest(pattern, sorted(set(short))),
                    )


def matches(pattern: str, label: str) -> bool:
    """Whether a pattern matches a label ``kernel/variant``, or, without a slash, its variant name."""
    subject = label if "/" in pattern else label.partition("/")[2]
    return any(fnmatchcase(subject, plain) for plain in expand(pattern))


def expand(pattern: str) -> list[str]:
    """Patterns without braces: ``*-{cpu,cu128}-*`` becomes two. Braces may stand inside braces.

    Raises:
        UsageError: There would be more than a thousand of them.
    """
    done, waiting = [], [pattern]
    while waiting:
        current = waiting.pop()
        inner = _BRACES.search(current)
        if inner is None:
            done.append(current)
        else:
            waiting += [current[: inner.start()] + word + current[inner.end() :] for word in inner[1].split(",")]
        if len(done) + len(waiting) > _EXPANSION_LIMIT:
            raise UsageError(f"The pattern {pattern[:60]!r} stands for too many patterns.", hint="use * instead")
    return sorted(set(done))


def _words(values: Iterable[str]) -> list[str]:
    return [word.strip() for value in values for word in value.split(",") if word.strip()]


def _versions(values: Iterable[str], option: str) -> tuple[MajorMinor, ...]:
    words = _words(values)
    for word in words:
        if not (word.isascii() and _VERSION.fullmatch(word)):
            raise UsageError(f"{word!r} is not a version such as 2.10 or 12.8.", where=option)
    return tuple(MajorMinor.parse(word) for word in words)


def _known(asked: Iterable[MajorMinor], known: set[MajorMinor], what: str, option: str) -> None:
    for version in asked:
        if version not in known:
            names = list(map(str, sorted(known)))
            raise UsageError(f"{what} {version} is not in the matrix.", where=option, hint=nearest(str(version), names))
