"""What runs again after a change: exactly what the change can reach, and the reason is said."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from compile_trio import Bench

from kernel_builder.compile import run as compile_run
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.toolchain

FULL_ABI_LINK = "trio/torch213-cxx11-cpu-x86_64-linux"
LINKS = {f"trio/torch-stable-abi210-{backend}-x86_64-linux" for backend in ("cpu", "cu128", "cu130")} | {FULL_ABI_LINK}
IDENTITIES = {"trio: identity cpu", "trio: identity cuda"}
TOOLKITS = ("12.8", "13.0")


def device(name: str, toolkits: tuple[str, ...] = TOOLKITS) -> set[str]:
    targets = {
        "plus": ("sm_80", "sm_90", "compute_90"),
        "times": ("sm_80", "sm_90", "compute_90"),
        "hopper": ("sm_90a",),
    }
    return {f"trio: csrc/{name}.cu {t} [device {name}, CUDA {k}]" for t in targets[name] for k in toolkits}


def packed(*names: str, toolkits: tuple[str, ...] = TOOLKITS) -> set[str]:
    fatbins = {f"trio: {name}.fatbin [CUDA {k}]" for name in names for k in toolkits}
    return fatbins | {f"trio: device images [CUDA {k}]" for k in toolkits}


@pytest.fixture(scope="module")
def first(tmp_path_factory: pytest.TempPathFactory) -> Bench:
    bench = Bench.make(tmp_path_factory.mktemp("first"))
    result = bench.build()
    assert result.reused == 0
    assert len(result.compiled) == len(set(result.compiled))
    everything = device("plus") | device("times") | device("hopper") | packed("plus", "times", "hopper")
    assert everything | IDENTITIES | LINKS < set(result.compiled)
    return bench


@pytest.fixture
def bench(first: Bench, tmp_path: Path) -> Bench:
    """Another checkout of trio, beside a copy of the store of the first build."""
    shutil.copytree(first.store, tmp_path / "store", copy_function=os.link)
    return Bench.make(tmp_path)


def test_an_unchanged_rebuild_in_another_checkout_runs_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def started(*_: object, **__: object) -> int:
        raise AssertionError("a program was started")

    monkeypatch.setattr(compile_run, "stream", started)
    result = bench.build()
    assert (result.compiled, result.log) == ((), None)
    assert result.reused == len(list(bench.store.glob("units/*/*")))
    assert bench.notes.notes == []
    assert all(artefact.library.is_file() for artefact in result.artefacts)


def test_a_changed_python_file_compiles_only_identities(bench: Bench) -> None:
    bench.edit("torch-ext/trio/__init__.py", "Test kernel", "A test kernel")
    assert set(bench.build().compiled) == IDENTITIES | LINKS


def test_a_changed_binding_compiles_one_object_per_sdk(bench: Bench) -> None:
    bench.edit("torch-ext/torch_binding.cpp", "float32 is needed", "float32, please")
    bindings = {f"trio: torch-ext/torch_binding.cpp [torch {sdk} ABI]" for sdk in ("2.10 stable 2.10", "2.13 full")}
    assert set(bench.build().compiled) == bindings | IDENTITIES | LINKS


def test_a_changed_device_source_compiles_once_per_arch_and_toolkit(bench: Bench) -> None:
    bench.edit("csrc/plus.cu", "+ 1;", "+ 1.0f;")
    assert set(bench.build().compiled) == device("plus") | packed("plus") | IDENTITIES | LINKS


def test_a_header_with_an_old_time_stamp_still_counts(bench: Bench) -> None:
    header = bench.edit("csrc/index.cuh", "256ll", "256LL")
    os.utime(header, (978307200, 978307200))
    result = bench.build()
    expected = device("plus") | device("times") | packed("plus", "times") | IDENTITIES | LINKS
    assert set(result.compiled) == expected
    assert [note for note in bench.notes.notes if note.startswith("csrc/index.cuh changed: trio: csrc/plus.cu sm_80")]


def test_a_header_of_the_shared_code_reaches_its_includers_only(bench: Bench) -> None:
    header = bench.folder.parent / "common" / "include" / "kb" / "driver.h"
    header.write_text(header.read_text() + "\n")
    result = bench.build()
    assert set(result.compiled) == (
        {"trio: csrc/step_cuda.cpp [trio_cuda]", "common/src/cuda/driver.cpp"} | IDENTITIES | LINKS
    )


def test_a_changed_flag_reaches_its_component_only(bench: Bench) -> None:
    bench.edit(
        "build.toml", '"csrc/step_cpu.cpp", "csrc/step.h"]', '"csrc/step_cpu.cpp", "csrc/step.h"]\ncxx-flags = ["-O3"]'
    )
    result = bench.build()
    assert set(result.compiled) == {"trio: csrc/step_cpu.cpp [trio_cpu]"} | IDENTITIES | LINKS
    assert "flags changed (+-O3): trio: csrc/step_cpu.cpp [trio_cpu]" in bench.notes.notes


def test_another_architecture_compiles_that_one_only(bench: Bench) -> None:
    bench.edit("kernel-builder.toml", '["9.0a"]', '["9.0a", "10.0"]')
    added = {f"trio: csrc/hopper.cu sm_100 [device hopper, CUDA {k}]" for k in TOOLKITS}
    with pytest.raises(Exception, match="compile step failed"):  # wgmma does not exist there
        bench.build()
    bench.edit("csrc/hopper.cu", '  asm volatile("wgmma.fence.sync.aligned;");\n', "")
    assert set(bench.build().compiled) == added | device("hopper") | packed("hopper") | IDENTITIES | LINKS


def test_another_toolkit_compiles_its_device_code_only(bench: Bench) -> None:
    toolchain = bench.toolchain()
    version = MajorMinor(12, 8)
    patched = replace(toolchain.toolkits[version], digest="0" * 64)
    result = bench.build(replace(toolchain, toolkits={**toolchain.toolkits, version: patched}))
    expected = set().union(*(device(name, ("12.8",)) for name in ("plus", "times", "hopper")))
    expected |= packed("plus", "times", "hopper", toolkits=("12.8",)) | {"trio/torch-stable-abi210-cu128-x86_64-linux"}
    assert set(result.compiled) == expected
    assert any(note.startswith("CUDA toolkit 12.8 changed: ") for note in bench.notes.notes)


def test_another_torch_sdk_compiles_its_binding_only(bench: Bench) -> None:
    toolchain = bench.toolchain()
    version = MajorMinor(2, 13)
    patched = replace(toolchain.sdks[version], digest="0" * 64)
    result = bench.build(replace(toolchain, sdks={**toolchain.sdks, version: patched}))
    assert set(result.compiled) == {
        "trio: torch-ext/torch_binding.cpp [torch 2.13 full ABI]",
        FULL_ABI_LINK,
    }


def test_a_truncated_result_is_not_taken(bench: Bench) -> None:
    library = bench.build().artefacts[0].library
    content = library.read_bytes()
    library.unlink()
    library.write_bytes(content[: len(content) // 2])
    result = bench.build()
    assert result.compiled == ("trio/torch-stable-abi210-cpu-x86_64-linux",)
    assert result.artefacts[0].library.read_bytes() == content
    assert any(note.startswith("the result in the store is gone or damaged: ") for note in bench.notes.notes)
