"""What variants share: the cost of a matrix grows with toolkits and architectures, not with torch versions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from kernel_builder.compile.sources import Sources
from kernel_builder.compile.units import Unit, closure
from kernel_builder.compile.variants import units_of
from kernel_builder.plan.plan import make_plan
from kernel_builder.plan.selection import Selection
from kernel_builder.spec.read import find_kernels
from kernel_builder.toolchain.model import Floor, HostCompiler, Toolchain, Toolkit, TorchSdk

KERNELS = Path(__file__).parents[3] / "kernels-src"
NOWHERE = Path("/nowhere")


def units(*, torch: tuple[str, ...] = (), cuda: tuple[str, ...] = (), strategy: str = "full") -> tuple[Unit, ...]:
    """Every unit of rmsnorm for these torches, in a toolchain that lies nowhere."""
    selection = Selection.parse(torch=torch, cuda=cuda)
    plan = make_plan(find_kernels(("rmsnorm",), KERNELS), selection=selection, strategy=strategy)
    toolkits = {variant.toolkit for variant in plan.variants if variant.toolkit}
    toolchain = Toolchain(
        plan=plan,
        host=HostCompiler(cxx="/usr/bin/c++", version=(12, 2, 0), identity="a compiler"),
        floor=Floor(root=NOWHERE, torch=NOWHERE, digest="floor", link={"cpu": (), "cuda": ()}),
        toolkits={
            version: Toolkit(
                version=version,
                release=f"{version}.1",
                digest=f"toolkit {version}",
                root=NOWHERE,
                nvrtc=NOWHERE / "nvrtc.so",
                nvrtc_builtins=NOWHERE / "builtins.so",
                nvfatbin=NOWHERE / "nvfatbin.so",
                include=(NOWHERE / "include",),
            )
            for version in toolkits
        },
        sdks={
            version: TorchSdk(
                version=version, release=f"{version}.0", digest=f"sdk {version}", root=NOWHERE, include=(NOWHERE / "i",)
            )
            for version in {variant.sdk for variant in plan.variants}
        },
    )
    return closure(tuple(variant.link for variant in units_of(toolchain, Sources())))


def counts(*, torch: tuple[str, ...] = (), cuda: tuple[str, ...] = (), strategy: str = "full") -> Counter[str]:
    return Counter(unit.kind for unit in units(torch=torch, cuda=cuda, strategy=strategy))


def test_device_steps_are_sources_times_architectures_times_toolkits() -> None:
    made = counts()
    # One source; 12.6 knows three of its architectures and gives PTX for newer GPUs, four newer toolkits know all five.
    assert made["device"] == 1 * (3 + 1) + 4 * (5 + 1)
    assert (made["fatbin"], made["images"]) == (5, 5)
    assert (made["binding"], made["link"]) == (9, 35), "one binding for each torch, one link for each variant"


@pytest.mark.parametrize("torch", [("2.9",), ("2.9", "2.10"), ("2.9", "2.10", "2.11")])
def test_more_torches_take_no_device_step(torch: tuple[str, ...]) -> None:
    made = counts(torch=torch, cuda=("12.6", "13.0"))
    assert made["device"] == (3 + 1) + (5 + 1)
    assert made["component"] == made["identity"] == 1
    assert (made["binding"], made["link"]) == (len(torch), 2 * len(torch))


def test_the_cover_has_one_binding_for_all() -> None:
    made = counts(strategy="cover")
    assert (made["binding"], made["link"]) == (1, 4)
    assert made["device"] == (3 + 1) + 2 * (5 + 1)


def test_cover_and_full_matrix_share_all_device_code() -> None:
    def device_code(strategy: str) -> set[str]:
        return {unit.key for unit in units(strategy=strategy) if unit.kind == "device"}

    assert device_code("cover") < device_code("full")
