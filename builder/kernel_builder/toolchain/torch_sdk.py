"""Headers of torch versions, taken out of their wheels."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.toolchain.model import TorchSdk

if TYPE_CHECKING:
    from kernel_builder.toolchain.lock import LockedItem
    from kernel_builder.toolchain.supply import Supply


def provide_sdk(item: LockedItem, supply: Supply) -> TorchSdk:
    """Bring the headers of a locked torch version into the store.

    Raises:
        ToolchainError: They cannot be had.
        DigestError: What was found is not what the lock names.
    """
    root = supply.fetch(item)
    return TorchSdk(
        version=item.version,
        release=item.release,
        digest=item.digest,
        root=root,
        include=tuple(root / folder for folder in item.headers),
    )
