"""The test verb's engine: which variants run, what the receipts say."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from kernel_builder.errors import CheckError, NoVariantError, UsageError
from kernel_builder.package.read import packaged_variants
from kernel_builder.reporting import SilentReporter
from kernel_builder.test import test as engine
from kernel_builder.test.fitting import fitting
from kernel_builder.test.model import Machine
from kernel_builder.test.receipts import level_of
from kernel_loader.environment import Environment
from kernel_loader.format.archs import Arch
from kernel_loader.format.digest import digest_of, variant_digest
from kernel_loader.format.metadata import Metadata, dump_metadata
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from pathlib import Path

CPU = "torch213-cxx11-cpu-x86_64-linux"
STABLE = "torch-stable-abi210-cpu-x86_64-linux"
OTHER = "torch212-cxx11-cpu-x86_64-linux"
CUDA = "torch-stable-abi210-cu128-x86_64-linux"
COMMIT = "c0" * 20


def add_variant(root: Path, name: str, *, archs: tuple[str, ...] = ()) -> str:
    folder = root / "build" / name
    folder.mkdir(parents=True)
    (folder / "__init__.py").write_text("x = 1\n")
    metadata = Metadata(
        name="toy",
        id="_toy_x_0123456789",
        version=1,
        license="Apache-2.0",
        backend="cuda" if archs else "cpu",
        archs=tuple(map(Arch.parse, archs)),
        digest=digest_of({"__init__.py": b"x = 1\n"}),
        provenance={"kernel": {"commit": COMMIT, "dirty": False}},
    )
    data = dump_metadata(metadata)
    (folder / "metadata.json").write_bytes(data)
    return variant_digest(data)


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    return tmp_path / "dist" / "toy"


@pytest.fixture
def run(dist, tmp_path, monkeypatch):
    """Runs tests written as text in an environment with torch 2.13 on a CPU."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")

    def go(text: str, *arguments: str, device: str = "cpu", environment: Environment | None = None):
        tests = tmp_path / "src" / "toy" / "tests"
        tests.mkdir(parents=True, exist_ok=True)
        (tests / "test_toy_kernel.py").write_text(text)
        machine = Machine(device="cpu", capability=None, torch="2.13.0")
        if device == "cuda":
            machine = Machine(device="NVIDIA H200", capability="9.0", torch="2.13.0")
        found = environment or Environment(torch="2.13.0", glibc=(2, 36))
        monkeypatch.setattr(engine, "probe", lambda *_: (found, machine))
        return engine.run_tests(dist, tests=tests, device=device, reporter=SilentReporter(), arguments=arguments)

    return go


def test_each_fitting_variant_gets_its_own_receipt(run, dist) -> None:
    digest = add_variant(dist, CPU)
    add_variant(dist, STABLE)
    tested = run(
        "import os, pathlib\n"
        "def test_variant():\n"
        "    folder = pathlib.Path(os.environ['KERNEL_UNDER_TEST'])\n"
        "    assert (folder / 'metadata.json').is_file()\n"
        "    assert os.environ['KERNEL_TEST_DEVICE'] == 'cpu'\n"
        "    import kernel_loader\n"
    )
    assert [receipt.variant for receipt in tested.receipts] == [STABLE, CPU]
    written = json.loads((dist / "receipts" / f"{digest}.json").read_bytes())
    assert written["digest"] == digest
    assert (written["version"], written["result"], written["level"], written["device"]) == (1, "passed", "A", "cpu")
    assert (written["torch"], written["commit"]) == ("2.13.0", COMMIT)
    assert {key: written["tests"][key] for key in ("passed", "failed", "skipped")} == {
        "passed": 1,
        "failed": 0,
        "skipped": 0,
    }
    assert level_of(dist / "receipts" / f"{digest}.json") == "A"


def test_a_failing_test_fails_the_receipt_and_keeps_the_log(run, dist) -> None:
    digest = add_variant(dist, CPU)
    (receipt,) = run("def test_a():\n    assert 1 + 1 == 3\ndef test_b():\n    pass\n").receipts
    assert (receipt.result, receipt.counts.passed, receipt.counts.failed) == ("failed", 1, 1)
    assert "assert (1 + 1) == 3" in receipt.log.read_text()
    assert level_of(dist / "receipts" / f"{digest}.json") == "failed"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "no test at all"),
        ("import pytest\npytest.skip('no gpu', allow_module_level=True)\n", "a skipped module"),
        ("import pytest\n@pytest.mark.skip\ndef test_a():\n    pass\n", "only skipped tests"),
        ("import no_such_module\ndef test_a():\n    pass\n", "a module that cannot be imported"),
        ("import pytest\n@pytest.fixture\ndef f():\n    raise OSError\ndef test_a(f):\n    pass\n", "a broken fixture"),
        ("import os\ndef test_a():\n    os._exit(0)\n", "a process that dies"),
    ],
)
def test_what_proves_nothing_is_a_failure(run, dist, text, why) -> None:
    add_variant(dist, CPU)
    (receipt,) = run(text).receipts
    assert receipt.result == "failed", why


