"""Takes the wanted files out of a ``.tar.xz`` archive, and nothing that would lie elsewhere."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from kernel_builder.errors import ToolchainError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def unpack_archive(archive: Path, folder: Path, wanted: Callable[[str], bool]) -> dict[str, str]:
    """Write files whose name below the archive's own top folder is ``wanted``; links are returned, not made.

    Made later, by ``make_links``, a link cannot lead a following file elsewhere.

    Returns:
        Name of a symbolic link → its target, both relative to ``folder``.

    Raises:
        ToolchainError: It is no such archive, or it holds names, links or kinds of files that it must not.
    """
    links = {}
    try:
        with tarfile.open(archive, "r:xz") as tar:
            for member in tar:
                name = _below_top(member, archive)
                if not name or not wanted(name) or member.isdir():
                    continue
                if member.issym():
                    links[name] = _target(name, member.linkname, archive)
                elif member.isreg():
                    _write(tar, member, folder / name)
                else:
                    raise ToolchainError(
                        f"The archive holds {member.name!r}, which is no plain file.", where=archive.name
                    )
    except (tarfile.TarError, EOFError, OSError) as error:
        raise ToolchainError(f"The archive cannot be unpacked: {error}.", where=archive.name) from error
    return links


def make_links(folder: Path, links: dict[str, str]) -> None:
    """Make symbolic links whose targets exist below ``folder``; others are left out."""
    for name, target in links.items():
        path = folder / name
        if (folder / target).exists() and not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            up = "../" * (len(PurePosixPath(name).parts) - 1)
            path.symlink_to(f"{up}{target}")


def _below_top(member: tarfile.TarInfo, archive: Path) -> str:
    parts = PurePosixPath(member.name).parts
    if member.name.startswith("/") or ".." in parts or "\\" in member.name or not member.name.isprintable():
        raise ToolchainError(f"The archive holds {member.name!r}, outside its folder.", where=archive.name)
    return "/".join(parts[1:])


def _target(name: str, linkname: str, archive: Path) -> str:
    """The link's target relative to the folder, which it must not leave on its way either."""
    parts = list(PurePosixPath(name).parent.parts)
    for part in PurePosixPath(linkname).parts:
        if part == "/" or (part == ".." and not parts):
            raise ToolchainError(f"The archive's link {name!r} leads outside its folder.", where=archive.name)
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, path: Path) -> None:
    source = tar.extractfile(member)
    if source is None:
        raise tarfile.ReadError(f"{member.name} has no content")
    path.parent.mkdir(parents=True, exist_ok=True)
    with source, path.open("wb") as file:
        shutil.copyfileobj(source, file)
    path.chmod(0o755 if member.mode & 0o111 else 0o644)
