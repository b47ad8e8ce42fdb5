"""What pip on this machine would ask: its indexes, links, proxy and certificates, read by asking pip itself."""

from __future__ import annotations

import ast
import subprocess
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_builder.errors import ToolchainError
from kernel_builder.processes import find_program, run

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.reporting import Reporter

# pip lets a command's own section override [global], and PIP_* variables override both.
_SECTIONS = ("global", "download", ":env:")
_TRUE = ("1", "true", "yes", "on", "y", "t")


@dataclass(frozen=True, kw_only=True, slots=True)
class PipSettings:
    """The part of pip's configuration that says where wheels are and how to reach them.

    Attributes:
        index_url: Simple index; None = pip's built-in one.
        find_links: Folders, HTML pages or URLs of pages that link to wheels.
        no_index: Use ``find_links`` only.
        cert: CA bundle; ``client_cert`` holds the key and certificate to show to servers.
        trusted_hosts: ``HOST`` or ``HOST:PORT`` whose certificate is not checked.
        timeout: Seconds to wait for a connection and for each read.
    """

    index_url: str | None = None
    extra_index_urls: tuple[str, ...] = ()
    find_links: tuple[str, ...] = ()
    no_index: bool = False
    proxy: str | None = None
    cert: str | None = None
    client_cert: str | None = None
    trusted_hosts: tuple[str, ...] = ()
    timeout: float = 15.0
    retries: int = 5


def read_pip_settings(path: str, reporter: Reporter) -> PipSettings:
    """Ask pip for its merged configuration (files and PIP_* variables).

    Args:
        path: PATH, where a pip of another environment is looked for when this Python has none.
        reporter: Told when there is no pip and so no configuration.

    Raises:
        ToolchainError: pip cannot read its configuration, or a value makes no sense.
    """
    for command in _pip_commands(path):
        try:
            done = run([*command, "config", "list"], timeout=60)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise ToolchainError(f"pip cannot be asked for its configuration: {error}.", where=command[0]) from error
        if done.status == 0:
            return parse_pip_settings(done.stdout)
        if "No module named pip" not in done.stderr:
            raise ToolchainError(
                "pip cannot read its own configuration.", where=" ".join(command), detail=done.stderr.strip()
            )
    reporter.note("no pip found: using the default index, without pip's configuration")
    return PipSettings()


def _pip_commands(path: str) -> list[list[str]]:
    other = find_program("pip", path)
    return [[sys.executable, "-m", "pip"], *([[other]] if other else [])]


def parse_pip_settings(listing: str) -> PipSettings:
    """Read the output of ``pip config list``: lines ``section.option='value'``.

    Raises:
        ToolchainError: A number is none.
    """
    values = _merged(listing)
    return PipSettings(
        index_url=values.get("index-url") or None,
        extra_index_urls=tuple(values.get("extra-index-url", "").split()),
        find_links=tuple(values.get("find-links", "").split()),
        no_index=values.get("no-index", "").lower() in _TRUE,
        proxy=values.get("proxy") or None,
        cert=values.get("cert") or None,
        client_cert=values.get("client-cert") or None,
        trusted_hosts=tuple(values.get("trusted-host", "").split()),
        timeout=_number(values, "timeout", 15.0),
        retries=int(_number(values, "retries", 5)),
    )


def _merged(listing: str) -> Mapping[str, str]:
    merged: dict[str, str] = {}
    for section in _SECTIONS:
        for line in listing.splitlines():
            name, equals, quoted = line.partition("=")
            if not equals or not name.startswith(f"{section}."):
                continue
            option = name[len(section) + 1 :].replace("_", "-").removeprefix("default-")
            merged[option] = str(ast.literal_eval(quoted))
    return merged


def _number(values: Mapping[str, str], name: str, default: float) -> float:
    text = values.get(name, "")
    try:
        return float(text) if text else default
    except ValueError:
        raise ToolchainError(f"pip's option {name} is not a number: {text!r}.", hint="pip config debug") from None
