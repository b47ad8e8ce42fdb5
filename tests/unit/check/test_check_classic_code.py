"""Libraries with code that nvcc compiled: whose it is, for which architectures, and the run time it needs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from elf_writer import Section, SharedObject, fatbin_section, write_cubin, write_elf, write_fatbin, write_region
from variant_writer import CUDA, STABLE, codes, make_artefact, write_variant

from kernel_builder.check.check import check_artefact, check_variant
from kernel_builder.check.resources import resources
from kernel_builder.spec.model import Component
from kernel_loader.format.archs import Arch

if TYPE_CHECKING:
    from pathlib import Path

    from kernel_builder.compile.model import Artefact
    from kernel_builder.toolchain.model import Toolchain

SEGMENT = Section(name=".nvFatBinSegment", kind=1, data=bytes(24))
SOURCES = ("csrc/first.cu", "csrc/second.cu")


def fatbin(entry: str, *archs: str, shared: int = 0) -> bytes:
    regions = []
    for arch in map(Arch.parse, archs):
        sm = arch.major * 10 + arch.minor
        code = b".version 8.7\n" if arch.ptx else write_cubin(sm, feature=arch.feature, entry=entry, shared=shared)
        regions.append(write_region(sm, code, ptx=arch.ptx, feature=arch.feature))
    return write_fatbin(*regions)


def classic(
    folder: Path, fatbins: dict[str, bytes], planned: tuple[str, ...], *, needed: tuple[str, ...] = ()
) -> tuple[Artefact, Toolchain]:
    """A library of one component ``ops``, an object for each source, whose fat binaries nvcc left unnamed."""
    objects = {}
    for source, data in fatbins.items():
        objects[source] = folder / f"{source.replace('/', '-')}.o"
        objects[source].write_bytes(write_elf([fatbin_section(data)], machine=62, kind=1))
    library = SharedObject(
        imports=STABLE,
        extra=[fatbin_section(*fatbins.values()), SEGMENT],
        **({"needed": [*SharedObject().needed, *needed]} if needed else {}),
    ).write()
    artefact, toolchain = make_artefact(folder, library, name=CUDA, objects=objects)
    component = Component(key="ops", backend="cuda", depends=(), sources=tuple(fatbins))
    kernel = replace(artefact.plan.kernel, components=(component,))
    archs = {"kernel.ops": tuple(map(Arch.parse, planned))}
    return replace(artefact, plan=replace(artefact.plan, kernel=kernel, archs=archs)), toolchain


def errors(artefact: Artefact, toolchain: Toolchain) -> list[str]:
    return [f.message for f in check_artefact(artefact, toolchain) if f.code == "archs"]


def test_every_source_of_a_component_has_the_planned_code(tmp_path: Path) -> None:
    archs = ("8.0", "9.0a", "12.0", "12.0+PTX")
    fatbins = {source: fatbin(f"entry{n}", *archs) for n, source in enumerate(SOURCES)}

    assert errors(*classic(tmp_path, fatbins, archs)) == []


def test_a_source_that_lacks_an_architecture_is_found_beside_one_that_has_it(tmp_path: Path) -> None:
    fatbins = {SOURCES[0]: fatbin("a", "8.0", "9.0a"), SOURCES[1]: fatbin("b", "8.0")}

    (message,) = errors(*classic(tmp_path, fatbins, ("8.0", "9.0a")))
    assert message == "kernel.ops: machine code for 9.0a is promised but not inside."


def test_an_architecture_that_a_flag_brought_in_is_found(tmp_path: Path) -> None:
    fatbins = {SOURCES[0]: fatbin("a", "7.5", "8.0")}

    (message,) = errors(*classic(tmp_path, fatbins, ("8.0",)))
    assert message == "kernel.ops: machine code for 7.5 is inside but not promised."


def test_code_that_is_in_no_object_is_nobodys(tmp_path: Path) -> None:
    artefact, toolchain = classic(tmp_path, {SOURCES[0]: fatbin("a", "8.0")}, ("8.0",))
    artefact.library.write_bytes(
        SharedObject(imports=STABLE, extra=[fatbin_section(fatbin("other", "8.0")), SEGMENT]).write()
    )

    assert any("which the kernel does not plan" in message for message in errors(artefact, toolchain))


def test_two_sources_with_the_same_code_are_two(tmp_path: Path) -> None:
    assert errors(*classic(tmp_path, {source: fatbin("same", "8.0") for source in SOURCES}, ("8.0",))) == []


def test_the_static_fit_covers_what_nvcc_compiled(tmp_path: Path) -> None:
    artefact, toolchain = classic(tmp_path, {SOURCES[0]: fatbin("big", "8.6", shared=120 * 1024)}, ("8.6",))

    assert [f.code for f in check_artefact(artefact, toolchain) if f.severity == "error"] == ["shared-memory"]
    assert resources(artefact)["kernel.ops"]["8.6"]["big"]["shared"] == 120 * 1024


def test_an_object_that_cannot_be_read_is_a_finding(tmp_path: Path) -> None:
    artefact, toolchain = classic(tmp_path, {SOURCES[0]: fatbin("a", "8.0")}, ("8.0",))
    artefact.objects[SOURCES[0]].write_bytes(b"\x7fELF cut off")

    assert "fatbin" in [f.code for f in check_artefact(artefact, toolchain)]


def test_cudas_run_time_is_needed_by_what_nvcc_compiled_and_by_nothing_else(tmp_path: Path) -> None:
    code = fatbin_section(fatbin("a", "8.0"))
    needs = SharedObject(imports=STABLE, needed=[*SharedObject().needed, "libcudart.so.12"], extra=[code])
    path = write_variant(tmp_path / "driver", CUDA, library=needs.write(), archs=("8.0",))
    assert codes(check_variant(path, imports=False)) == ["needed"]
    nvcc = replace(needs, extra=[code, SEGMENT])
    path = write_variant(tmp_path / "classic", CUDA, library=nvcc.write(), archs=("8.0",))
    assert codes(check_variant(path, imports=False)) == []


def test_the_run_time_of_another_cuda_major_is_refused(tmp_path: Path) -> None:
    other = SharedObject(
        imports=STABLE,
        needed=[*SharedObject().needed, "libcudart.so.13"],
        extra=[fatbin_section(fatbin("a", "8.0")), SEGMENT],
    )
    path = write_variant(tmp_path, CUDA, library=other.write(), archs=("8.0",))
    assert codes(check_variant(path, imports=False)) == ["needed"]
