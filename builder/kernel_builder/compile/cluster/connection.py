"""Reaches the cluster: ``dask://HOST:PORT`` → a client whose workers are checked."""

from __future__ import annotations

import asyncio
import logging
import re
import warnings
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kernel_builder.compile.cluster.worker import own_version
from kernel_builder.errors import ToolchainError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator

_SCHEMES = {"dask": "tcp", "dask+tls": "tls"}
_ADDRESS = re.compile(r"([\w+]+)://([^\s/@]+:\d{1,5})")
_TIMEOUT = 5  # seconds


def scheduler_address(executor: str) -> str:
    """``dask://HOST:PORT`` → ``tcp://HOST:PORT``, ``dask+tls://HOST:PORT`` → ``tls://HOST:PORT``.

    Raises:
        UsageError: It is neither.
        ToolchainError: dask is not installed.
    """
    found = _ADDRESS.fullmatch(executor)
    if found is None or found[1] not in _SCHEMES:
        raise UsageError(
            f"{executor!r} names no executor.",
            where="--executor",
            hint="dask://HOST:PORT, the address of the scheduler",
        )
    if find_spec("distributed") is None:
        raise ToolchainError("dask.distributed is not installed.", hint="pip install 'kernel-builder[build,cluster]'")
    return f"{_SCHEMES[found[1]]}://{found[2]}"


@contextmanager
def connected(address: str) -> Iterator[Any]:
    """A ``distributed.Client``; every worker that is there has this version of kernel-builder.

    Raises:
        ToolchainError: The scheduler does not answer, or a worker is not one of ours.
    """
    from distributed import Client

    # What it has to say, such as attempts to reconnect, ends up in our own errors.
    for name in ("distributed", "distributed.client"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            client = Client(address, timeout=_TIMEOUT, set_as_default=False, name="kernel-builder")
        except (OSError, asyncio.TimeoutError, ValueError) as error:
            raise ToolchainError(
                "The scheduler of the cluster does not answer.",
                where=address,
                hint="start it: dask scheduler --port PORT",
                detail=str(error),
            ) from error
        try:
            _check_versions(client)
            yield client
        finally:
            with suppress(OSError, asyncio.TimeoutError):
                client.close(timeout=2)


def live_workers(client: Any) -> dict[str, int]:
    """Address → threads of the workers that the scheduler has; none when it does not answer."""
    try:
        return dict(client.sync(client.scheduler.ncores, callback_timeout=_TIMEOUT))
    except (OSError, asyncio.TimeoutError):
        return {}


def _check_versions(client: Any) -> None:
    for worker, answer in client.run(own_version, on_error="return").items():
        if answer != own_version() and not isinstance(answer, OSError):  # that one is just going away
            has = f"kernel-builder {answer}" if isinstance(answer, str) else "no kernel-builder that can be used"
            raise ToolchainError(
                f"The worker {worker} has {has}, this is {own_version()}.",
                where=str(client.scheduler.address),
                hint=f"pip install 'kernel-builder[build,cluster]=={own_version()}' where it runs, and start it again",
                detail="" if isinstance(answer, str) else repr(answer),
            )
