"""CUDA toolkits that are nothing but a script that answers like nvcc, and the few files that are looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_SCRIPT = """#!/bin/sh
here=$(dirname "$(readlink -f "$0")")
last=
for word in "$@"; do
  case "$word" in
    --version) echo "Cuda compilation tools, release {version}, V{release}"; exit 0;;
    {refused}) echo "nvcc fatal   : Unknown option '$word'" >&2; exit 1;;
  esac
done
echo "#\\$ _HERE_=$here" >&2
"""


def host_config(newest: int) -> str:
    """The part of ``crt/host_config.h`` that bounds the host compiler."""
    return f"""#if defined(__GNUC__)

#if __GNUC__ > {newest}

#error -- unsupported GNU version! gcc versions later than {newest} are not supported!

#endif /* __GNUC__ > {newest} */
"""


def toolkit_files(release: str, *, newest: int = 13, refused: str = "--no-such-flag") -> dict[str, bytes]:
    """Path → content of a complete toolkit; everything in a folder ``bin`` is a program."""
    major, minor, _ = release.split(".")
    script = _SCRIPT.format(version=f"{major}.{minor}", release=release, refused=refused)
    return {
        "bin/nvcc": script.encode(),
        "bin/ptxas": b"ptxas " + release.encode(),
        "bin/cudafe++": b"cudafe++",
        "nvvm/bin/cicc": b"cicc",
        "include/cuda_runtime.h": b"",
        "include/crt/host_config.h": host_config(newest).encode(),
        f"lib/libcudart.so.{major}": b"",
    }


def make_toolkit(folder: Path, release: str, *, newest: int = 13, refused: str = "--no-such-flag") -> Path:
    """Write such a toolkit; returns its nvcc."""
    for name, content in toolkit_files(release, newest=newest, refused=refused).items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(0o755 if path.parent.name == "bin" else 0o644)
    return folder / "bin/nvcc"
