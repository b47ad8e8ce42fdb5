"""Device compilers: NVRTC with its headers and nvFatbin, from wheels. Nothing of an installed CUDA is looked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.toolchain.model import Toolkit

if TYPE_CHECKING:
    from kernel_builder.toolchain.lock import LockedItem
    from kernel_builder.toolchain.supply import Supply


def provide_toolkit(item: LockedItem, supply: Supply) -> Toolkit:
    """Bring a locked toolkit into the store.

    Raises:
        ToolchainError: It cannot be had.
        DigestError: What was found is not what the lock names.
    """
    root = supply.fetch(item)
    return Toolkit(
        version=item.version,
        release=item.release,
        digest=item.digest,
        root=root,
        nvrtc=root / item.libraries["nvrtc"],
        nvrtc_builtins=root / item.libraries["nvrtc_builtins"],
        nvfatbin=root / item.libraries["nvfatbin"],
        include=tuple(root / folder for folder in item.headers),
    )
