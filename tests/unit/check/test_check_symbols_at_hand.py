"""What was said of a variant before its torch's exports were at hand is said anew once they are."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING

from elf_writer import SharedObject
from variant_writer import codes, write_variant

from kernel_builder.reporting import SilentReporter
from kernel_builder.test.importing import import_variants
from kernel_builder.toolchain.lock import read_lock
from kernel_builder.toolchain.symbols.tables import folder_of
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from pathlib import Path

NAME = "torch27-cxx11-cpu-x86_64-linux"  # of a torch that the tests do not run with, so that nothing is imported


def test_tables_that_arrive_later_replace_what_was_remembered_without_them(tmp_path: Path) -> None:
    path = write_variant(tmp_path / "build", NAME, library=SharedObject(imports=["_ZN2at4goneEv"]).write())
    variant = SimpleNamespace(name=NAME, path=path, digest="d" * 64, metadata=SimpleNamespace(commit=None))
    distribution = SimpleNamespace(root=tmp_path, variants=(variant,))
    store = tmp_path / "store"

    def findings():
        return dict(import_variants(distribution, store, SilentReporter()))[NAME]

    for _ in range(2):
        assert "torch-symbols-unproven" in [finding.code for finding in findings()]
    tables = folder_of(read_lock().sdk(MajorMinor(2, 7)), store)
    tables.mkdir(parents=True)
    (tables / "cpu.txt").write_text("_ZN2at5emptyEv\n")
    assert codes(findings()) == ["torch-abi"]
