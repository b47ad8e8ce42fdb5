"""What check_variant says about a variant folder's name, metadata and files."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from elf_writer import SharedObject
from variant_writer import CPU, CUDA, STABLE, codes, write_variant

from kernel_builder.check import smoke
from kernel_builder.check.check import check_variant
from kernel_builder.processes import Completed

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.check.model import Finding


def check(path: Path) -> tuple[Finding, ...]:
    return check_variant(path, imports=False)


@pytest.mark.parametrize("name", [CPU, "torch213-cxx11-cpu-x86_64-linux", "torch-cpu", "torch-cuda", "torch-universal"])
def test_a_sound_variant_passes(tmp_path: Path, name: str) -> None:
    backend = {"backend": {"type": "cuda"}} if name == "torch-universal" else {}
    identity = {"id": "_rmsnorm_cuda_0123456789"} if name == "torch-universal" else {}
    assert codes(check(write_variant(tmp_path, name, metadata={**backend, **identity}))) == []


@pytest.mark.parametrize("name", ["nonsense", "torch210-cxx11-cu1310-x86_64-linux", "torch-stable-abi210"])
def test_a_folder_that_no_loader_would_find_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / name).mkdir()
    assert codes(check(tmp_path / name)) == ["variant-name"]


@pytest.mark.parametrize(
    "content", [None, b"", b"[]", b"{", b"\xff\xfe", b'{"name": 3}', b'{"name": "x", "version": -1}', b"[" * 100000]
)
def test_unreadable_metadata_is_a_finding(tmp_path: Path, content: bytes | None) -> None:
    path = write_variant(tmp_path)
    (path / "metadata.json").unlink()
    if content is not None:
        (path / "metadata.json").write_bytes(content)
    assert "metadata" in codes(check(path))


def test_a_folder_that_is_not_there_is_a_finding(tmp_path: Path) -> None:
    assert codes(check(tmp_path / CPU)) == ["variant-files"]


def test_a_link_out_of_the_folder_is_refused(tmp_path: Path) -> None:
    path = write_variant(tmp_path)
    (tmp_path / "secret").write_text("x")
    (path / "data.txt").symlink_to(tmp_path / "secret")
    assert codes(check(path)) == ["variant-files"]


@pytest.mark.parametrize(
    ("metadata", "expected"),
    [
        ({"backend": {"type": "cuda"}}, ["metadata", "metadata"]),
        ({"id": "_rmsnorm_cpu_ffffffffff"}, ["library", "library"]),
        ({"id": "_softmax_cpu_0123456789"}, ["metadata", "library", "library"]),
        ({"id": None}, ["metadata", "library", "library"]),
        ({"name": None}, ["metadata"]),
    ],
)
def test_metadata_that_contradicts_the_folder_is_refused(
    tmp_path: Path, metadata: dict[str, Any], expected: list[str]
) -> None:
    assert codes(check(write_variant(tmp_path, metadata=metadata))) == expected


def test_a_module_for_one_python_among_abi3_ones_is_refused(tmp_path: Path) -> None:
    extra = {"_C.cpython-312-x86_64-linux-gnu.so": SharedObject(imports=STABLE).write()}
    findings = check(write_variant(tmp_path, files=extra))
    assert set(codes(findings)) == {"python-abi"}
    assert all("_C.cpython-312" in f.where for f in findings if f.severity == "error")


@pytest.mark.parametrize("name", ["libs/libcudart-1f0a.so.12.8.90", "data.bin"])
def test_a_bundled_library_is_refused_whatever_its_name(tmp_path: Path, name: str) -> None:
    path = write_variant(tmp_path, CUDA, files={name: SharedObject(exports=[]).write()}, own=False)
    assert "library" in codes(check(path))


def test_machine_code_in_a_python_only_variant_is_refused(tmp_path: Path) -> None:
    path = write_variant(tmp_path, "torch-cuda", files={"_C.abi3.so": SharedObject().write()})
    assert codes(check(path)) == ["library"]


@pytest.mark.parametrize("damage", ["change", "remove", "add"])
def test_files_that_are_not_those_of_the_digest_are_named(tmp_path: Path, damage: str) -> None:
    path = write_variant(tmp_path, files={"layers.py": b"import torch\n"})
    if damage == "change":
        (path / "layers.py").write_bytes(b"import math\n")
    elif damage == "remove":
        (path / "layers.py").unlink()
    else:
        (path / "planted.py").write_bytes(b"import torch\n")
    findings = check(path)
    assert codes(findings) == ["digest"]
    assert ("planted.py" if damage == "add" else "layers.py") in findings[0].message


def test_a_missing_digest_refuses_our_variants_and_warns_about_others(tmp_path: Path) -> None:
    ours = check(write_variant(tmp_path / "a", metadata={"digest": None}))
    theirs = check(write_variant(tmp_path / "b", metadata={"digest": None}, own=False))
    assert [(f.code, f.severity) for f in (*ours, *theirs) if f.code == "digest"] == [
        ("digest", "error"),
        ("digest", "warning"),
    ]


def test_findings_are_plain_data(tmp_path: Path) -> None:
    found = check(write_variant(tmp_path, metadata={"digest": None}))
    assert json.loads(json.dumps([f.to_json() for f in found]))[0]["where"].startswith(f"rmsnorm/{CPU}: ")


@pytest.mark.parametrize(
    ("name", "torch", "reason"),
    [
        ("torch-stable-abi210-cpu-aarch64-linux", "2.13.0", "this machine is"),
        ("torch-stable-abi210-cpu-x86_64-linux", "2.9.1", "torch 2.9.1"),
        ("torch212-cxx11-cpu-x86_64-linux", "2.13.0+cpu", "torch212-cxx11"),
        ("torch-stable-abi210-cu128-x86_64-linux", "2.13.0+cpu", "without CUDA"),
        ("torch-cuda", "2.13.0+cpu", "without CUDA"),
    ],
)
def test_a_variant_that_cannot_run_here_is_noted_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, torch: str, reason: str
) -> None:
    monkeypatch.setattr(smoke.metadata, "version", lambda _: torch)
    monkeypatch.setattr(smoke.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(smoke.util, "find_spec", lambda _: None)
    monkeypatch.setattr(smoke.processes, "run", lambda *a, **k: pytest.fail("it was imported"))
    library = SharedObject(imports=STABLE, machine=183 if "aarch64" in name else 62).write()
    path = write_variant(tmp_path, name, library=library)
    notes = [f.message for f in check_variant(path) if f.code == "not-imported"]
    assert len(notes) == 1
    assert reason in notes[0]


@pytest.mark.parametrize(
    ("done", "expected"),
    [
        (Completed(status=0, stdout="", stderr=""), []),
        (Completed(status=-11, stdout="", stderr=""), ["signal 11"]),
        (Completed(status=3, stdout="not imported: no\nhello\n", stderr=""), ["exit status 3"]),
        (
            Completed(status=1, stdout="hi\n\nnot imported: LoadFailed: No.\n", stderr="x"),
            ["import it: LoadFailed: No."],
        ),
    ],
)
def test_what_the_fresh_interpreter_said_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, done: Completed, expected: list[str]
) -> None:
    monkeypatch.setattr(smoke.metadata, "version", lambda _: "2.13.0")
    monkeypatch.setattr(smoke.platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(smoke.processes, "run", lambda *a, **k: done)
    found = [f.message for f in check_variant(write_variant(tmp_path)) if f.code == "import"]
    assert len(found) == len(expected)
    assert all(text in message for text, message in zip(expected, found, strict=True))


def test_a_variant_with_errors_is_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smoke.processes, "run", lambda *a, **k: pytest.fail("it was imported"))
    assert codes(check_variant(write_variant(tmp_path, library=b"no"))) == ["not-an-elf"]
