"""Kinds of values a spec may hold: each checks one TOML value and notes what is wrong with it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from kernel_builder.spec.faults import nearest
from kernel_builder.spec.model import KernelDependency
from kernel_loader.format.archs import Arch
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Callable

    from kernel_builder.spec.faults import Place

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}")
_TYPES = ((bool, "boolean"), (int, "integer"), (float, "float"), (str, "string"), (list, "list"), (Mapping, "table"))


@dataclass(frozen=True, kw_only=True)
class Kind(Generic[T_co]):
    """A kind of value: how documentation calls it, and its check (None = a fault was noted)."""

    label: str
    check: Callable[[object, Place], T_co | None]


def type_name(value: object) -> str:
    """TOML's name for the type of a value."""
    return next((name for kind, name in _TYPES if isinstance(value, kind)), "date or time")


def mismatch(at: Place, expected: str, value: object, hint: str = "") -> None:
    """Note that a value has the wrong type."""
    at.fault(f"expected {expected}, found {type_name(value)}", hint)


def text(label: str = "string", pattern: str = "", meaning: str = "") -> Kind[str]:
    """Non-empty text of one line; with ``pattern``, text that matches it whole, else ``meaning`` is shown."""

    def check(value: object, at: Place) -> str | None:
        if not isinstance(value, str):
            mismatch(at, f"a {label}", value)
        elif not value.strip():
            at.fault("must not be empty")
        elif _CONTROL.search(value):
            at.fault(f"{value!r} contains a control character")
        elif pattern and not (value.isascii() and re.fullmatch(pattern, value)):
            at.fault(f"{value!r} is not {meaning}")
        else:
            return value
        return None

    return Kind(label=label, check=check)


def choice(options: tuple[str, ...], label: str = "string") -> Kind[str]:
    """One of a fixed set of words."""

    def check(value: object, at: Place) -> str | None:
        if not isinstance(value, str):
            mismatch(at, f"a {label}", value)
        elif value not in options:
            at.fault(f"{value!r} is not known here", nearest(value, options) or "no value is known here")
        else:
            return value
        return None

    return Kind(label=label, check=check)


def listing(element: Kind[T], *, unique: bool = True, least: int = 0) -> Kind[tuple[T, ...]]:
    """A list of one kind; ``unique`` refuses repeated elements, ``least`` short lists."""
    label = f"list of {element.label}s"

    def check(value: object, at: Place) -> tuple[T, ...] | None:
        if not isinstance(value, list):
            hint = f"write [{value!r}]".replace("'", '"') if isinstance(value, str) else ""
            mismatch(at, f"a {label}", value, hint)
            return None
        found: list[T] = []
        seen: set[T] = set()
        for index, raw in enumerate(value):
            read = element.check(raw, at.item(index))
            if read is None:
                continue
            if unique and read in seen:
                at.item(index).fault(f"{str(read)!r} is listed twice")
            seen.add(read)
            found.append(read)
        if len(value) < least:
            at.fault("must not be empty")
        return tuple(found)

    return Kind(label=label, check=check)


def _integer(value: object, at: Place) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int):
        mismatch(at, "an integer", value)
    elif not 0 <= value < 2**31:
        at.fault(f"{value} is not between 0 and {2**31 - 1}")
    else:
        return value
    return None


def quoted(value: object) -> str:
    """Hint for a number that should have been text: TOML reads 2.10 as 2.1."""
    return f'put it in quotes, "{value}": TOML reads 2.10 as 2.1' if isinstance(value, float) else ""


def _version(value: object, at: Place) -> MajorMinor | None:
    if not isinstance(value, str):
        mismatch(at, "a version string", value, quoted(value))
    elif not _VERSION.fullmatch(value):
        at.fault(f"{value!r} is not a version of the form MAJOR.MINOR")
    else:
        return MajorMinor.parse(value)
    return None


