"""Moves bytes of one URL, in parts or as a whole, over connections that may break."""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING

import requests

from kernel_builder.toolchain.index.session import LONGEST_WAIT, reason_of
from kernel_builder.toolchain.wheels import UnfitWheelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from kernel_builder.reporting import Reporter
    from kernel_builder.toolchain.index.session import Session

_CHUNK = 256 * 1024
# A transfer that breaks off after this many bytes was worth the try, so it does not count as a failure.
_WORTH = 1 << 20
_BROKEN = (requests.ConnectionError, requests.exceptions.ChunkedEncodingError, requests.Timeout)
_CONTENT_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+)")


class NoRangesError(UnfitWheelError):
    """The server sends whole files only."""


class Meter:
    """Counts the bytes of one transfer and shows them; ``done`` reaches ``total`` only in ``finish``."""

    def __init__(self, label: str, reporter: Reporter) -> None:
        self._label, self._reporter, self._done, self._total = label, reporter, 0, 0

    def expect(self, count: int) -> None:
        """Say that this many bytes are still to come."""
        self._total = self._done + count

    def add(self, count: int) -> None:
        """Count bytes that arrived."""
        self._done += count
        self._reporter.progress(self._label, self._done, max(self._total, self._done + 1), "bytes")

    def finish(self) -> None:
        """Fill the bar, if any bytes came over the network."""
        if self._done:
            self._reporter.progress(self._label, self._done, self._done, "bytes")


class RemoteFile:
    """A wheel behind a URL; its last bytes, with the zip directory's end, are kept."""

    def __init__(self, transfer: Transfer, size: int, tail_start: int) -> None:
        self._transfer, self.size, self._tail_start = transfer, size, tail_start
        self._tail = transfer.read(tail_start, size, size=size)

    def read(self, start: int, stop: int) -> bytes:
        """Exactly the bytes from ``start`` up to ``stop``."""
        if start >= self._tail_start:
            return self._tail[start - self._tail_start : stop - self._tail_start]
        return self._transfer.read(start, stop)


class Transfer:
    """Requests for one URL that survive broken connections."""

    def __init__(self, session: Session, url: str, meter: Meter, pause: Callable[[float], None], retries: int) -> None:
        self._session, self._url, self._meter, self._pause, self._retries = session, url, meter, pause, retries

    def read(self, start: int, stop: int, *, size: int | None = None) -> bytes:
        """Bytes from ``start`` up to ``stop``, taken up where a broken connection left off.

        Raises:
            NoRangesError: The server knows no ranges.
            UnfitWheelError: The file is not ``size`` bytes long, or the connection breaks too often.
        """
        data = bytearray()

        def attempt() -> bool:
            with self._get(start + len(data), stop) as response:
                _check_range(response, start + len(data), stop, size)
                for chunk in self._chunks(response, stop - start - len(data)):
                    data.extend(chunk)
            return len(data) == stop - start

        self._until_done(attempt, lambda: len(data))
        return bytes(data)

    def read_all(self, most: int) -> bytes:
        """A whole file of at most ``most`` bytes."""
        data = b""

        def attempt() -> bool:
            nonlocal data
            with self._get() as response:
                data = b"".join(self._chunks(response, most))
            return True

        self._until_done(attempt, lambda: 0)
        return data

    def download(self, path: Path, size: int) -> str:
        """Write the whole file to ``path``; returns its hex SHA-256."""
        digest = hashlib.sha256()

        def attempt() -> bool:
            nonlocal digest
            digest, count = hashlib.sha256(), 0
            with self._get() as response, path.open("wb") as file:
                for chunk in self._chunks(response, size):
                    digest.update(chunk)
                    count += file.write(chunk)
            return count == size

        self._until_done(attempt, lambda: 0)
        return digest.hexdigest()

    def _until_done(self, attempt: Callable[[], bool], position: Callable[[], int]) -> None:
        failures, mark, reason = 0, 0, "the server sent too little"
        while True:
            try:
                if attempt():
                    return
            except _BROKEN as error:
                reason = reason_of(error)
            failures = 1 if position() - mark >= _WORTH else failures + 1
            mark = position()
            if failures > self._retries:
                raise UnfitWheelError(f"the transfer broke off {failures} times: {reason}")
            self._pause(min(0.25 * 2**failures, LONGEST_WAIT))

    def _get(self, start: int | None = None, stop: int | None = None) -> requests.Response:
        # identity: a range of a packed body would be a range of something else.
        headers = {"Accept-Encoding": "identity"}
        if start is not None and stop is not None:
            headers["Range"] = f"bytes={start}-{stop - 1}"
        try:
            response = self._session.get(self._url, headers=headers, stream=True)
        except requests.RequestException as error:
            raise UnfitWheelError(reason_of(error)) from error
        if response.status_code not in (requests.codes.ok, requests.codes.partial_content):
            response.close()
            raise UnfitWheelError(f"the server answers {response.status_code} {response.reason}")
        return response

    def _chunks(self, response: requests.Response, at_most: int) -> Iterator[bytes]:
        for chunk in response.iter_content(_CHUNK):
            at_most -= len(chunk)
            if at_most < 0:
                raise UnfitWheelError("the server sent more bytes than it was asked for")
            self._session.received += len(chunk)
            self._meter.add(len(chunk))
            yield chunk


def _check_range(response: requests.Response, start: int, stop: int, size: int | None) -> None:
    if response.status_code == requests.codes.ok:
        raise NoRangesError("the server answers no range requests")
    match = _CONTENT_RANGE.fullmatch(response.headers.get("Content-Range", ""))
    if not match:
        raise UnfitWheelError("the server does not say which bytes it sends")
    first, last, total = (int(number) for number in match.groups())
    if (first, last + 1) != (start, stop) or size not in (None, total):
        raise UnfitWheelError(f"the server sent bytes {first}-{last}/{total}, not {start}-{stop - 1}/{size or total}")
