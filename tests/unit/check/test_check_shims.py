"""The stable functions of torch, read from headers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel_builder.check.shims import allowed, make_table, read_headers, shipped
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from pathlib import Path

HEADER = """
#ifndef SHIM
#define SHIM
// AOTI_TORCH_EXPORT int commented_out(int);
AOTI_TORCH_EXPORT AOTITorchError
torch_old(int a);
#if TORCH_FEATURE_VERSION >= TORCH_VERSION_2_11_0
AOTI_TORCH_EXPORT int32_t torch_newer(void (*callback)(int), int b);
#ifdef USE_CUDA
AOTI_TORCH_EXPORT void torch_newer_cuda();
#endif // USE_CUDA
#endif // TORCH_FEATURE_VERSION >= TORCH_VERSION_2_11_0
AOTI_TORCH_EXPORT size_t torch_after();
#endif
"""


def write_headers(root: Path, text: str) -> Path:
    folder = root / "torch/csrc/stable/c"
    folder.mkdir(parents=True)
    (folder / "shim.h").write_text(text)
    return root


def test_version_guards_belong_to_the_functions_inside_them(tmp_path: Path) -> None:
    old, newer = MajorMinor(2, 7), MajorMinor(2, 11)
    assert read_headers(write_headers(tmp_path, HEADER)) == {
        "torch_old": old,
        "torch_newer": newer,
        "torch_newer_cuda": newer,
        "torch_after": old,
    }


def test_the_table_says_when_a_function_came_and_drops_what_went(tmp_path: Path) -> None:
    first = write_headers(tmp_path / "a", "AOTI_TORCH_EXPORT int torch_old(); AOTI_TORCH_EXPORT int torch_gone();")
    second = write_headers(tmp_path / "b", HEADER)
    table = make_table({MajorMinor(2, 9): first, MajorMinor(2, 10): second})
    rows = [line for line in table.splitlines() if not line.startswith("#")]
    assert rows == ["torch_after 2.10", "torch_newer 2.11", "torch_newer_cuda 2.11", "torch_old 2.9"]


def test_the_shipped_table_holds_known_points() -> None:
    table = shipped()
    assert table["aoti_torch_get_current_cuda_stream"] == MajorMinor(2, 7)
    assert table["torch_call_dispatcher"] == MajorMinor(2, 10)
    assert table["torch_from_blob"] == MajorMinor(2, 11)


def test_a_newer_sdk_adds_functions_but_never_makes_known_ones_older(tmp_path: Path) -> None:
    text = "AOTI_TORCH_EXPORT int torch_of_the_future(); AOTI_TORCH_EXPORT int torch_from_blob();"
    known = allowed((write_headers(tmp_path, text),))
    assert "torch_of_the_future" in known
    assert known["torch_from_blob"] == MajorMinor(2, 11)
