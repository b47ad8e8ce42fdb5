"""Every failure of the loader: one sentence, a place, a hint, further lines. Exit codes are those of kernel-builder."""

from __future__ import annotations


class LoaderError(Exception):
    """A failure of the loader; ``str()`` gives the sentence, the place, the details and the hint.

    Args:
        message: One sentence saying what is wrong.
        where: Repository, variant or file the failure belongs to.
        hint: What to do next.
        detail: Further lines.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str = "", hint: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message, self.where, self.hint, self.detail = message, where, hint, detail

    def __str__(self) -> str:
        lines = [self.message]
        lines += [f"  at {self.where}"] if self.where else []
        lines += [self.detail] if self.detail else []
        lines += [f"hint: {self.hint}"] if self.hint else []
        return "\n".join(lines)


class UsageError(LoaderError, ValueError):
    """The arguments or an environment variable make no sense."""

    exit_code = 2


class NotFoundError(LoaderError, FileNotFoundError):
    """A hub, repository, version or file is not where it should be."""

    exit_code = 9


class NoCompatibleVariant(LoaderError, FileNotFoundError):  # noqa: N818 - the name says what happened
    """No variant fits this environment; ``detail`` has a line for each."""

    exit_code = 9


class DigestMismatch(LoaderError):  # noqa: N818
    """Bytes are not those that a digest or a commit names; nothing of the kernel was imported."""

    exit_code = 7


class IncompleteFolder(DigestMismatch):
    """Files of a variant are missing; those that are there were not changed."""


class LoadFailed(LoaderError, ImportError):  # noqa: N818
    """The kernel was found and verified, but Python or the dynamic linker could not load it."""

    exit_code = 6


class DependencyMissing(LoadFailed):
    """A Python package that the kernel needs is absent or too old."""

    exit_code = 4


class KernelConflict(LoadFailed):
    """A kernel of the same id but with other content is already in this process."""
