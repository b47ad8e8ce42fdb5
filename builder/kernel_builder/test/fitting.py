"""Asks a fresh Python, which may import torch, what the running environment is and which variants fit it."""

from __future__ import annotations

import json
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from kernel_builder.errors import NoVariantError, ToolchainError
from kernel_builder.processes import run
from kernel_builder.test.model import Machine, Unfit
from kernel_loader.environment import Environment
from kernel_loader.format.variants import Backend, parse
from kernel_loader.select import refine, select

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from kernel_builder.package.model import PackagedVariant

_PROBE = """
import json
import torch
from kernel_loader.probe import probe
gpu = torch.cuda.is_available()
name = torch.cuda.get_device_name() if gpu else "cpu"
print(json.dumps({"environment": probe().to_json(), "device": name}))
"""


def probe(device: str, env: Mapping[str, str]) -> tuple[Environment, Machine]:
    """The environment of ``device`` (``cpu`` or ``cuda``) as the loader sees it.

    Raises:
        ToolchainError: torch cannot be imported.
        NoVariantError: ``cuda`` is asked for and torch sees no GPU.
    """
    done = run([sys.executable, "-c", _PROBE], env=env)
    if done.status != 0:
        raise ToolchainError(
            "Tests need torch, which cannot be imported.",
            where=sys.executable,
            hint="install torch into this environment",
            detail=done.stderr.strip()[-2000:],
        )
    answer: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    environment = Environment.from_dict(answer["environment"])
    if device == "cuda" and not environment.capabilities:
        hint = "run on a machine with a GPU and a CUDA build of torch, or test with --device cpu"
        raise NoVariantError(f"torch {environment.torch} sees no CUDA device.", where=sys.executable, hint=hint)
    if device == "cpu":
        return environment, Machine(device="cpu", capability=None, torch=str(environment.torch))
    capability = ".".join(map(str, environment.capabilities[0]))
    return environment, Machine(device=answer["device"], capability=capability, torch=str(environment.torch))


def fitting(
    variants: Sequence[PackagedVariant], environment: Environment, device: str, *, across_cuda: bool = False
) -> tuple[tuple[PackagedVariant, ...], tuple[Unfit, ...]]:
    """Split variants into those that can run and those that cannot, with the loader's reason.

    With ``across_cuda`` a variant made for another CUDA release than torch's counts as one that can run.
    """
    fit, unfit = [], []
    for variant in variants:
        env = _with_cuda_of(variant.name, environment) if across_cuda else environment
        # One at a time: every variant that fits is tested, not only the best one.
        selection = select([variant.name], env, backend=device)
        decision = refine(selection, {variant.name: variant.metadata}.__getitem__, env).decisions[0]
        if decision.accepted:
            fit.append(variant)
        else:
            unfit.append(Unfit(variant=variant.name, reason=decision.detail or decision.reason))
    return tuple(fit), tuple(unfit)


def _with_cuda_of(name: str, environment: Environment) -> Environment:
    backend = parse(name).backend
    if isinstance(backend, Backend) and backend.name == environment.backend == "cuda":
        return replace(environment, cuda=backend.version)
    return environment
