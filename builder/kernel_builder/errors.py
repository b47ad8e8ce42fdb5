"""Every failure a user can meet: one class, one exit code, one sentence, a place and a hint."""

from __future__ import annotations


class KernelBuilderError(Exception):
    """A failure that is reported as ``error: <sentence>``, ``  at <where>``, ``hint: <next step>``.

    Args:
        message: One sentence saying what is wrong.
        where: File and TOML path, variant, or command the failure belongs to.
        hint: The next command or the nearest miss.
        detail: Further lines, such as a compiler's own output.
    """

    exit_code = 1

    def __init__(self, message: str, *, where: str = "", hint: str = "", detail: str = "") -> None:
        super().__init__(message)
        self.message, self.where, self.hint, self.detail = message, where, hint, detail


class UsageError(KernelBuilderError):
    """The command line or an environment variable makes no sense."""

    exit_code = 2


class SpecError(KernelBuilderError):
    """build.toml or kernel-builder.toml is not valid; ``detail`` lists every fault found."""

    exit_code = 2


class NothingSelectedError(KernelBuilderError):
    """The selection leaves no variant."""

    exit_code = 3


class ToolchainError(KernelBuilderError):
    """A compiler, toolkit or SDK is missing, unreachable, or not the one that the lock names."""

    exit_code = 4


class CompileError(KernelBuilderError):
    """A compile step failed; ``detail`` shows the command, the compiler's error and the log."""

    exit_code = 5


class CheckError(KernelBuilderError):
    """A built variant does not keep its promises, or its tests failed."""

    exit_code = 6


class DigestError(KernelBuilderError):
    """Bytes are not those that a digest or signature names."""

    exit_code = 7


class PublishError(KernelBuilderError):
    """The target or a release gate refused; the branch did not move."""

    exit_code = 8


class NoVariantError(KernelBuilderError):
    """No variant fits this environment."""

    exit_code = 9


EXIT_CODES: dict[int, str] = {
    0: "ok",
    1: "bug",
    2: "usage or invalid spec",
    3: "nothing selected",
    4: "toolchain missing",
    5: "compile failed",
    6: "check or test failed",
    7: "digest or signature mismatch",
    8: "publish refused (auth, conflict, gate)",
    9: "no compatible variant",
    130: "interrupted",
}
