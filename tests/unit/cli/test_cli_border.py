"""The border: every failure is a sentence and an exit code, help shows examples, stdout is the product."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from kernel_builder.cli import commands as verbs
from kernel_builder.cli.main import run
from kernel_builder.errors import EXIT_CODES, KernelBuilderError
from kernel_loader.format.digest import digest_of
from kernel_loader.format.metadata import Metadata, dump_metadata

if TYPE_CHECKING:
    from pathlib import Path

VERBS = list(verbs.commands.commands)
SPEC = """
[general]
name = "toy"
version = 1
edition = 5
license = "Apache-2.0"
backends = ["cpu"]
[torch]
src = ["binding.cpp"]
[kernel.toy]
backend = "cpu"
depends = []
src = ["toy.cpp"]
"""


@pytest.fixture
def kernels_dir(tmp_path: Path) -> Path:
    root = tmp_path / "kernels"
    (root / "toy" / "torch-ext" / "toy").mkdir(parents=True)
    (root / "toy" / "torch-ext" / "toy" / "__init__.py").write_text("__all__ = []\n")
    for name in ("binding.cpp", "toy.cpp"):
        (root / "toy" / name).write_text("\n")
    (root / "toy" / "build.toml").write_text(SPEC)
    return root


@pytest.fixture(autouse=True)
def environment(monkeypatch, tmp_path) -> None:
    monkeypatch.setenv("KERNEL_BUILDER_CACHE", str(tmp_path / "store"))
    for name in ("KERNEL_BUILDER_DEBUG", "TORCH_CUDA_ARCH_LIST", "MAX_JOBS", "NO_COLOR"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize("verb", [v for v in VERBS if v != "explain"])
def test_every_help_page_has_examples_and_exit_codes(verb, capsys) -> None:
    assert run([verb, "--help"]) == 0
    text = capsys.readouterr().out
    examples = text.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    assert len(examples) >= 3
    assert any(f"kernel-builder {verb}" in line for line in examples)
    assert f"0    {EXIT_CODES[0]}" in text.partition("Exit codes:")[2]


@pytest.mark.parametrize("verb", [v for v in VERBS if v != "explain"])
def test_examples_on_help_pages_parse(verb, capsys) -> None:
    """Each example's options exist: parsing stops at --help, or at an unknown option with exit code 2."""
    import shlex

    run([verb, "--help"])
    examples = capsys.readouterr().out.partition("Examples:\n")[2].partition("\n\n")[0].splitlines()
    for line in (command for example in examples for command in example.split("&&")):
        words = shlex.split(line.replace("$(", " ").replace(")", " "))
        words = words[words.index("kernel-builder") + 1 :] if "kernel-builder" in words else [verb]
        plain = words[: words.index(">")] if ">" in words else words
        plain = plain[: plain.index("--")] if "--" in plain else plain
        assert run([*plain, "--help"]) == 0, line


def test_help_lists_verbs_in_the_order_of_the_stages(capsys) -> None:
    assert run(["--help"]) == 0
    text = capsys.readouterr().out
    assert [text.index(f"\n  {verb} ") for verb in VERBS] == sorted(text.index(f"\n  {verb} ") for verb in VERBS)
    assert "..." not in text.partition("Commands:")[2].partition("Examples:")[0]


def test_version_names_the_program(capsys) -> None:
    assert run(["--version"]) == 0
    assert capsys.readouterr().out.startswith("kernel-builder, version ")


def test_a_mistyped_verb_gets_its_nearest_name(capsys) -> None:
    assert run(["buidl"]) == 2
    assert capsys.readouterr().err == (
        "error: No such command 'buidl'. Did you mean 'build'?\nhint: kernel-builder --help\n"
    )


def test_a_wrong_option_points_to_its_verbs_help(capsys) -> None:
    assert run(["plan", "--colour"]) == 2
    assert capsys.readouterr().err.endswith("hint: kernel-builder plan --help\n")


