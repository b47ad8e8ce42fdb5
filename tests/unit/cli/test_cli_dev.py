"""``build --dev``: which one variant the author gets on which machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernel_builder.cli.dev import dev_plan
from kernel_builder.cli.main import run
from kernel_builder.errors import NoVariantError, UsageError
from kernel_builder.reporting import SilentReporter
from kernel_builder.spec.read import find_kernels
from kernel_loader.environment import Environment
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from kernel_builder.plan.model import Plan

KERNELS = Path(__file__).parents[3] / "kernels-src"


def machine(torch: str, cuda: str | None = None, *capabilities: tuple[int, int]) -> Environment:
    version = None if cuda is None else MajorMinor.parse(cuda)
    return Environment(torch=torch, backend="cuda" if cuda else "cpu", cuda=version, capabilities=capabilities)


def plan(environment: Environment, arch: str | None = None) -> Plan:
    return dev_plan(find_kernels(("rmsnorm",), KERNELS), arch, SilentReporter(), look=lambda: environment)


def only(made: Plan) -> tuple[str, list[str]]:
    (variant,) = made.variants
    assert variant.lineinfo
    return str(variant.variant.backend), [str(arch) for archs in variant.archs.values() for arch in archs]


@pytest.mark.parametrize(
    ("capability", "arch"),
    [((9, 0), "9.0"), ((8, 6), "8.0"), ((8, 9), "8.0"), ((12, 0), "12.0"), ((10, 3), "10.0")],
)
@pytest.mark.parametrize("asked", [None, "native"])
def test_a_gpu_gets_the_code_that_a_release_would_run_on_it(
    capability: tuple[int, int], arch: str, asked: str | None
) -> None:
    assert only(plan(machine("2.13.0", "13.0", capability), asked)) == ("cu130", [arch])


def test_the_cuda_of_the_installed_torch_decides(capsys: pytest.CaptureFixture[str]) -> None:
    assert only(plan(machine("2.9.1", "12.6", (9, 0))))[0] == "cu126"
    assert only(plan(machine("2.9.1", "12.8", (9, 0))))[0] == "cu128"
    assert only(plan(machine("2.15.0", "13.2", (9, 0))))[0] == "cu130"


def test_an_architecture_may_be_named_where_there_is_no_gpu() -> None:
    assert only(plan(machine("2.13.0"), "9.0a")) == ("cu130", ["9.0a"])
    assert only(plan(machine("2.9.1", "12.6"), "8.6")) == ("cu126", ["8.6"])


def test_without_a_gpu_it_is_the_cpu() -> None:
    assert only(plan(machine("2.13.0", "13.0"))) == ("cpu", [])
    assert only(plan(machine("2.13.0"))) == ("cpu", [])


def test_native_without_a_gpu_says_to_name_one() -> None:
    with pytest.raises(NoVariantError) as caught:
        plan(machine("2.13.0", "13.0"), "native")
    assert caught.value.hint == "name the architecture, for example --arch 9.0a"


def test_a_torch_that_nothing_is_made_for_is_said_with_the_loaders_reason() -> None:
    with pytest.raises(NoVariantError, match="No variant of rmsnorm would load here") as caught:
        plan(machine("2.5.1"))
    assert "2.5" in caught.value.where
    assert "torch-stable-abi27-cpu-x86_64-linux" in caught.value.detail


@pytest.mark.parametrize(
    ("arch", "says"),
    [("hopper!", "is not a GPU architecture"), ("9.9", "does not know 9.9"), ("9.0+PTX", "more than one architecture")],
)
def test_a_word_that_is_no_architecture_is_refused(arch: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        plan(machine("2.13.0", "13.0"), arch)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--arch", "9.0a"], "TORCH_CUDA_ARCH_LIST"),
        (["--dev", "--torch", "2.9"], "A --dev build has no --torch."),
        (["--dev", "--stage", "hub"], "A --dev build has no --stage."),
        (["--dev", "--matrix", "full"], "A --dev build has no --matrix."),
    ],
)
def test_options_that_do_not_go_together_are_refused_before_anything_is_done(
    words: list[str], says: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_BUILDER_CACHE", str(tmp_path / "store"))
    assert run(["build", "rmsnorm", "--kernels-dir", str(KERNELS), "--out", str(tmp_path / "dist"), *words]) == 2
    assert says in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("address", ["tcp://host:1", "dask://host", "host:8786"])
def test_an_executor_is_an_address_of_dask(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["build", "rmsnorm", "--kernels-dir", str(KERNELS), "--executor", address]) == 2
    assert "dask://HOST:PORT" in capsys.readouterr().err
