"""A selection that found nothing → an error that leads with the nearest miss and says what to do about it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_loader.errors import NoCompatibleVariant
from kernel_loader.select import select

if TYPE_CHECKING:
    from kernel_loader.environment import Environment
    from kernel_loader.select import Selection

_SHOWN = 8
_HINTS = {
    "torch-version": "install a torch version that is listed, or ask the publisher for a build for yours",
    "stable-abi-newer": "install a newer torch",
    "stable-abi-major": "ask the publisher for a build for your torch",
    "cxx-abi": "install a torch wheel with the listed C++ ABI",
    "cuda-major": "install a torch build for a CUDA version that is listed",
    "cuda-minor": "install a torch build for a CUDA version that is listed, or a newer one of that major version",
    "no-torch": "install torch",
    "backend": "install a torch build for a backend that is listed",
    "tvm-ffi": "install the listed version of apache-tvm-ffi",
    "free-threaded": "use a Python with the global interpreter lock, or Python 3.15 or newer",
    "arch": "use another GPU, or ask the publisher for a build for yours; check_arch=False loads it all the same",
    "floor": "use a newer system or container image",
    "unknown-name": "upgrade kernel-loader",
}


def no_variant_error(
    selection: Selection, env: Environment, *, where: str, backend: str | None, newer: str = ""
) -> NoCompatibleVariant:
    """The error for a selection without a best variant.

    Args:
        selection: What was decided about each name.
        env: The environment it was decided for.
        where: Repository and version, or folder.
        backend: Backend that the caller asked for.
        newer: Another version of the kernel that has a compatible variant.
    """
    lines = [f"  {decision.name}: {decision.detail}" for decision in selection.decisions[:_SHOWN]]
    more = len(selection.decisions) - len(lines)
    lines += [f"  … and {more} more; `python -m kernel_loader explain` lists them"] if more > 0 else []
    return NoCompatibleVariant(
        "No variant of the kernel fits this environment.",
        where=where,
        detail="\n".join([f"  environment: {env}", *lines]),
        hint=_hint(selection, env, backend, newer),
    )


def _hint(selection: Selection, env: Environment, backend: str | None, newer: str) -> str:
    if not selection.decisions:
        return "nothing is published under this version; `python -m kernel_loader versions` lists what is"
    names = [decision.name for decision in selection.decisions]
    if (backend or env.backend) != "cpu" and select(names, env, "cpu").best:
        return "pass backend='cpu' to use its CPU variant"
    if newer:
        return f"{newer} has a variant for this environment"
    return _HINTS.get(selection.decisions[0].reason, "ask the publisher for a build for this environment")