def test_a_missing_kernel_names_the_known_ones(capsys, kernels_dir) -> None:
    assert run(["plan", "toi", "--kernels-dir", str(kernels_dir)]) == 2
    out, err = capsys.readouterr()
    assert err.startswith("error: There is no kernel 'toi'.\n")
    assert "toy" in err
    assert out == ""


def test_a_bad_environment_variable_is_named(capsys, monkeypatch, kernels_dir) -> None:
    monkeypatch.setenv("MAX_JOBS", "many")
    assert run(["plan", "--kernels-dir", str(kernels_dir)]) == 2
    assert "at environment: MAX_JOBS" in capsys.readouterr().err


def test_plan_prints_a_table_ids_or_json(capsys, kernels_dir) -> None:
    ask = ["plan", "--kernels-dir", str(kernels_dir)]
    assert run(ask) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split() == ["VARIANT", "TORCH", "SDK", "TOOLKIT", "ARCHS"]
    assert run([*ask, "-q"]) == 0
    ids = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines[1:]] == ids
    assert run([*ask, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["version"] == 1
    assert [f"{row['kernel']}/{row['variant']}" for row in data["variants"]] == ids


def test_a_selection_that_matches_nothing_lists_what_there_is(capsys, kernels_dir) -> None:
    assert run(["plan", "--kernels-dir", str(kernels_dir), "--only", "*-cu999-*"]) == 2
    assert "'*-cu999-*' matches no variant" in capsys.readouterr().err


def test_a_selection_that_leaves_nothing_is_exit_code_3(capsys, kernels_dir) -> None:
    assert run(["plan", "--kernels-dir", str(kernels_dir), "--skip", "*"]) == 3


def test_a_kernel_without_a_repository_fails_before_anything_is_fetched(capsys, kernels_dir, tmp_path) -> None:
    hub = tmp_path / "hub"
    out = tmp_path / "dist"
    assert run(["build", "--kernels-dir", str(kernels_dir), "--stage", str(hub), "--out", str(out)]) == 2
    err = capsys.readouterr().err
    assert "names no repository" in err
    assert 'repo-id = "your-org/toy"' in err
    assert not (tmp_path / "store").exists()


class Exploding:
    """A verb that fails in a chosen way."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __call__(self, *_: object, **__: object) -> None:
        raise self.error


@pytest.fixture
def explode(monkeypatch):
    def arm(error: BaseException) -> int:
        monkeypatch.setattr(verbs.commands.commands["doctor"], "callback", Exploding(error))
        return run(["doctor"])

    return arm


def test_a_bug_is_one_sentence_and_the_way_to_its_traceback(explode, capsys) -> None:
    assert explode(ZeroDivisionError("division by zero")) == 1
    assert capsys.readouterr().err == (
        "error: This is a bug in kernel-builder: ZeroDivisionError: division by zero.\n"
        "hint: KERNEL_BUILDER_DEBUG=1 shows the traceback; please report it\n"
    )


def test_debug_shows_tracebacks(explode, capsys, monkeypatch) -> None:
    monkeypatch.setenv("KERNEL_BUILDER_DEBUG", "1")
    assert explode(KernelBuilderError("known")) == 1
    err = capsys.readouterr().err
    assert err.startswith("Traceback")
    assert err.endswith("error: known\n")


@pytest.mark.parametrize("cls", KernelBuilderError.__subclasses__())
def test_each_error_has_its_documented_exit_code(explode, capsys, cls) -> None:
    assert explode(cls("It failed.", where="here", hint="do that")) == cls.exit_code
    assert cls.exit_code in EXIT_CODES
    assert capsys.readouterr().err == "error: It failed.\n  at here\nhint: do that\n"


def test_ctrl_c_is_130(explode, capsys) -> None:
    assert explode(KeyboardInterrupt()) == 130
    assert capsys.readouterr().err.strip() == "error: Interrupted."


def test_a_full_disk_names_the_file(explode, capsys) -> None:
    assert explode(OSError(28, "No space left on device", "/dist/x")) == 1
    assert capsys.readouterr().err == "error: No space left on device.\n  at /dist/x\n"


def test_a_missing_build_package_says_what_to_install(explode, capsys) -> None:
    assert explode(ModuleNotFoundError("No module named 'jinja2'", name="jinja2")) == 4
    err = capsys.readouterr().err
    assert "Building needs the Python package jinja2" in err
    assert "hint: pip install 'kernel-builder[build]'" in err


def test_without_click_the_command_still_answers() -> None:
    code = (
        "import sys\n"
        "class Block:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name.partition('.')[0] in ('click', 'rich', 'jinja2', 'elftools', 'requests', 'pypi_simple'):\n"
        "            raise ModuleNotFoundError(name, name=name)\n"
        "sys.meta_path.insert(0, Block())\n"
        "from kernel_builder.cli.main import run\n"
        "sys.exit(run(['plan']))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 4
    assert "hint: pip install 'kernel-builder[build]'" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("words", [["test", "--device", "cpu"], ["plan"], ["--help"]])
def test_light_verbs_import_no_build_packages(words, tmp_path) -> None:
    """``test`` runs on GPU machines that have click and rich, but nothing that only building needs."""
    code = (
        "import sys\n"
        "from kernel_builder.cli.main import run\n"
        f"run({words!r})\n"
        "heavy = {'elftools', 'jinja2', 'requests', 'pypi_simple', 'ninja', 'cmake', 'huggingface_hub', 'torch'}\n"
        "found = heavy & {name.partition('.')[0] for name in sys.modules}\n"
        "sys.exit(f'imported {found}' if found else 0)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_reader_that_leaves_early_gets_no_complaint() -> None:
    code = f"{sys.executable} -m kernel_builder completion bash | true; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert done.stderr == ""


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_know_the_program(shell, capsys) -> None:
    assert run(["completion", shell]) == 0
    assert "_KERNEL_BUILDER_COMPLETE" in capsys.readouterr().out


def test_store_tells_where_and_how_much(capsys, tmp_path) -> None:
    assert run(["store", "path"]) == 0
    assert capsys.readouterr().out == f"{tmp_path / 'store'}\n"
    (tmp_path / "store" / "units").mkdir(parents=True)
    (tmp_path / "store" / "units" / "a").write_bytes(b"x" * 1500)
    assert run(["store", "size", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["bytes"] == {"units": 1500}


def test_toolchain_list_shows_what_is_pinned(capsys) -> None:
    assert run(["toolchain", "list", "-q"]) == 0
    names = capsys.readouterr().out.split()
    assert "12.8" in names
    assert run(["toolchain", "where", "12.8"]) == 4
    assert "not in the store yet" in capsys.readouterr().err
    assert run(["toolchain", "where", "12.99"]) == 2


def write_variant(root: Path, content: str) -> Path:
    folder = root / "build" / "torch213-cxx11-cpu-x86_64-linux"
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text(content)
    digest = digest_of({"__init__.py": b"x = 1\n"})
    metadata = Metadata(name="toy", id="_toy_cpu_0123456789", version=1, license="MIT", backend="cpu", digest=digest)
    (folder / "metadata.json").write_bytes(dump_metadata(metadata))
    return folder


def test_check_refuses_a_tampered_variant(capsys, tmp_path) -> None:
    write_variant(tmp_path / "toy", "x = 2\n")
    assert run(["check", str(tmp_path / "toy"), "--json"]) == 6
    (variant,) = json.loads(capsys.readouterr().out)["variants"]
    assert variant["ok"] is False
    assert any("__init__.py" in finding["message"] + finding["where"] for finding in variant["findings"])


def test_testing_an_empty_dist_says_how_to_fill_it(capsys, tmp_path) -> None:
    assert run(["test", "--device", "cpu", "--out", str(tmp_path / "dist")]) == 2
    assert "hint: kernel-builder build" in capsys.readouterr().err
