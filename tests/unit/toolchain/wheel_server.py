"""A package index on the loopback address that misbehaves on demand, and wheels small enough to serve from it."""

from __future__ import annotations

import hashlib
import io
import json
import re
import struct
import threading
import zipfile
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

from kernel_builder.files import tree_digest
from kernel_builder.toolchain.lock import LockedFile, LockedItem, LockedWheel
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Mapping

NAME = "headers-1.0-py3-none-manylinux_2_28_x86_64.whl"
# Random-looking, so that packing does not make the ballast small.
BALLAST = b"".join(hashlib.sha256(struct.pack("<I", number)).digest() for number in range(40_000))
FILES = {"pkg/include/a.h": b"#pragma once\n" * 9000, "pkg/include/sub/b.h": b"int b;\n", "pkg/version.py": b"v = 1\n"}


def wheel_bytes(files: Mapping[str, bytes], *, ballast: bool = True) -> bytes:
    """A wheel with the given members and, behind the first of them, a megabyte that nobody asks for."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, (name, content) in enumerate(files.items()):
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)
            if ballast and number == 0:
                archive.writestr("pkg/lib/big.so", BALLAST)
        archive.writestr("headers-1.0.dist-info/RECORD", b"")
    return buffer.getvalue()


def locked_wheel(data: bytes, files: Mapping[str, bytes] = FILES, name: str = NAME) -> LockedWheel:
    """The lock's entry for a wheel that holds ``files``."""
    return LockedWheel(
        project="headers",
        version="1.0",
        include=("pkg/include/*", "pkg/version.py"),
        tree=tree_digest({path: hashlib.sha256(content).hexdigest() for path, content in files.items()}),
        members=len(files),
        unpacked=sum(map(len, files.values())),
        files=(LockedFile(name=name, sha256=hashlib.sha256(data).hexdigest(), size=len(data)),),
    )


def locked_item(wheel: LockedWheel) -> LockedItem:
    """A torch SDK made of one wheel."""
    return LockedItem(
        kind="torch",
        version=MajorMinor(1, 0),
        release="1.0.0",
        digest=wheel.tree,
        headers=("pkg/include",),
        libraries={},
        wheels=(wheel,),
    )


@dataclass
class Script:
    """What the server serves and how.

    Attributes:
        wheels: File name → content of the project ``headers``.
        ranges: Whether it answers range requests.
        faults: Taken one per file request: ``"503"``, ``"404"``, ``"429"``, ``"cut"`` (half the body, then the
            connection breaks), ``"lie"`` (other bytes than asked for).
        hashes: Whether the page carries digests.
        json_page: Whether the page is JSON, which also carries sizes.
        page: The page, instead of one that lists ``wheels``.
        requests: ``(path, Range header, Authorization header)`` in order.
    """

    wheels: dict[str, bytes] = field(default_factory=dict)
    ranges: bool = True
    faults: list[str] = field(default_factory=list)
    page_faults: list[str] = field(default_factory=list)
    hashes: bool = True
    json_page: bool = False
    page: bytes = b""
    requests: list[tuple[str, str, str]] = field(default_factory=list)

    @property
    def file_ranges(self) -> list[str]:
        """Range headers of requests for files."""
        return [ranges for path, ranges, _ in self.requests if path.startswith("/files/")]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def log_message(self, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self.script.requests.append((self.path, self.headers.get("Range", ""), self.headers.get("Authorization", "")))
        if self.path in ("/simple/headers/", "/links.html"):
            return self._body(
                self.script.page or self._page(),
                {},
                fault=self.script.page_faults.pop(0) if self.script.page_faults else "",
            )
        data = self.script.wheels.get(self.path.removeprefix("/files/"))
        if data is None:
            return self._body(b"", {}, status=404)
        return self._file(data, self.script.faults.pop(0) if self.script.faults else "")

    def _page(self) -> bytes:
        if self.script.json_page:
            files = [
                {
                    "filename": name,
                    "url": f"/files/{name}",
                    "hashes": {"sha256": hashlib.sha256(data).hexdigest()},
                    "size": len(data),
                }
                for name, data in self.script.wheels.items()
            ]
            return json.dumps({"meta": {"api-version": "1.1"}, "name": "headers", "files": files}).encode()
        rows = []
        for name, data in self.script.wheels.items():
            fragment = f"#sha256={hashlib.sha256(data).hexdigest()}" if self.script.hashes else ""
            rows.append(f'<a href="/files/{name}{fragment}">{name}</a>')
        return "\n".join(["<!DOCTYPE html><html><body>", *rows, "</body></html>"]).encode()

    def _file(self, data: bytes, fault: str) -> None:
        if fault.isdigit():
            return self._body(b"no", {"Retry-After": "0"}, status=int(fault))
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        if not asked or not self.script.ranges:
            return self._body(data, {}, fault=fault)
        start, stop = int(asked[1]), int(asked[2]) + 1
        if start >= len(data):
            return self._body(b"", {}, status=416)
        part = data[start:stop]
        if fault == "lie":
            start += 1
        headers = {"Content-Range": f"bytes {start}-{start + len(part) - 1}/{len(data)}"}
        return self._body(part, headers, status=206, fault=fault)

    def _body(self, body: bytes, headers: Mapping[str, str], *, status: int = 200, fault: str = "") -> None:
        self.send_response(status)
        kind = "application/vnd.pypi.simple.v1+json" if self.script.json_page else "text/html"
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        if fault == "cut":
            self.wfile.write(body[: len(body) // 2])
            self.close_connection = True
            return
        self.wfile.write(body)


class WheelServer:
    """Serves a Script until closed."""

    def __init__(self) -> None:
        self.script = Script()
        handler = type("Handler", (_Handler,), {"script": self.script})
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        self._server.daemon_threads = True
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True)
        self._thread.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}"

    @property
    def simple(self) -> str:
        return f"{self.url}/simple"

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
