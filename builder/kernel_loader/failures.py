"""Errors of an import, in words: what the kernel was built for, what is running, what to do."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kernel_loader.demangle import demangle
from kernel_loader.errors import DependencyMissing, LoadFailed
from kernel_loader.format.variants import ArchVariant, VariantNameError, parse

if TYPE_CHECKING:
    from kernel_loader.environment import Environment
    from kernel_loader.format.metadata import Metadata

_UNDEFINED = re.compile(r"(?:undefined symbol|symbol not found[^:]*): ['\"]?([\w.$@]+)")
_NEEDS_VERSION = re.compile(r"version [`'\"](GLIBC(?:XX)?|CXXABI|GCC)_([\d.]+)['\"] not found")
_NO_LIBRARY = re.compile(r"([\w.+-]+\.so[\w.]*): cannot open shared object file")
_BROKEN_FILE = ("invalid ELF header", "wrong ELF class", "file too short", "ELF load command", "not a valid Win32")
_ANOTHER = "load another variant; `python -m kernel_loader explain` says which fit this environment"


def explain(error: Exception, *, metadata: Metadata, module: str, variant: str, env: Environment) -> LoadFailed:
    """The error to raise for a kernel whose import failed.

    Args:
        error: What Python or the dynamic linker raised.
        metadata: Metadata of the kernel.
        module: Name that the kernel was imported under.
        variant: Name of the variant's folder.
        env: This process.
    """
    where, text = f"{metadata.name or module}, variant {variant}", str(error)
    if isinstance(error, ModuleNotFoundError) and error.name:
        return _missing_module(error.name, metadata, module, where)
    running = f"torch {env.torch}" if env.torch else "no torch"
    match = f"{_built_for(variant)}, running is {running}"
    if undefined := _UNDEFINED.search(text):
        message = f"The kernel does not fit this torch: {match}; the symbol {demangle(undefined[1])} is missing."
        return LoadFailed(message, where=where, detail=f"  {text}", hint=_ANOTHER)
    if version := _NEEDS_VERSION.search(text):
        owner = {"GLIBC": "C library (glibc)"}.get(version[1], "C++ library (libstdc++)")
        message = f"The kernel needs version {version[2]} of the {owner}, which is newer than this system's."
        hint = "use a newer system or container image"
        return LoadFailed(message, where=where, detail=f"  {text}", hint=hint)
    if library := _NO_LIBRARY.search(text):
        message = f"The kernel needs the library {library[1]}, which is not found: {match}."
        return LoadFailed(message, where=where, detail=f"  {text}", hint=_ANOTHER)
    if any(sign in text for sign in _BROKEN_FILE):
        message = f"The kernel's library is damaged or for another system: {match}."
        return LoadFailed(message, where=where, detail=f"  {text}", hint="fetch or build it anew")
    message = f"The kernel raised {type(error).__name__} while it was imported: {text}"
    return LoadFailed(message, where=where, detail=f"  {match}", hint="see the error above, which is the kernel's own")


def _missing_module(name: str, metadata: Metadata, module: str, where: str) -> LoadFailed:
    top = name.partition(".")[0]
    if top == module:
        return LoadFailed(f"The kernel imports {name}, which is not part of it.", where=where)
    if top == metadata.python_name:
        return LoadFailed(
            f"The kernel imports itself as {name}; it is loaded under its id {module}.",
            where=where,
            hint="in the kernel's source, import it relatively: `from . import …`",
        )
    message = f"The kernel imports the Python package {top}, which is not installed."
    return DependencyMissing(message, where=where, hint=f"pip install {top}")


def _built_for(variant: str) -> str:
    try:
        parsed = parse(variant)
    except VariantNameError:
        return "what it was built for is unknown"
    if not isinstance(parsed, ArchVariant):
        return "it is Python only"
    framework, backend = parsed.framework, parsed.backend
    abi = f" ({framework.cxx_abi} ABI)" if framework.cxx_abi else ""
    newer = " or newer" if framework.kind == "torch-stable-abi" else ""
    compute = f"{backend.name} {backend.version}" if backend.version else backend.name
    name = "tvm-ffi" if framework.kind == "tvm-ffi" else "torch"
    return f"built for {name} {framework.version}{newer}{abi} and {compute}"