def _capability(value: object, at: Place) -> Arch | None:
    if not isinstance(value, str):
        mismatch(at, "an architecture string", value, f'put it in quotes, "{value}"')
        return None
    try:
        return Arch.parse(value)
    except ValueError as error:
        at.fault(str(error))
        return None


def _table(value: object, at: Place) -> Mapping[str, object] | None:
    if isinstance(value, Mapping):
        return value
    mismatch(at, "a table", value)
    return None


def _kernel_dependency(value: object, at: Place) -> KernelDependency | None:
    table = _table(value, at)
    if table is None:
        return None
    before = len(at.faults)
    for name in table.keys() - {"repo-id", "version", "revision"}:
        at.key(name).fault(f"unknown key {name!r}", nearest(name, ("repo-id", "version", "revision")))
    version = _integer(table["version"], at.key("version")) if "version" in table else None
    revision = TEXT.check(table["revision"], at.key("revision")) if "revision" in table else None
    if ("version" in table) == ("revision" in table):
        at.fault("needs exactly one of version and revision")
    if "repo-id" not in table:
        at.fault("repo-id is missing")
        return None
    repo_id = REPO_ID.check(table["repo-id"], at.key("repo-id"))
    if repo_id is None or len(at.faults) > before:
        return None
    return KernelDependency(repo_id=repo_id, version=version, revision=revision)


TEXT = text()
INTEGER = Kind(label="integer", check=_integer)
VERSION = Kind(label="version string", check=_version)
CAPABILITY = Kind(label="architecture string", check=_capability)
TABLE = Kind(label="table", check=_table)
KERNEL_DEPENDENCY = Kind(label="table", check=_kernel_dependency)
KERNEL_NAME = text(
    pattern=r"[a-z][-a-z0-9]*[a-z0-9]",
    meaning="a kernel name: at least two of a-z, 0-9 and -, beginning with a letter, not ending with -",
)
REPO_ID = text(pattern=r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*", meaning="a repository id of the form ORG/NAME")
BRANCH = text(pattern=r"(?!.*(\.\.|//|@\{))[A-Za-z0-9_][\w./-]*(?<![/.])", meaning="a branch name")
GIT_URL = text(
    label="git URL",
    pattern=r"((https?|git|ssh|git\+(ssh|https?))://|[\w.-]+@[\w.-]+:)[^\s\"'<>]+",
    meaning="a git URL such as https://host/path or user@host:path",
)
EXTENSION = text(pattern=r"[A-Za-z0-9_][A-Za-z0-9_.-]*", meaning='a file extension without its dot, such as "py"')
# Macros of the contract between generated code and kernels, and those that decide a variant's ABI.
RESERVED_MACROS = ("KB_STABLE_ABI", "KB_CUDA", "KB_CPU", "TORCH_TARGET_VERSION", "_GLIBCXX_USE_CXX11_ABI")
IDENTIFIER = text(pattern=r"[A-Za-z_][A-Za-z0-9_]{0,63}", meaning="a C identifier")
DEFINE = text(
    pattern=rf"(?!({'|'.join(RESERVED_MACROS)})(=|$))[A-Za-z_][A-Za-z0-9_]*(=.*)?",
    meaning="a definition of the form NAME or NAME=VALUE, or it is one that the build makes",
)


def _stable_abi(value: object, at: Place) -> Mapping[str, MajorMinor] | None:
    if not isinstance(value, Mapping):
        version = _version(value, at)
        return None if version is None else dict.fromkeys(BACKENDS, version)
    found: dict[str, MajorMinor] = {}
    for name, raw in value.items():
        if name not in BACKENDS:
            at.key(name).fault(f"unknown backend {name!r}", nearest(name, BACKENDS))
        elif (version := _version(raw, at.key(name))) is not None:
            found[name] = version
    return found


BACKENDS = ("cann", "cpu", "cuda", "metal", "neuron", "rocm", "tpu", "xpu")
STABLE_ABI = Kind(label="version string or table of backend to version", check=_stable_abi)