def test_a_teardown_error_fails_a_passed_test(run, dist) -> None:
    add_variant(dist, CPU)
    text = "import pytest\n@pytest.fixture\ndef f():\n    yield\n    raise OSError\ndef test_a(f):\n    pass\n"
    (receipt,) = run(text).receipts
    assert (receipt.counts.passed, receipt.counts.failed) == (0, 1)


def test_variants_that_cannot_run_are_listed_with_the_reason(run, dist) -> None:
    for name in (CPU, OTHER):
        add_variant(dist, name)
    add_variant(dist, CUDA, archs=("9.0",))
    tested = run("def test_a():\n    pass\n")
    assert {unfit.variant: unfit.reason for unfit in tested.unfit} == {
        OTHER: "built for torch 2.12, this is torch 2.13",
        CUDA: "built for cuda, wanted is cpu",
    }


def test_when_nothing_can_run_every_reason_is_shown(run, dist) -> None:
    add_variant(dist, OTHER)
    with pytest.raises(NoVariantError, match="None of 1") as caught:
        run("def test_a():\n    pass\n")
    assert caught.value.detail == f"{OTHER}: built for torch 2.12, this is torch 2.13"
    assert not (dist / "receipts").exists()


def test_on_a_gpu_the_receipt_names_it(run, dist) -> None:
    digest = add_variant(dist, CUDA, archs=("9.0",))
    gpu = Environment.from_dict({"torch": "2.13.0", "cuda": "13.0", "capabilities": ["9.0"]})
    cu130 = CUDA.replace("cu128", "cu130")
    digest = add_variant(dist, cu130, archs=("9.0",))
    tested = run("def test_a():\n    pass\n", device="cuda", environment=gpu)
    assert [unfit.reason for unfit in tested.unfit] == ["built with CUDA 12.8, torch uses CUDA 13.0"]
    written = json.loads((dist / "receipts" / f"{digest}.json").read_bytes())
    assert written["device"] == {"name": "NVIDIA H200", "capability": "9.0"}


def test_a_gpu_that_a_variant_has_no_code_for_is_a_reason(dist) -> None:
    add_variant(dist, CUDA.replace("cu128", "cu130"), archs=("8.0",))
    gpu = Environment.from_dict({"torch": "2.13.0", "cuda": "13.0", "capabilities": ["9.0"]})
    fit, unfit = fitting(packaged_variants(dist), gpu, "cuda")
    assert fit == ()
    assert unfit[0].reason == "has code for 8.0, the GPU is 9.0"


def test_another_cuda_release_is_run_only_when_asked_for(dist) -> None:
    add_variant(dist, CUDA, archs=("9.0",))
    variants = packaged_variants(dist)
    gpu = Environment(torch="2.13.0", cuda=MajorMinor(13, 0), backend="cuda", capabilities=((9, 0),))
    fit, unfit = fitting(variants, gpu, "cuda")
    assert (fit, unfit[0].variant) == ((), CUDA)
    fit, unfit = fitting(variants, gpu, "cuda", across_cuda=True)
    assert ([variant.name for variant in fit], unfit) == ([CUDA], ())


def test_a_partial_run_writes_no_receipt(run, dist) -> None:
    add_variant(dist, CPU)
    (receipt,) = run("def test_a():\n    pass\ndef test_b():\n    assert False\n", "-k", "test_a").receipts
    assert receipt.counts.passed == 1
    assert list((dist / "receipts").glob("*.json")) == []


def test_another_test_source_is_another_digest(run, dist) -> None:
    add_variant(dist, CPU)
    digests = {run(f"def test_a():\n    assert {n}\n").receipts[0].tests_digest for n in (1, 2, 2)}
    assert len(digests) == 2


def test_a_variant_that_is_rebuilt_meanwhile_gets_no_receipt(run, dist) -> None:
    add_variant(dist, CPU)
    text = "import os, pathlib\ndef test_a():\n    p = pathlib.Path(os.environ['KERNEL_UNDER_TEST'], 'metadata.json')\n"
    with pytest.raises(CheckError, match="built again while"):
        run(text + "    p.write_text(p.read_text().replace('toy', 'toz'))\n")
    assert list((dist / "receipts").glob("*.json")) == []


def test_missing_tests_are_a_usage_error(dist, tmp_path) -> None:
    add_variant(dist, CPU)
    with pytest.raises(UsageError, match="folder of the kernel's tests") as caught:
        engine.run_tests(dist, tests=tmp_path / "nowhere", device="cpu", reporter=SilentReporter())
    assert "--tests" in caught.value.hint


@pytest.mark.parametrize("text", ["", "{", "[]", '{"level": "A"}'])
def test_an_unreadable_receipt_counts_for_nothing(tmp_path, text) -> None:
    (tmp_path / "r.json").write_text(text)
    assert level_of(tmp_path / "r.json") == "none"
