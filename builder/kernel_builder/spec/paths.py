"""Paths of a spec stay inside the kernel folder: in what is written, and in what symbolic links make of it."""

from __future__ import annotations

from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from kernel_builder.spec.kinds import Kind, text

if TYPE_CHECKING:
    from kernel_builder.spec.faults import Place

_TEXT = text()


def _written(value: object, at: Place) -> str | None:
    raw = _TEXT.check(value, at)
    if raw is None:
        return None
    path = PurePosixPath(raw)
    if path.is_absolute() or raw[1:2] == ":":
        at.fault(f"{raw!r} is absolute; paths are relative to the kernel folder")
    elif "\\" in raw:
        at.fault(f"{raw!r} contains a backslash; paths are written with /")
    elif ".." in path.parts:
        at.fault(f"{raw!r} leaves the kernel folder")
    elif any(part[0] in "-@" for part in path.parts):
        at.fault(f"{raw!r} has a part that begins with - or @, which compilers take for a flag")
    else:
        return str(path)
    return None


PATH = Kind(label="string", check=_written)


def is_inside(path: Path, *folders: Path | None) -> bool:
    """Whether a path, with all links followed, lies in one of the folders."""
    real = path.resolve()
    return any(folder is not None and real.is_relative_to(folder.resolve()) for folder in folders)


def exists(path: Path) -> bool:
    """Whether something is there; False too for a name that no file can have."""
    try:
        return path.exists()
    except OSError:
        return False


def check_file(root: Path, path: str, at: Place) -> bool:
    """Note a fault unless ``path`` is a regular file inside ``root``."""
    full = root / path
    if not exists(full):
        globbed = any(sign in path for sign in "*?[")
        at.fault(f"the file {path} does not exist", "patterns are not expanded; list each file" if globbed else "")
    elif not is_inside(full, root):
        at.fault(f"{path} is a link that leaves the kernel folder")
    elif not full.is_file():
        at.fault(f"{path} is not a file")
    else:
        return True
    return False


def check_folder(root: Path, path: str, at: Place) -> bool:
    """Note a fault unless ``path`` is a folder inside ``root``."""
    full = root / path
    if not (exists(full) and full.is_dir()):
        at.fault(f"the folder {path} does not exist")
    elif not is_inside(full, root):
        at.fault(f"{path} is a link that leaves the kernel folder")
    else:
        return True
    return False
