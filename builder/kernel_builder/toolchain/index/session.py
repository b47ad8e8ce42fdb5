"""HTTP as pip is configured to speak it: proxy, certificates, credentials, time-outs and retries."""

from __future__ import annotations

import re
import warnings
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit, urlunsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase, HTTPBasicAuth
from requests.utils import get_netrc_auth
from urllib3.exceptions import InsecureRequestWarning
from urllib3.util import Retry

if TYPE_CHECKING:
    from kernel_builder.toolchain.pip_settings import PipSettings

LONGEST_WAIT = 60.0


class _BoundedRetry(Retry):
    """urllib3's retries, with a bound on what a server can make us wait."""

    def get_retry_after(self, response: Any) -> float | None:
        wait = super().get_retry_after(response)
        return None if wait is None else min(wait, LONGEST_WAIT)


class _Unchecked(HTTPAdapter):
    """Connections to hosts that the user told pip to trust."""

    def cert_verify(self, conn: Any, url: Any, verify: Any, cert: Any) -> None:  # noqa: ARG002 - that is its purpose
        super().cert_verify(conn, url, False, cert)  # type: ignore[no-untyped-call]  # noqa: FBT003

    def send(self, *args: Any, **kwargs: Any) -> requests.Response:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", InsecureRequestWarning)
            return super().send(*args, **kwargs)


class _Credentials(AuthBase):
    """User names and passwords of index URLs, used for files on the same host; otherwise netrc."""

    def __init__(self, urls: tuple[str, ...]) -> None:
        self._known = {
            (parts.scheme, parts.hostname, parts.port): (unquote(parts.username), unquote(parts.password or ""))
            for parts in map(urlsplit, urls)
            if parts.username
        }

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        parts = urlsplit(request.url or "")
        pair = self._known.get((parts.scheme, parts.hostname, parts.port)) or get_netrc_auth(request.url or "")
        return HTTPBasicAuth(*pair)(request) if pair else request


class Session(requests.Session):
    """A session with pip's proxy, certificates, time-outs and retries; counts the bytes it receives."""

    def __init__(self, settings: PipSettings) -> None:
        super().__init__()
        self.received = 0
        self._defaults: dict[str, Any] = {"timeout": settings.timeout}
        if settings.proxy:
            self._defaults["proxies"] = {"http": settings.proxy, "https": settings.proxy}
        if settings.cert:
            self._defaults["verify"] = settings.cert
        if settings.client_cert:
            self._defaults["cert"] = settings.client_cert
        urls = (settings.index_url or "", *settings.extra_index_urls, *settings.find_links)
        self.auth = _Credentials(urls)
        self._mount(settings)

    def _mount(self, settings: PipSettings) -> None:
        retry = _BoundedRetry(
            settings.retries, backoff_factor=0.25, status_forcelist=(429, 500, 502, 503, 504), redirect=10
        )
        for prefix in ("http://", "https://"):
            self.mount(prefix, HTTPAdapter(max_retries=retry))
        for host in settings.trusted_hosts:
            self.mount(f"https://{host}/", _Unchecked(max_retries=retry))
            if ":" not in host:
                self.mount(f"https://{host}:", _Unchecked(max_retries=retry))

    def request(self, method: str | bytes, url: str | bytes, *args: Any, **kwargs: Any) -> requests.Response:
        """Send with our defaults named in the call: requests lets the environment win over a session's own."""
        return super().request(method, url, *args, **{**self._defaults, **_given(kwargs)})

    def send(self, request: requests.PreparedRequest, **kwargs: Any) -> requests.Response:
        """Send, and count the bytes of a body that was read at once, as they came over the wire."""
        response = super().send(request, **kwargs)
        if not kwargs.get("stream"):
            self.received += response.raw.tell()
        return response


def _given(kwargs: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in kwargs.items() if value is not None}


def redacted(url: str) -> str:
    """A URL without user name and password."""
    parts = urlsplit(url)
    return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))


def reason_of(error: Exception) -> str:
    """The innermost cause, without the object addresses and URLs that urllib3 puts around it."""
    while isinstance(error, requests.RequestException) and error.args and isinstance(error.args[0], Exception):
        error = error.args[0]
    reason = getattr(error, "reason", None) or error
    text = re.sub(r"<[^>]*>:? ?|https?://\S*@", "", str(reason))
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
