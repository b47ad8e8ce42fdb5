"""What check_variant says about the library of a packaged variant, fault by fault."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from elf_writer import Section, SharedObject, write_object
from variant_writer import CPU, CUDA, FULL, STABLE, codes, make_artefact, write_variant

from kernel_builder.check.check import check_artefact, check_variant
from kernel_builder.toolchain.model import TorchSymbols
from kernel_builder.toolchain.symbols.tables import covered, shim
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.check.model import Finding


def check(folder: Path, library: SharedObject, name: str = CPU, *, own: bool = True) -> tuple[Finding, ...]:
    archs = () if backendless(name) else ("8.0",)
    path = write_variant(folder, name, library=library.write(), own=own, archs=archs)
    return tuple(f for f in check_variant(path, imports=False) if f.code != "archs")


def backendless(name: str) -> bool:
    return "-cu" not in name


def only(findings: tuple[Finding, ...], code: str) -> Finding:
    assert codes(findings) == [code], findings
    return next(f for f in findings if f.code == code)


def test_a_library_that_keeps_its_promises_has_no_findings(tmp_path: Path) -> None:
    assert codes(check(tmp_path, SharedObject(imports=STABLE))) == []


def test_the_floor_allows_its_own_versions(tmp_path: Path) -> None:
    at_the_floor = [
        "memfd_create@GLIBC_2.28@libc.so.6",
        "_ZSt4cout@GLIBCXX_3.4.24@libstdc++.so.6",
        "__cxa_throw@CXXABI_1.3.11@libstdc++.so.6",
        "_ZTIg@CXXABI_FLOAT128@libstdc++.so.6",
        "_ITM_foo@CXXABI_TM_1@libstdc++.so.6",
        "_Unwind_Resume@GCC_7.0.0@libgcc_s.so.1",
    ]
    needed = ["libc.so.6", "libstdc++.so.6", "libgcc_s.so.1"]
    assert codes(check(tmp_path, SharedObject(imports=at_the_floor, needed=needed))) == []


@pytest.mark.parametrize(
    ("symbol", "library", "version", "allowed"),
    [
        ("pthread_once", "libc.so.6", "GLIBC_2.34", "GLIBC_2.28"),
        ("arc4random", "libc.so.6", "GLIBC_2.36", "GLIBC_2.28"),
        ("_ZSt4cout", "libstdc++.so.6", "GLIBCXX_3.4.26", "GLIBCXX_3.4.24"),
        ("__cxa_x", "libstdc++.so.6", "CXXABI_1.3.13", "CXXABI_1.3.11"),
        ("_Unwind_y", "libgcc_s.so.1", "GCC_12.0.0", "GCC_7.0.0"),
        ("_dl_private", "libc.so.6", "GLIBC_PRIVATE", "GLIBC_2.28"),
    ],
)
def test_a_symbol_above_the_floor_is_named_with_both_versions(
    tmp_path: Path, symbol: str, library: str, version: str, allowed: str
) -> None:
    needed = ["libc.so.6", "libstdc++.so.6", "libgcc_s.so.1"]
    found = only(check(tmp_path, SharedObject(imports=[f"{symbol}@{version}@{library}"], needed=needed)), "glibc-floor")
    assert version in found.message
    assert allowed in found.message
    assert library in found.message
    assert found.where.endswith("_rmsnorm_cpu_0123456789.abi3.so")


@pytest.mark.parametrize("symbol", ["__libc_single_threaded", "malloc", "_ZNSt7__cxx1112basic_stringIcE7reserveEv"])
def test_a_system_name_without_a_version_is_refused(tmp_path: Path, symbol: str) -> None:
    needed = ["libc.so.6", "libstdc++.so.6"]
    only(check(tmp_path, SharedObject(imports=[symbol], needed=needed)), "unversioned-import")


def test_weak_names_without_a_version_are_fine(tmp_path: Path) -> None:
    assert codes(check(tmp_path, SharedObject(imports=["__cxa_finalize?", "__gmon_start__?"]))) == []


def test_a_driver_call_that_no_library_backs_is_refused(tmp_path: Path) -> None:
    only(check(tmp_path, SharedObject(imports=["cuLaunchKernel"]), CUDA), "unversioned-import")


@pytest.mark.parametrize(
    ("needed", "name"),
    [
        ("libcuda.so.1", CUDA),
        ("libtorch_python.so", CPU),
        ("libcudart-1f0ac2.so.12.8.90", CUDA),
        ("libcudart.so.12", CPU),
        ("libcudart.so.13", CUDA),
        ("libgomp.so.1", CPU),
        ("/usr/lib/libfoo.so", CPU),
    ],
)
def test_a_library_that_the_user_may_not_have_is_refused(tmp_path: Path, needed: str, name: str) -> None:
    found = only(check(tmp_path, SharedObject(needed=["libc.so.6", needed]), name), "needed")
    assert needed in found.message


def test_torch_and_the_runtime_of_the_same_cuda_are_allowed(tmp_path: Path) -> None:
    needed = ["libtorch.so", "libtorch_cpu.so", "libtorch_cuda.so", "libc10.so", "libc10_cuda.so", "libcudart.so.12"]
    nvcc = [Section(name=".nvFatBinSegment", kind=1, data=bytes(24))]
    library = SharedObject(imports=STABLE, needed=[*needed, "libc.so.6"], extra=nvcc)
    assert codes(check(tmp_path, library, CUDA)) == []


@pytest.mark.parametrize(
    ("symbol", "missing"),
    [
        ("_ZSt4cout@GLIBCXX_3.4@libstdc++.so.6", "libstdc++.so.6"),
        ("_Unwind_Resume@GCC_3.0@libgcc_s.so.1", "libgcc_s.so.1"),
    ],
)
def test_the_cxx_runtime_that_is_used_must_be_named(tmp_path: Path, symbol: str, missing: str) -> None:
    assert missing in only(check(tmp_path, SharedObject(imports=[symbol])), "needed").message


def test_a_run_path_into_the_builders_folders_is_refused(tmp_path: Path) -> None:
    assert "/build/lib" in only(check(tmp_path, SharedObject(runpath="$ORIGIN:/build/lib")), "rpath").message


def test_origin_is_a_fine_run_path(tmp_path: Path) -> None:
    assert codes(check(tmp_path, SharedObject(runpath="$ORIGIN"))) == []


def test_a_static_shared_by_all_kernels_of_a_process_is_refused(tmp_path: Path) -> None:
    found = only(check(tmp_path, SharedObject(exports=["PyInit_x", "_ZZ7countervE1n!"])), "gnu-unique")
    assert "-fno-gnu-unique" in found.hint


@pytest.mark.parametrize(("own", "severity"), [(True, "error"), (False, "warning")])
def test_a_visible_symbol_is_an_error_in_our_variants_and_a_warning_in_others(
    tmp_path: Path, own: bool, severity: str
) -> None:
    found = only(check(tmp_path, SharedObject(exports=["PyInit_x", "_ZN3foo3barEv"]), own=own), "exports")
    assert (found.severity, "foo::bar" in found.message) == (severity, True)


@pytest.mark.parametrize("stack", [7, None])
def test_an_executable_stack_is_refused(tmp_path: Path, stack: int | None) -> None:
    only(check(tmp_path, SharedObject(stack=stack)), "executable-stack")


def test_code_for_another_cpu_is_refused(tmp_path: Path) -> None:
    only(check(tmp_path, SharedObject(machine=183)), "machine")


def test_a_python_function_outside_the_limited_api_is_named(tmp_path: Path) -> None:
    library = SharedObject(
        imports=["PyModuleDef_Init", "PyLong_AsLong", "_PyObject_NextNotImplemented", "PyType_GetName"]
    )
    message = only(check(tmp_path, library), "python-abi").message
    assert "PyType_GetName" in message
    assert "_PyObject_NextNotImplemented" in message
    assert "PyLong_AsLong" not in message


@pytest.mark.parametrize("name", ["_rmsnorm.so", "_rmsnorm.cpython-312-x86_64-linux-gnu.so"])
def test_a_built_library_for_one_python_is_refused(tmp_path: Path, name: str) -> None:
    artefact, toolchain = make_artefact(tmp_path, SharedObject(imports=STABLE).write())
    assert codes(check_artefact(artefact, toolchain)) == []
    assert codes(check_artefact(replace(artefact, filename=name), toolchain)) == ["python-abi"]


def test_a_stable_variant_that_calls_into_aten_is_refused_by_name(tmp_path: Path) -> None:
    library = SharedObject(imports=[*STABLE, "_ZN2at5emptyEN3c108ArrayRefIlEE", "_ZTIN3c105ErrorE"])
    message = only(check(tmp_path, library), "torch-abi").message
    assert "at::empty" in message
    assert "typeinfo for c10::Error" in message


def test_a_shim_newer_than_the_variants_torch_is_refused(tmp_path: Path) -> None:
    library = SharedObject(imports=["torch_from_blob", "torch_call_dispatcher"])
    found = only(check(tmp_path, library), "torch-abi")
    assert "torch_from_blob (torch 2.11 and newer)" in found.message
    assert "torch_call_dispatcher" not in found.message
    newer = "torch-stable-abi211-cpu-x86_64-linux"
    assert codes(check(tmp_path / "newer", library, newer)) == []


def test_a_newer_shim_imported_weakly_is_fine(tmp_path: Path) -> None:
    assert codes(check(tmp_path, SharedObject(imports=["torch_from_blob?"]))) == []


def test_a_function_that_left_torch_again_is_refused(tmp_path: Path) -> None:
    gone = next(name for name, (_, last) in shim().items() if last < covered()[-1])
    found = only(check(tmp_path, SharedObject(imports=[gone])), "torch-abi")
    assert gone in found.message


def test_a_stable_cpu_variant_may_not_call_what_only_cuda_builds_have(tmp_path: Path) -> None:
    library = SharedObject(imports=["aoti_torch_get_current_cuda_stream"])
    message = only(check(tmp_path, library), "torch-abi").message
    assert "aoti_torch_get_current_cuda_stream" in message
    assert "cpu variant" in message
    assert codes(check(tmp_path / "cuda", library, CUDA)) == []


def test_a_full_abi_import_that_its_torch_does_not_export_is_named(tmp_path: Path) -> None:
    for backend in ("cpu", "cuda"):
        (tmp_path / f"{backend}.txt").write_text("_ZN2at5emptyEv\n")
    library = SharedObject(imports=["_ZN2at5emptyEv", "_ZN2at4goneEv"]).write()
    artefact, toolchain = make_artefact(tmp_path, library, name=FULL)
    version = artefact.plan.sdk
    symbols = {version: TorchSymbols(version=version, release="2.13.0", root=tmp_path)}
    found = [f for f in check_artefact(artefact, replace(toolchain, symbols=symbols)) if f.code == "torch-abi"]
    assert [f.message for f in found] == ["Torch 2.13.0 does not export at::gone."]


def test_a_full_abi_import_that_is_missing_is_named_with_torch_and_the_object_that_wants_it(tmp_path: Path) -> None:
    (tmp_path / "cpu.txt").write_text("_ZN2at5emptyEv\n")
    library = SharedObject(imports=["_ZN2at5emptyEv", "_ZN2at4goneEv", "_ZN2at4weakEv?"]).write()
    objects = {"binding.o": tmp_path / "binding.o", "other.o": tmp_path / "other.o"}
    objects["binding.o"].write_bytes(write_object("_ZN2at5emptyEv", "_ZN2at4goneEv"))
    objects["other.o"].write_bytes(write_object("_ZN2at5emptyEv"))
    artefact, toolchain = make_artefact(tmp_path, library, name=FULL, objects=objects)
    symbols = TorchSymbols(version=artefact.plan.sdk, release="2.13.0", root=tmp_path)
    found = check_artefact(artefact, replace(toolchain, symbols={symbols.version: symbols}))
    assert [f.message for f in found if f.code == "torch-abi"] == [
        "Torch 2.13.0 does not export at::gone (imported by binding.o)."
    ]


def test_a_full_abi_variant_on_disk_is_looked_up_in_the_tables_at_hand(tmp_path: Path) -> None:
    (tmp_path / "cpu.txt").write_text("_ZN2at5emptyEv\n")
    symbols = TorchSymbols(version=MajorMinor(2, 13), release="2.13.0", root=tmp_path)
    tables = {symbols.version: symbols}
    path = write_variant(tmp_path, FULL, library=SharedObject(imports=["_ZN2at5emptyEv"]).write())
    assert codes(check_variant(path, imports=False, symbols=tables)) == []
    assert "torch-symbols-unproven" not in [f.code for f in check_variant(path, imports=False, symbols=tables)]
    path = write_variant(tmp_path / "gone", FULL, library=SharedObject(imports=["_ZN2at4goneEv"]).write())
    assert codes(check_variant(path, imports=False, symbols=tables)) == ["torch-abi"]


def test_a_full_abi_variant_says_that_its_imports_are_unproven_and_how_to_prove_them(tmp_path: Path) -> None:
    findings = check(tmp_path, SharedObject(imports=["_ZN2at5emptyEv"]), FULL)
    assert codes(findings) == []
    (note,) = (f for f in findings if f.code == "torch-symbols-unproven")
    assert note.severity == "note"
    assert "torch 2.13" in note.message
    assert "kernel-builder build" in note.hint
