"""Brings a locked toolkit or SDK into the store, from the index when the store lacks it."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from kernel_builder.errors import DigestError
from kernel_builder.files import tree_digest
from kernel_builder.toolchain.pip_settings import read_pip_settings
from kernel_builder.toolchain.store import install
from kernel_builder.toolchain.symbols.tables import folder_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import TypeAlias

    from kernel_builder.reporting import Reporter
    from kernel_builder.settings import Settings
    from kernel_builder.toolchain.index.places import Index
    from kernel_builder.toolchain.index.transfer import Transfer
    from kernel_builder.toolchain.lock import LockedItem

    Complete: TypeAlias = Callable[[Path], Mapping[str, str]]

_FOLDERS = {"toolkit": ("toolkits", "nvrtc"), "torch": ("sdks", "torch"), "nvcc": ("toolkits", "nvcc")}


class Supply:
    """Where locked items come from: the store, else the index, which is set up when it is first needed."""

    def __init__(self, settings: Settings, reporter: Reporter) -> None:
        self._settings, self._reporter, self._apart = settings, reporter, 0

    @cached_property
    def _index(self) -> Index:
        # Here, not above: what the store has needs no HTTP client.
        from kernel_builder.toolchain.index.places import Index

        return Index(read_pip_settings(self._settings.path, self._reporter), self._reporter)

    @property
    def received(self) -> int:
        """Bytes fetched over the network so far."""
        return self._apart + (self._index.received if "_index" in self.__dict__ else 0)

    def count(self, received: int) -> None:
        """Count bytes that another program, such as apt, fetched."""
        self._apart += received

    def transfer(self, url: str, label: str) -> Transfer:
        """Requests for a URL that is no index's, counted and shown like the others."""
        from kernel_builder.toolchain.index.transfer import Meter

        return self._index.transfer(url, Meter(label, self._reporter))

    def close(self) -> None:
        """Close the index's connections, if there are any."""
        if "_index" in self.__dict__:
            self._index.close()

    def folder_of(self, item: LockedItem) -> Path:
        """Where the item lies in the store, or would."""
        kind, name = _FOLDERS[item.kind]
        return self._settings.store / kind / f"{name}-{item.release}-{item.digest[:12]}"

    def fetch(self, item: LockedItem, complete: Complete | None = None) -> Path:
        """The item's folder, downloaded first if the store lacks it.

        Args:
            item: What to fetch.
            complete: Adds to a new folder what no wheel has; returns path → hex SHA-256 of what it added.

        Raises:
            ToolchainError: No index has one of its wheels, or the store cannot be written.
            DigestError: Wheels of the right name were found, but none holds the locked bytes.
        """
        target = self.folder_of(item)
        return install(
            self._settings.store,
            target.parent.name,
            target.name,
            lambda scratch: self._fill(item, scratch, complete),
            self._reporter,
        )

    def symbols(self, item: LockedItem) -> Path:
        """Folder of the tables of names that a torch release exports, read out of its wheel if the store lacks them.

        Raises:
            ToolchainError: No index has its wheel, or the store cannot be written.
            DigestError: The wheels that were found export other names than the lock says.
        """
        target = folder_of(item, self._settings.store)
        return install(
            self._settings.store,
            target.parent.name,
            target.name,
            lambda scratch: self._read(item, scratch),
            self._reporter,
        )

    def _read(self, item: LockedItem, scratch: Path) -> None:
        from kernel_builder.toolchain.fetch import take_symbols

        for name, data in take_symbols(item.wheels[0], item.symbols, self._index, scratch, self._reporter).items():
            (scratch / name).write_bytes(data)

    def _fill(self, item: LockedItem, scratch: Path, complete: Complete | None) -> None:
        from kernel_builder.toolchain.fetch import take

        files: dict[str, str] = {}
        for wheel in item.wheels:
            files.update(take(wheel, self._index, scratch, self._reporter))
        if complete:
            files.update(complete(scratch))
        if tree_digest(files) != item.digest:
            raise DigestError(
                f"The files of {item.label} are not those that the lock names.", hint="reinstall kernel-builder"
            )
