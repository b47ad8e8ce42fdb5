"""The compile stage from outside: what runs, what is kept, what the user is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_toolchain import Workshop

from kernel_builder.errors import CompileError

BINDING = "copycat: binding.cpp [torch 2.10 stable 2.10 ABI]"
PARTS = [f"copycat: csrc/part{n}.cpp [copycat_cpu]" for n in range(2)]
IDENTITY = "copycat: identity cpu"
LINK = "copycat/torch-stable-abi210-cpu-x86_64-linux"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop.make(tmp_path)


def test_a_first_build_compiles_each_unit_once(workshop: Workshop) -> None:
    result = workshop.build(jobs=2)
    assert sorted(result.compiled) == sorted([BINDING, *PARTS, IDENTITY, LINK])
    assert (result.reused, result.failed) == (0, {})
    assert result.compiled[-1] == LINK
    assert workshop.notes.steps == [(done, 5) for done in range(1, 6)]
    artefact = result.artefacts[0]
    assert list(artefact.objects) == ["binding.cpp", "csrc/part0.cpp", "csrc/part1.cpp", "identity"]
    library = artefact.library.read_text()
    assert library.startswith('binding\n#include "part.h"\npart 0\n#include "part.h"\npart 1\n')
    assert f'kb_namespace[] = "{artefact.plan.op_id}"' in library
    assert 'kb_dispatch_key[] = "CPU"' in library


def test_an_unchanged_build_runs_nothing(workshop: Workshop) -> None:
    workshop.build()
    before = workshop.calls()
    result = workshop.build()
    assert (result.compiled, result.reused, result.log) == ((), 5, None)
    assert workshop.calls() == before


def test_a_header_counts_whatever_its_time_stamp(workshop: Workshop) -> None:
    workshop.build()
    header = workshop.kernel / "csrc" / "part.h"
    header.write_text("other header\n")
    os.utime(header, (0, 0))
    assert set(workshop.build().compiled) == {*PARTS, LINK}
    assert f"csrc/part.h changed: {PARTS[0]}, {PARTS[1]}" in workshop.notes.notes
    assert f"made of the above: {LINK}" in workshop.notes.notes


def test_a_touched_file_does_not_count(workshop: Workshop) -> None:
    workshop.build()
    (workshop.kernel / "csrc" / "part.h").touch()
    assert workshop.build().compiled == ()


def test_an_edit_that_is_taken_back_needs_no_compiler(workshop: Workshop) -> None:
    workshop.build()
    source = workshop.kernel / "binding.cpp"
    source.write_text("changed\n")
    assert BINDING in workshop.build().compiled
    source.write_text("binding\n")
    assert workshop.build().compiled == ()


def test_another_compiler_compiles_everything_again(workshop: Workshop) -> None:
    workshop.build()
    workshop.identity = "copying compiler 2"
    assert len(workshop.build().compiled) == 5
    assert any(note.startswith("host compiler changed: ") for note in workshop.notes.notes)


def test_a_flag_reaches_the_units_it_is_for(workshop: Workshop) -> None:
    workshop.build()
    workshop.flags = ("-O3",)
    assert set(workshop.build().compiled) == {*PARTS, LINK}
    assert f"flags changed (+-O3): {PARTS[0]}, {PARTS[1]}" in workshop.notes.notes


def test_the_number_of_jobs_is_said_before_compiling(workshop: Workshop) -> None:
    workshop.build(jobs=3)
    assert workshop.notes.notes[0] == "compiling 5 units, 3 at once, as asked for"


def test_a_failing_step_shows_command_error_and_log(workshop: Workshop) -> None:
    (workshop.kernel / "csrc" / "part1.cpp").write_text("#error\n")
    with pytest.raises(CompileError) as caught:
        workshop.build(jobs=1)
    error = caught.value
    assert (error.exit_code, error.where) == (5, PARTS[1])
    source = workshop.kernel / "csrc" / "part1.cpp"
    said, command, log = error.detail.split("\n")[0], *error.detail.split("\n")[-2:]
    assert said == f" {source}:1: error: as asked for"
    assert command.startswith(f"command: {workshop.folder}/bin/c++ ")
    assert str(source) in command
    path = Path(log.removeprefix("log: "))
    assert "error: as asked for" in path.read_text()
    assert "# FAILED" in path.read_text()


def test_what_was_finished_before_a_failure_is_kept(workshop: Workshop) -> None:
    broken = workshop.kernel / "csrc" / "part1.cpp"
    broken.write_text("#error\n")
    with pytest.raises(CompileError):
        workshop.build(jobs=1)
    broken.write_text("repaired\n")
    before = len(workshop.calls())
    workshop.build(jobs=1)
    assert PARTS[1] not in workshop.calls()[:before]
    assert len(workshop.calls()) == 6, "each of the five units once, and the failed one again"


def test_keep_going_builds_the_other_variants_and_a_later_run_only_the_failed_one(workshop: Workshop) -> None:
    other = "copycat/torch-stable-abi212-cpu-x86_64-linux"
    workshop.variants = (LINK.partition("/")[2], other.partition("/")[2])
    compiler = workshop.folder / "bin" / "c++"
    sound = compiler.read_text()
    compiler.write_text(sound.replace("inputs=\n", 'case "$*" in *0x020a*) echo "not for 2.10" >&2; exit 1;; esac\n'))
    # One at a time, so that the failure comes before the steps of the other variant.
    result = workshop.build(jobs=1, keep_going=True)
    assert [artefact.plan.label for artefact in result.artefacts] == [other]
    assert result.failed == {LINK: f"A compile step failed: {BINDING}"}
    assert len(workshop.notes.warnings) == 1
    assert "not for 2.10" in workshop.notes.warnings[0]
    compiler.write_text(sound)
    again = workshop.build(keep_going=True)
    assert (set(again.compiled), again.failed) == ({BINDING, LINK}, {})


def test_a_file_that_changes_while_it_is_compiled_leaves_no_result(workshop: Workshop) -> None:
    # The "compiler" changes what it reads: between its hash and its compilation, an author may do the same.
    compiler = workshop.folder / "bin" / "c++"
    changed = workshop.kernel / "csrc" / "part.h"
    compiler.write_text(compiler.read_text().replace("printf half", f"echo x >> {changed}\nprintf half"))
    with pytest.raises(CompileError, match=r"csrc/part\.h was changed while it was compiled"):
        workshop.build(jobs=1)
    kept = {path.name for path in workshop.store.glob("units/*/*/*.o")}
    assert not kept & {"part0.o", "part1.o"}
    assert not list(workshop.store.glob("units/*/*/*.so"))


@pytest.mark.parametrize("damage", ["truncate", "other byte", "empty record", "no file", "file for folder"])
def test_a_damaged_result_is_made_again(workshop: Workshop, damage: str) -> None:
    library = workshop.build().artefacts[0].library
    content = library.read_bytes()
    library.unlink()
    if damage == "truncate":
        library.write_bytes(content[:-1])
    elif damage == "other byte":
        library.write_bytes(content[:-1] + b"?")
    elif damage == "file for folder":
        (library.parent / "unit.json").unlink()
        library.parent.rmdir()
        library.parent.write_text("")
    elif damage == "empty record":
        library.write_bytes(content)
        (library.parent / "unit.json").write_text("")
    result = workshop.build()
    assert result.compiled == (LINK,)
    assert result.artefacts[0].library.read_bytes() == content


def test_a_damaged_object_is_not_linked(workshop: Workshop) -> None:
    artefact = workshop.build().artefacts[0]
    content, broken = artefact.library.read_bytes(), artefact.objects["csrc/part0.cpp"]
    broken.chmod(0o644)
    broken.write_bytes(broken.read_bytes()[:-1] + b"?")
    artefact.library.unlink()
    result = workshop.build()
    assert result.compiled == (PARTS[0], LINK)
    assert result.artefacts[0].library.read_bytes() == content


def test_a_file_that_changed_after_the_plan_is_refused(workshop: Workshop) -> None:
    from dataclasses import replace

    from kernel_builder.compile.sources import Sources
    from kernel_builder.compile.variants import units_of

    toolchain = workshop.toolchain()
    variant = toolchain.plan.variants[0]
    kernel = replace(variant.kernel, sources={"csrc/part.h": "0" * 64})
    plan = replace(toolchain.plan, variants=(replace(variant, kernel=kernel),))
    with pytest.raises(CompileError, match=r"csrc/part\.h was changed after the plan was made"):
        units_of(replace(toolchain, plan=plan), Sources())


def test_a_store_that_cannot_be_written_is_an_error_with_a_hint(workshop: Workshop) -> None:
    workshop.store.write_text("a file")
    with pytest.raises(CompileError, match="The store cannot be written") as caught:
        workshop.build()
    assert "KERNEL_BUILDER_CACHE" in caught.value.hint


def test_a_folder_with_spaces_and_quotes_is_no_problem(tmp_path: Path) -> None:
    workshop = Workshop.make(tmp_path / "it's a $HOME: place")
    # Our compiler, unlike others, does not quote its inputs: it only has to be called right.
    compiler = workshop.folder / "bin" / "c++"
    compiler.write_text('#!/bin/sh\nfor last; do :; done\necho x > "$last"\n')
    assert len(workshop.build().compiled) == 5


def test_misleading_variables_do_not_reach_the_compiler(workshop: Workshop, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = workshop.folder / "bin" / "c++"
    compiler.write_text('#!/bin/sh\nfor last; do :; done\nenv > "$last"\n')
    for name in ("CPATH", "CPLUS_INCLUDE_PATH", "LIBRARY_PATH", "LD_RUN_PATH", "MAKEFLAGS"):
        monkeypatch.setenv(name, "/misleading")
    monkeypatch.setenv("TMPDIR", "/misleading")
    monkeypatch.setenv("LC_ALL", "tr_TR.UTF-8")
    library = workshop.build().artefacts[0].library.read_text()
    assert "/misleading" not in library
    assert "LC_ALL=C\n" in library
