"""Digests that name a kernel's sources, and the id that makes a built module unique."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from kernel_builder.files import tree_digest, tree_lines

if TYPE_CHECKING:
    from kernel_builder.spec.model import Kernel


def source_digest(kernel: Kernel) -> str:
    """Hex SHA-256 over every build input.

    The hashed bytes are, for each entry of ``Kernel.sources`` in ascending order of its path: the path, a NUL, the
    file's hex digest, a newline; all in UTF-8.
    """
    return tree_digest(kernel.sources)


def uid(kernel: Kernel, backend: str) -> str:
    """First 10 hex digits of the identity digest of one backend's build.

    The hashed bytes are ``kernel-builder uid 1``, a newline, then name, version in decimal and backend, each followed
    by a newline, then the bytes that ``source_digest`` hashes; all in UTF-8.
    """
    head = f"kernel-builder uid 1\n{kernel.name}\n{kernel.version}\n{backend}\n".encode()
    return hashlib.sha256(head + tree_lines(kernel.sources)).hexdigest()[:10]
