"""``python -m kernel_loader explain|info|versions|verify``: what would be loaded, and whether it is what was built."""

from __future__ import annotations

import argparse
import json
import sys
import warnings
from typing import TYPE_CHECKING, Any

from kernel_loader import commands
from kernel_loader.commands import Result, Target
from kernel_loader.environment import Environment
from kernel_loader.errors import LoaderError
from kernel_loader.install import Wish
from kernel_loader.probe import probe
from kernel_loader.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Sequence

_DESCRIBED = ("torch", "cuda", "cpu", "os", "python", "glibc", "driver")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command; the result goes to stdout, errors go to stderr. Returns the exit code."""
    arguments = _parser().parse_args(argv)
    settings = None
    try:
        settings = Settings.from_environment()
        with warnings.catch_warnings():
            # torch warns, while it is imported, about packages that it would like to have.
            warnings.simplefilter("ignore")
            result = _run(arguments, settings)
    except LoaderError as e:
        if settings is not None and settings.debug:
            raise
        sys.stderr.write(f"error: {e}\n")
        return e.exit_code
    except OSError as e:
        sys.stderr.write(f"error: {e.filename or 'A file'} cannot be read: {e.strerror or e}.\n")
        return 2
    except KeyboardInterrupt:
        return 130
    text = json.dumps({"version": 1, **result.data}, indent=2) if arguments.json else "\n".join(result.lines)
    sys.stdout.write(text + "\n")
    return result.exit_code


def _run(arguments: argparse.Namespace, settings: Settings) -> Result:
    target = Target(name=arguments.kernel, version=arguments.version, revision=arguments.revision, hub=arguments.hub)
    if arguments.command == "explain":
        wish = Wish(backend=arguments.backend, check_arch=not arguments.any_arch)
        return commands.explain(target, settings, _environment(arguments), wish)
    if arguments.command == "versions":
        return commands.versions(target, settings, probe())
    return commands.info(target, settings) if arguments.command == "info" else commands.verify(target, settings)


def _environment(arguments: argparse.Namespace) -> Environment:
    """The described environment when a torch version is given, otherwise this process with what is given replaced."""
    given: dict[str, Any] = {key: getattr(arguments, key) for key in _DESCRIBED}
    given["capabilities"] = arguments.capability
    given = {key: value for key, value in given.items() if value}
    if "torch" in given:
        return Environment.from_dict(given)
    return Environment.from_dict({**probe().to_json(), **given}) if given else probe()


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="kernel-loader", description="Look at kernels without loading them.")
    subparsers = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    texts = {
        "explain": "which variant fits, and why the others do not (exit code 9: none does)",
        "info": "what a kernel says about itself",
        "versions": "the versions of a repository and the variant of each that fits",
        "verify": "whether all bytes are those that were published (exit code 7: they are not)",
    }
    for name, text in texts.items():
        command = subparsers.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("kernel", metavar="REPO_OR_PATH", help="org/name, org/name@v2, or a folder")
        command.add_argument("--version", type=int, help="major version, i.e. branch vN")
        command.add_argument("--revision", help="branch or commit id")
        command.add_argument("--hub", metavar="DIR", help="folder hub (default: KERNEL_LOADER_HUB)")
        command.add_argument("--json", action="store_true", help="print JSON")
        if name == "explain":
            _add_description(command)
    return parser


def _add_description(command: argparse.ArgumentParser) -> None:
    command.add_argument("--backend", help="cpu takes CPU variants on a GPU build of torch")
    command.add_argument("--any-arch", action="store_true", help="do not compare GPU architectures")
    group = command.add_argument_group("describe another environment; what is not given is x86_64 Linux")
    for key in _DESCRIBED:
        group.add_argument(f"--{key}")
    group.add_argument("--capability", action="append", help="compute capability such as 9.0; may be repeated")


if __name__ == "__main__":
    sys.exit(main())
