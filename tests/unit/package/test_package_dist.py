"""What lies in dist after packaging."""

from __future__ import annotations

import json
import os
import tarfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from kernel_builder.check.model import Finding
from kernel_builder.errors import CheckError, SpecError, UsageError
from kernel_builder.package import archive
from kernel_builder.package.package import package
from kernel_builder.package.read import packaged_variants, unpack_sources
from kernel_loader.format.digest import digest_of

if TYPE_CHECKING:
    from pathlib import Path

CPU = "torch213-cxx11-cpu-x86_64-linux"
CUDA = "torch-stable-abi210-cu128-x86_64-linux"


def tree(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def pack(kernel, make_artefact, toolchain, settings, tmp_path):
    def run(*artefacts, findings=None, of=kernel, out=tmp_path / "dist", **options):
        made = artefacts or (make_artefact(of), make_artefact(of, CUDA, ("8.0", "12.0", "12.0+PTX", "9.0")))
        return package(of, made, toolchain, findings or {}, out=out, settings=settings, **options)

    return run


def test_a_variant_holds_python_files_library_ops_module_and_metadata(pack) -> None:
    distribution = pack()
    folder = distribution.root / "build" / CPU
    op_id = distribution.variants[1].metadata.id
    assert sorted(tree(folder)) == ["__init__.py", "_ops.py", f"{op_id}.abi3.so", "layers.py", "metadata.json"]
    assert f"torch.ops.{op_id}" in (folder / "_ops.py").read_text()


def test_the_digest_covers_every_file(pack) -> None:
    variant = pack().variants[1]
    assert digest_of(tree(variant.path)) == variant.metadata.digest


def test_metadata_says_what_the_variant_is_made_of(pack) -> None:
    distribution = pack()
    written = json.loads((distribution.root / "build" / CUDA / "metadata.json").read_bytes())
    assert written["name"] == "toy"
    assert written["version"] == 2
    assert written["backend"] == {"type": "cuda", "archs": ["12.0+PTX", "8.0", "9.0"]}
    assert written["python-depends"] == []
    facts = written["kernel-builder"]
    assert facts["toolkit"] == {"release": "12.8.93", "digest": "71" * 32}
    assert facts["source-digest"] == distribution.source_digest
    assert facts["floors"]["glibc"].startswith("2.")
    assert "archs" not in json.loads((distribution.root / "build" / CPU / "metadata.json").read_bytes())["backend"]


def test_an_arch_that_one_device_source_lacks_is_not_declared(pack, make_artefact, kernel) -> None:
    full = make_artefact(kernel, CUDA, ("8.0", "9.0", "12.0+PTX"))
    plan = replace(full.plan, archs={**full.plan.archs, "second": full.plan.archs["toy"][:1]})
    archs = pack(replace(full, plan=plan)).variants[0].metadata.archs
    assert [str(a) for a in archs] == ["8.0"]


def test_nothing_names_a_folder_of_this_machine(pack, tmp_path) -> None:
    for name, data in tree(pack().root).items():
        assert str(tmp_path).encode() not in data, name


def test_folder_umask_and_time_do_not_change_a_byte(pack, make_kernel, make_artefact, tmp_path) -> None:
    first = tree(pack().root)
    deep = make_kernel(tmp_path / "some" / "deeper" / "place")
    for path in deep.root.rglob("*.py"):
        os.utime(path, (1, 1))
    previous = os.umask(0o077)
    try:
        second = pack(of=deep, out=tmp_path / "elsewhere").root
    finally:
        os.umask(previous)
    assert tree(second) == first
    assert {oct(p.stat().st_mode & 0o777) for p in (second / "build").rglob("*")} == {"0o644", "0o755"}


def test_packaging_twice_rewrites_nothing(pack) -> None:
    root = pack().root
    before = {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in root.rglob("*")}
    pack()
    assert {path: (path.stat().st_ino, path.stat().st_mtime_ns) for path in root.rglob("*")} == before


def test_a_replaced_variant_keeps_no_old_file(pack) -> None:
    folder = pack().root / "build" / CPU
    (folder / "stale.py").write_text("old = True\n")
    (folder / "__init__.py").write_text("tampered\n")
    pack()
    assert "stale.py" not in tree(folder)
    assert (folder / "__init__.py").read_text().startswith("__all__")


def test_a_failure_while_writing_leaves_the_old_variant_whole(pack, make_kernel, monkeypatch) -> None:
    folder = pack().root / "build" / CPU
    before = tree(folder)
    changed = make_kernel(**{"torch-ext/toy/layers__py": "class Toy2:\n    pass\n"})
    real = archive._write

    def fail_late(path: Path, data: bytes) -> None:
        if path.name == "metadata.json":
            raise OSError(28, "No space left on device", str(path))
        real(path, data)

    monkeypatch.setattr(archive, "_write", fail_late)
    with pytest.raises(OSError, match="No space"):
        pack(of=changed)
    assert tree(folder) == before
    assert [p.name for p in folder.parents[1].iterdir() if p.name.startswith(".")] == []


def test_what_a_killed_run_left_behind_is_cleared(pack) -> None:
    root = pack().root
    (root / ".staging-dead" / "new").mkdir(parents=True)
    (root / ".staging-file").write_text("")
    pack()
    assert [p.name for p in root.iterdir() if p.name.startswith(".")] == []


def test_a_variant_with_an_error_finding_is_left_out(pack, make_artefact, kernel) -> None:
    label = make_artefact(kernel).plan.label
    refusal = Finding(code="glibc-floor", severity="error", where=label, message="too new")
    assert [v.name for v in pack(findings={label: (refusal,)}).variants] == [CUDA]
    assert [v.name for v in pack(findings={label: (replace(refusal, severity="warning"),)}).variants] == [CUDA, CPU]


def test_variants_of_other_runs_stay_unless_pruned(pack, make_artefact, kernel) -> None:
    pack()
    only = make_artefact(kernel)
    assert len(list((pack(only).root / "build").iterdir())) == 2
    assert [p.name for p in (pack(only, prune=True).root / "build").iterdir()] == [CPU]


def test_a_source_that_changes_during_the_build_is_refused(pack, kernel) -> None:
    (kernel.root / "torch-ext/toy/__init__.py").write_text("changed = 1\n")
    with pytest.raises(SpecError, match="changed while") as caught:
        pack()
    assert caught.value.where.endswith("torch-ext/toy/__init__.py")


def test_a_kernel_cannot_bring_the_generated_module(pack, make_kernel) -> None:
    with pytest.raises(SpecError, match=r"_ops\.py is generated"):
        pack(of=make_kernel(**{"torch-ext/toy/_ops__py": "x = 1\n"}))


def test_the_card_is_filled(pack) -> None:
    text = (pack().root / "README.md").read_text()
    assert text.startswith("# acme/toy v2\n")
    assert f"- {CUDA}\n- {CPU}\n" in text
    assert "['run']" in text


def test_an_unknown_variable_in_the_card_is_an_error_with_its_file(pack, make_kernel) -> None:
    with pytest.raises(SpecError, match="'colour' is undefined") as caught:
        pack(of=make_kernel(CARD__md="{{ colour }}"))
    assert caught.value.where.endswith("CARD.md")
    assert "repo_id" in caught.value.hint


def test_the_source_archive_rebuilds_and_tests_the_kernel(pack, tmp_path) -> None:
    distribution = pack()
    with tarfile.open(distribution.root / "source.tar.gz") as tar:
        entries = tar.getmembers()
    assert [e.name for e in entries] == sorted(e.name for e in entries)
    assert {(e.uid, e.gid, e.mtime, e.mode) for e in entries} == {(0, 0, 0, 0o644)}
    assert {"toy/build.toml", "toy/tests/test_toy.py", "common/include/kb/base.h"} <= {e.name for e in entries}
    unpacked = unpack_sources(distribution.variants[0], tmp_path / "fresh")
    assert (unpacked / "toy" / "tests" / "test_toy.py").is_file()


def test_an_archive_that_leaves_its_folder_is_refused(pack, tmp_path) -> None:
    variant = pack().variants[0]
    hostile = archive.tar_bytes({"../outside.py": b"x"}, epoch=0)
    (variant.path.parents[1] / "source.tar.gz").write_bytes(hostile)
    with pytest.raises(CheckError, match="not a safe relative path"):
        unpack_sources(variant, tmp_path / "fresh")
    assert not (tmp_path / "outside.py").exists()


def test_source_date_epoch_reaches_the_archive(pack, settings) -> None:
    assert archive.tar_bytes({"a": b"1"}, epoch=0) != archive.tar_bytes({"a": b"1"}, epoch=10)


def test_reading_back_gives_what_was_written(pack) -> None:
    distribution = pack()
    assert packaged_variants(distribution.root) == distribution.variants
    assert packaged_variants(distribution.variants[1].path) == distribution.variants[1:]


def test_reading_an_empty_folder_names_the_next_command(tmp_path) -> None:
    with pytest.raises(UsageError, match="No packaged variant") as caught:
        packaged_variants(tmp_path)
    assert "kernel-builder build" in caught.value.hint


def test_unreadable_metadata_is_a_finding_not_a_crash(pack) -> None:
    distribution = pack()
    (distribution.variants[0].path / "metadata.json").write_text("{")
    with pytest.raises(CheckError, match="cannot be read"):
        packaged_variants(distribution.root)
