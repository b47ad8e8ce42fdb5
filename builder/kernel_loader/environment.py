"""What a process offers to a kernel, as a value: tests and ``explain`` describe machines that they do not run on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from kernel_loader.errors import UsageError
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

BACKENDS = ("cann", "cpu", "cuda", "metal", "neuron", "rocm", "tpu", "xpu")


@dataclass(frozen=True, kw_only=True, slots=True)
class Environment:
    """A process that may load kernels.

    Attributes:
        torch: Full version string, None when torch is not installed.
        cuda: CUDA version that torch was built with, None for other builds.
        backend: What torch computes on: one of ``BACKENDS``.
        backend_version: Version of a ROCm, XPU or CANN backend.
        cxx11: Whether torch was built with the C++11 ABI, None when unknown.
        python: Major and minor version of Python.
        free_threaded: Python without the global interpreter lock.
        glibc: Version of the running C library, None off Linux.
        glibcxx: Newest symbol version of the loaded libstdc++, e.g. (3, 4, 30).
        capabilities: Compute capabilities of the visible GPUs, without repeats; empty when there is none.
        driver: CUDA version that the GPU driver supports.
        tvm_ffi: Version of tvm-ffi, None when it is not installed.
        macos: Version of macOS.
    """

    torch: str | None = None
    cuda: MajorMinor | None = None
    backend: str = "cpu"
    backend_version: MajorMinor | None = None
    cxx11: bool | None = True
    cpu: str = "x86_64"
    os: str = "linux"
    python: tuple[int, int] = (3, 11)
    free_threaded: bool = False
    glibc: tuple[int, int] | None = None
    glibcxx: tuple[int, ...] | None = None
    capabilities: tuple[tuple[int, int], ...] = ()
    driver: MajorMinor | None = None
    tvm_ffi: MajorMinor | None = None
    macos: MajorMinor | None = None

    def __post_init__(self) -> None:
        if self.backend not in BACKENDS:
            raise UsageError(f"{self.backend!r} is no backend; known: {', '.join(BACKENDS)}.")
        if self.torch is not None:
            _version("torch", self.torch)

    @property
    def torch_version(self) -> MajorMinor | None:
        """Major and minor version of torch."""
        return None if self.torch is None else MajorMinor.parse(self.torch)

    def version_of(self, backend: str) -> MajorMinor | None:
        """Version that variants of a backend are compared with."""
        return self.cuda if backend == "cuda" else self.backend_version if backend == self.backend else None

    def __str__(self) -> str:
        torch = f"torch {self.torch}" if self.torch else "no torch"
        compute = {"cuda": f"CUDA {self.cuda}"}.get(self.backend, self.backend)
        abi = {True: ", C++11 ABI", False: ", old C++ ABI", None: ""}[self.cxx11] if self.torch else ""
        python = f"Python {dotted(self.python)}{' free-threaded' if self.free_threaded else ''}"
        parts = [f"{torch} ({compute}{abi})", python, f"{self.cpu}-{self.os}"]
        parts += [f"glibc {dotted(self.glibc)}"] if self.glibc else []
        parts += [f"GPU {', '.join(map(dotted, self.capabilities))}"] if self.capabilities else []
        return ", ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Plain data that ``from_dict`` reads back."""
        return {
            "torch": self.torch,
            "cuda": _text(self.cuda),
            "backend": self.backend,
            "backend_version": _text(self.backend_version),
            "cxx11": self.cxx11,
            "cpu": self.cpu,
            "os": self.os,
            "python": dotted(self.python),
            "free_threaded": self.free_threaded,
            "glibc": self.glibc and dotted(self.glibc),
            "glibcxx": self.glibcxx and dotted(self.glibcxx),
            "capabilities": [dotted(capability) for capability in self.capabilities],
            "driver": _text(self.driver),
            "tvm_ffi": _text(self.tvm_ffi),
            "macos": _text(self.macos),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Environment:
        """Describe an environment; versions are strings. A CUDA version implies the backend ``cuda``.

        Raises:
            UsageError: A key is unknown or a version cannot be read.
        """
        unknown = set(data) - set(cls.__dataclass_fields__)
        if unknown:
            raise UsageError(f"An environment has no {', '.join(sorted(unknown))}.")
        values: dict[str, Any] = {key: _READERS.get(key, _as_is)(key, value) for key, value in data.items()}
        known = {key: value for key, value in values.items() if value is not None or key == "cxx11"}
        if known.get("cuda"):
            known.setdefault("backend", "cuda")
        return cls(**known)


def dotted(numbers: tuple[int, ...]) -> str:
    """``(3, 4, 30)`` → ``3.4.30``."""
    return ".".join(map(str, numbers))


def numbers(text: str) -> tuple[int, ...]:
    """``3.4.30`` → ``(3, 4, 30)``.

    Raises:
        ValueError: Some part is no number.
    """
    return tuple(int(part) for part in text.split("."))


def _text(version: MajorMinor | None) -> str | None:
    return None if version is None else str(version)


def _version(key: str, value: Any) -> MajorMinor | None:
    try:
        return None if value is None else MajorMinor.parse(str(value))
    except ValueError as e:
        raise UsageError(f"{key}: {e}.") from e


def _as_is(_key: str, value: Any) -> Any:
    return value


def _pair(key: str, value: Any) -> tuple[int, int] | None:
    version = _version(key, value)
    return None if version is None else (version.major, version.minor)


def _tuple(key: str, value: Any) -> tuple[int, ...] | None:
    try:
        return None if value is None else numbers(str(value))
    except ValueError as e:
        raise UsageError(f"{key}: {value!r} is no version.") from e


def _capabilities(key: str, values: Any) -> tuple[tuple[int, int], ...]:
    pairs = (_pair(key, value) for value in values or ())
    return tuple(dict.fromkeys(pair for pair in pairs if pair is not None))


_READERS: dict[str, Callable[[str, Any], Any]] = {
    **dict.fromkeys(("cuda", "backend_version", "driver", "tvm_ffi", "macos"), _version),
    **dict.fromkeys(("python", "glibc"), _pair),
    "glibcxx": _tuple,
    "capabilities": _capabilities,
}
