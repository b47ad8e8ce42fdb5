"""The variant imports in a fresh interpreter that has not seen torch, where the installed torch can run it."""

from __future__ import annotations

import platform
import sys
from importlib import metadata, util
from pathlib import Path
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING

from kernel_builder import processes
from kernel_loader.format.variants import ArchVariant, Variant
from kernel_loader.format.versions import MajorMinor
from kernel_loader.probe import cpu_name

if TYPE_CHECKING:
    from collections.abc import Iterator

    from kernel_builder.check.model import Finding
    from kernel_builder.check.package_files import Package

_MARK = "not imported: "
# Its last line names the error and what caused it; the kernel's own output may come before.
_PROGRAM = f"""
import sys
from pathlib import Path
import kernel_loader
try:
    assert "torch" not in sys.modules, "the loader imported torch before the kernel did"
    module = kernel_loader.get_local_kernel(Path(sys.argv[1]), backend=sys.argv[2] or None, check_arch=False)
    missing = [name for name in getattr(module, "__all__", ()) if not hasattr(module, name)]
    assert not missing, f"__all__ names {{missing}}, which the module lacks"
except BaseException as error:
    chain = [error]
    while chain[-1].__cause__ is not None:
        chain.append(chain[-1].__cause__)
    texts = [f"{{type(e).__name__}}: {{getattr(e, 'message', e)}}".replace(chr(10), " ") for e in chain]
    print(chr(10) + {_MARK!r} + " <- ".join(texts))
    sys.exit(1)
"""
_SECONDS = 300


def check_import(package: Package) -> Iterator[Finding]:
    """The module loads through the loader (``import``); a note says why it was not tried (``not-imported``)."""
    reason = obstacle(package.variant)
    if reason:
        yield package.finding("not-imported", f"Importing it was not tried: {reason}.", file=".", severity="note")
        return
    try:
        argv = [sys.executable, "-c", _PROGRAM, str(package.path), _backend(package.variant)]
        done = processes.run(argv, timeout=_SECONDS)
    except (OSError, TimeoutExpired) as error:
        yield package.finding("import", f"A fresh Python did not import it: {error}.", file=".")
        return
    if done.status != 0:
        yield package.finding("import", f"A fresh Python cannot import it: {_last_words(done).rstrip('.')}.", file=".")


def obstacle(variant: Variant) -> str:
    """Why this environment cannot import a variant, empty when it can; torch is looked up, not imported."""
    try:
        torch = metadata.version("torch")
    except metadata.PackageNotFoundError:
        return "torch is not installed here"
    backend = _backend(variant)
    if isinstance(variant, ArchVariant):
        here = (cpu_name(), platform.system().lower())
        if (variant.cpu, variant.os) != here:
            return f"this machine is {'-'.join(here)}"
        if not _torch_fits(variant, MajorMinor.parse(torch)):
            return f"it is for {variant.framework}, and torch {torch} is installed here"
    if backend == "cuda" and not _torch_has("libtorch_cuda.so"):
        return f"torch {torch} here is built without CUDA"
    return "" if backend in ("", "cpu", "cuda") else f"backend {backend} is not tried"


def _backend(variant: Variant) -> str:
    """What to ask the loader for: torch with CUDA runs cpu variants too. Empty for torch's own choice."""
    if isinstance(variant, ArchVariant):
        return variant.backend.name
    return "" if variant.backend == "universal" else variant.backend


def _torch_fits(variant: ArchVariant, torch: MajorMinor) -> bool:
    framework = variant.framework
    if framework.kind == "torch":
        return torch == framework.version
    return framework.kind == "torch-stable-abi" and torch >= framework.version


def _torch_has(library: str) -> bool:
    spec = util.find_spec("torch")
    return spec is not None and spec.origin is not None and (Path(spec.origin).parent / "lib" / library).is_file()


def _last_words(done: processes.Completed) -> str:
    if done.status < 0:
        return f"it died of signal {-done.status}"
    last = done.stdout.rstrip().rpartition("\n")[2]
    return last.removeprefix(_MARK) if last.startswith(_MARK) else f"it ended with exit status {done.status}"
