"""Architectures: the kernel asks, the toolkit knows, TORCH_CUDA_ARCH_LIST narrows; no GPU decides anything."""

from __future__ import annotations

import pytest
from plan_samples import archs, version

from kernel_builder.errors import UsageError
from kernel_builder.plan.archs import choose, parse_list
from kernel_builder.plan.matrix import default_matrix

TOOLKITS = default_matrix().toolkits


def kept(asked: str | None, toolkit: str = "12.8", listed: str | None = None) -> str:
    wanted = None if asked is None else archs(asked)
    return " ".join(map(str, choose(wanted, TOOLKITS[version(toolkit)], parse_list(listed)).kept))


@pytest.mark.parametrize(
    ("toolkit", "expected"),
    [
        ("12.6", "8.0 9.0+PTX 9.0a"),
        ("12.8", "8.0 9.0a 10.0 12.0 12.0+PTX"),
        ("12.9", "8.0 9.0a 10.0 12.0 12.0+PTX"),
        ("13.0", "8.0 9.0a 10.0 12.0 12.0+PTX"),
        ("13.2", "8.0 9.0a 10.0 12.0 12.0+PTX"),
    ],
)
def test_without_capabilities_the_documented_defaults_are_used(toolkit, expected):
    """B012: a machine without GPU and without a list gets the same default as any other."""
    assert kept(None, toolkit) == expected


@pytest.mark.parametrize(
    ("toolkit", "asked", "expected"),
    [
        ("12.6", "8.0 9.0a 10.0 12.0+PTX", "8.0 8.0+PTX 9.0a"),
        ("12.6", "9.0a 12.0+PTX", "9.0+PTX 9.0a"),
        ("12.6", "7.5 8.0 9.0 12.0+PTX", "7.5 8.0 9.0 9.0+PTX"),
        ("12.8", "7.0 8.0 10.0a 10.3a 12.0", "7.0 8.0 10.0a 12.0"),
        ("12.9", "10.0f 10.3a 12.1", "10.0f 10.3a 12.1"),
        ("13.0", "7.0 7.2 7.5 8.0 11.0", "7.5 8.0 11.0"),
        ("13.0", "10.1a", ""),
    ],
)
def test_only_what_the_toolkit_knows_is_kept(toolkit, asked, expected):
    assert kept(asked, toolkit) == expected


def test_ptx_means_machine_code_and_ptx_in_ascending_order():
    assert kept("12.0+PTX 8.0") == "8.0 12.0 12.0+PTX"
    assert kept("12.0+PTX 12.0") == "12.0 12.0+PTX"


@pytest.mark.parametrize(
    ("asked", "listed", "expected"),
    [
        ("8.0 9.0a 12.0+PTX", "8.0", "8.0"),
        ("8.0 9.0a 12.0+PTX", "8.0;9.0", "8.0 9.0a"),
        ("8.0 9.0a 12.0+PTX", "8.0 9.0a", "8.0 9.0a"),
        ("8.0 9.0 9.0a", "9.0a", "9.0a"),
        ("8.0 12.0+PTX", "12.0", "12.0"),
        ("8.0 12.0+PTX", "12.0+PTX", "12.0 12.0+PTX"),
        ("8.0 12.0+PTX", "8.0+PTX;12.0", "8.0 12.0"),
        ("8.0 9.0a", "Hopper", "9.0a"),
        ("8.0 8.6 9.0", "Ampere", "8.0 8.6"),
        ("8.0 9.0", "8.6;9.0", "9.0"),
        ("8.0", "", "8.0"),
        ("8.0", " ; ", "8.0"),
    ],
)
def test_the_list_narrows(asked, listed, expected):
    assert kept(asked, listed=listed) == expected


@pytest.mark.parametrize("listed", ["7.5", "8.6", "Turing", "10.0f"])
def test_the_list_never_adds_and_never_empties(listed):
    """B011: caps 8.0 and 9.0a with TORCH_CUDA_ARCH_LIST=7.5 gives exactly 8.0 and 9.0a."""
    chosen = choose(archs("8.0 9.0a"), TOOLKITS[version("12.8")], parse_list(listed))
    assert chosen.kept == archs("8.0 9.0a")
    assert chosen.list_ignored


def test_every_drop_is_explained():
    chosen = choose(archs("8.0 9.0 12.0+PTX"), TOOLKITS[version("12.6")], parse_list("9.0"))
    assert list(map(str, chosen.dropped)) == [
        "12.0: unknown to CUDA 12.6",
        "12.0+PTX: unknown to CUDA 12.6, 9.0+PTX instead",
        "8.0: not in TORCH_CUDA_ARCH_LIST",
        "9.0+PTX: not in TORCH_CUDA_ARCH_LIST",
    ]
    assert not chosen.list_ignored


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("8.0;9.0a", "8.0 9.0a"),
        ("8.0 9.0a+PTX", "8.0 9.0a+PTX"),
        ("8.0, 10.0f", "8.0 10.0f"),
        ("Hopper", "9.0+PTX"),
        ("Ampere+Tegra;8.7", "8.7"),
        ("Blackwell", "10.0 10.3 12.0 12.1+PTX"),
        ("Volta\tTuring", "7.0+PTX 7.5+PTX"),
    ],
)
def test_the_list_is_read_like_torch_reads_it(text, expected):
    assert parse_list(text) == archs(expected)


@pytest.mark.parametrize("text", [None, "", "  ", ";"])
def test_no_list(text):
    assert parse_list(text) is None


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("Hoper", "'Hoper' is not a GPU architecture", "did you mean 'Hopper'?"),
        ("8.0;sm_90", "'sm_90' is not a GPU architecture", "Hopper"),
        ("80", "'80' is not a GPU architecture", ""),
        ("9.0b", "'9.0b' is not a GPU architecture", ""),
        ("native", "asks for this machine's GPU", "name the architectures"),
    ],
)
def test_an_unknown_entry_is_a_usage_error(text, message, hint):
    with pytest.raises(UsageError, match=message) as caught:
        parse_list(text)
    assert hint in caught.value.hint
    assert caught.value.where == "environment: TORCH_CUDA_ARCH_LIST"
