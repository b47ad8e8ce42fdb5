"""The places where pip would look for a wheel, and the files that they offer."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urljoin, urlsplit

import requests
from packaging.utils import canonicalize_name
from pypi_simple import NoSuchProjectError, ProjectPage, PyPISimple, UnsupportedContentTypeError

from kernel_builder.toolchain.index.session import Session, reason_of, redacted
from kernel_builder.toolchain.index.transfer import NoRangesError, RemoteFile, Transfer
from kernel_builder.toolchain.wheels import LocalFile, UnfitWheelError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from kernel_builder.reporting import Reporter
    from kernel_builder.toolchain.index.transfer import Meter
    from kernel_builder.toolchain.lock import LockedFile
    from kernel_builder.toolchain.pip_settings import PipSettings
    from kernel_builder.toolchain.wheels import ByteSource

_TAIL = 64 * 1024


class WrongBytesError(UnfitWheelError):
    """The content is not what the lock's digest names."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Candidate:
    """A file that an index or a find-links place offers.

    Attributes:
        location: Where it lies: a path of this machine or a URL.
        sha256: What the place says its digest is, if it does.
        size: What the place says its size is, in bytes.
        origin: The place, without credentials, for messages.
    """

    name: str
    version: str | None
    location: Path | str
    sha256: str | None
    size: int | None
    origin: str


class Index:
    """The places of one pip configuration.

    Attributes:
        received: Bytes that came over the network so far.
        failures: Why places could not be asked, one line each.
    """

    def __init__(
        self, settings: PipSettings, reporter: Reporter, *, pause: Callable[[float], None] = time.sleep
    ) -> None:
        self._settings, self._reporter, self._pause = settings, reporter, pause
        self._session = Session(settings)
        self._pages: dict[tuple[str | None, str], tuple[Candidate, ...]] = {}
        self.failures: list[str] = []

    @property
    def received(self) -> int:
        """Bytes that came over the network so far."""
        return self._session.received

    def close(self) -> None:
        """Close the connections."""
        self._session.close()

    def files(self, project: str) -> Iterator[Candidate]:
        """Files of a project, place after place (near ones first); a place is asked only when its turn comes."""
        links: list[tuple[str | None, bool]] = [(place, True) for place in self._settings.find_links]
        if not self._settings.no_index:
            links += [(place, False) for place in (self._settings.index_url, *self._settings.extra_index_urls)]
        for place, is_links in sorted(links, key=lambda link: _is_remote(link[0])):
            if (place, project) not in self._pages:
                self._pages[place, project] = self._ask(place, project, is_links=is_links)
            yield from self._pages[place, project]

    def _ask(self, place: str | None, project: str, *, is_links: bool) -> tuple[Candidate, ...]:
        origin = "the default index" if place is None else redacted(place)
        try:
            page = self._read_page(place, project, is_links=is_links)
        except NoSuchProjectError:
            self.failures.append(f"{origin}: has no project {project}")
            return ()
        except (requests.RequestException, UnsupportedContentTypeError, OSError, ValueError) as error:
            self.failures.append(f"{origin}: {reason_of(error)}")
            return ()
        near = not _is_remote(place)
        return tuple(
            Candidate(
                # Like pip: a link's text may be anything, the last part of its URL is the file's name.
                name=unquote(urlsplit(package.url).path.rpartition("/")[2]),
                version=package.version,
                location=_location(package.url),
                sha256=package.digests.get("sha256"),
                size=package.size,
                origin=origin,
            )
            for package in page.packages
            # A page from the network has no business with files of this machine.
            if near or _is_remote(package.url)
        )

    def _read_page(self, place: str | None, project: str, *, is_links: bool) -> ProjectPage:
        for wait in range(max(1, self._settings.retries)):
            try:
                return self._links_page(place, project) if is_links and place else self._project_page(place, project)
            except requests.exceptions.ChunkedEncodingError:  # noqa: PERF203 - each try is a transfer
                self._pause(0.25 * 2**wait)
        raise OSError("its page breaks off every time")

    def _project_page(self, place: str | None, project: str) -> ProjectPage:
        local = None if place is None else _local_path(place)
        if local is not None:
            return _html_page(local / canonicalize_name(project) / "index.html", project)
        simple = PyPISimple(session=self._session) if place is None else PyPISimple(place, session=self._session)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return simple.get_project_page(project)

    def _links_page(self, place: str, project: str) -> ProjectPage:
        local = _local_path(place)
        if local is None:
            response = self._session.get(place)
            response.raise_for_status()
            return ProjectPage.from_html(project, response.content, response.url)
        if local.is_dir():
            links = "".join(
                f'<a href="{path.resolve().as_uri()}">{path.name}</a>' for path in sorted(local.glob("*.whl"))
            )
            return ProjectPage.from_html(project, links)
        return _html_page(local, project)

    def transfer(self, url: str, meter: Meter) -> Transfer:
        """Requests for any URL, with this configuration's proxy, certificates and retries."""
        return Transfer(self._session, url, meter, self._pause, self._settings.retries)

    def open(self, candidate: Candidate, locked: LockedFile, spool: Path, meter: Meter) -> ByteSource:
        """Make a candidate readable: by ranges, or, where the server knows none, as a whole copy at ``spool``.

        Raises:
            UnfitWheelError: It cannot be had, or its size or declared digest is not the locked one.
        """
        if candidate.sha256 not in (None, locked.sha256):
            raise WrongBytesError(f"{candidate.name} has another SHA-256 there than the lock names")
        if isinstance(candidate.location, Path):
            source = _local_file(candidate.location)
            if source.size != locked.size:
                raise WrongBytesError(f"{candidate.name} has {source.size} bytes, not {locked.size}")
            return source
        transfer = self.transfer(candidate.location, meter)
        tail_start = max(0, locked.size - _TAIL)
        try:
            return RemoteFile(transfer, locked.size, tail_start)
        except NoRangesError:
            host = urlsplit(candidate.location).hostname
            self._reporter.note(f"{host} answers no range requests: downloading all of {candidate.name}")
        meter.expect(locked.size)
        if transfer.download(spool, locked.size) != locked.sha256:
            raise WrongBytesError(f"{candidate.name} is not the file that the lock names")
        return LocalFile(spool)


def _is_remote(place: str | None) -> bool:
    return place is None or _local_path(place) is None


def _local_path(place: str) -> Path | None:
    parts = urlsplit(place)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return None if parts.scheme in ("http", "https") else Path(place).expanduser()


def _location(url: str) -> Path | str:
    return _local_path(url) or url


def _html_page(path: Path, project: str) -> ProjectPage:
    if not path.is_file():
        raise NoSuchProjectError(project, path.as_uri())
    return ProjectPage.from_html(project, path.read_bytes(), urljoin(path.resolve().as_uri(), path.name))


def _local_file(path: Path) -> LocalFile:
    try:
        return LocalFile(path)
    except OSError as error:
        raise UnfitWheelError(f"{path.name}: {error.strerror}") from error
