"""matrix.toml: the shipped rows, and refusals of a bad file."""

from __future__ import annotations

import pytest
from plan_samples import SMALL_MATRIX, version

from kernel_builder.plan.matrix import default_matrix, parse
from kernel_loader.format.variants import parse as parse_variant


def test_the_shipped_rows():
    assert [(str(row.variant), str(row.sdk)) for row in default_matrix().rows] == [
        ("torch-stable-abi210-cpu-x86_64-linux", "2.10"),
        ("torch-stable-abi210-cu128-x86_64-linux", "2.10"),
        ("torch-stable-abi210-cu130-x86_64-linux", "2.10"),
        ("torch213-cxx11-cpu-x86_64-linux", "2.13"),
    ]


def test_every_row_has_a_name_that_reads_back():
    for row in default_matrix().rows:
        assert parse_variant(str(row.variant)) == row.variant


def test_defaults_are_known_to_their_toolkit():
    for toolkit in default_matrix().toolkits.values():
        assert {(arch.major, arch.minor) for arch in toolkit.default} <= {(a.major, a.minor) for a in toolkit.known}
        assert [arch.ptx for arch in toolkit.default].count(True) == 1
        assert not any(arch.ptx for arch in toolkit.known)


def test_what_toolkits_know():
    known = {str(v): {str(arch) for arch in toolkit.known} for v, toolkit in default_matrix().toolkits.items()}
    assert {"9.0a"} < known["12.6"]
    assert not known["12.6"] & {"10.0", "12.0"}
    assert {"10.0a", "12.0"} < known["12.8"]
    assert "10.3a" not in known["12.8"]
    assert "10.3a" in known["12.9"]
    assert "7.0" in known["12.9"]
    assert "7.0" not in known["13.0"]


def test_an_sdk_may_be_newer_than_the_abi():
    row = parse(SMALL_MATRIX).rows[0]
    assert (row.torch, row.sdk, str(row.variant)) == (
        version("2.9"),
        version("2.10"),
        "torch-stable-abi29-cu126-x86_64-linux",
    )


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('abi = "full"', 'abi = "half"', "abi is stable or full"),
        ('sdk = "2.10"', 'sdk = "2.8"', "sdk is not older"),
        ('["cpu", "cu126", "cu130"]', '["cpu", "cu126", "cu131"]', "no toolkit"),
        ('["cpu", "cu126", "cu130"]', '["cpu", "cpu"]', "same variant"),
        ('["cpu", "cu126", "cu130"]', '["gpu"]', "not a backend"),
        ('platform = "x86_64-linux"\n', "", "lacks the key 'platform'"),
        ('ptx = "9.0"', 'ptx = "9"', "not a GPU architecture"),
    ],
)
def test_a_bad_matrix_is_refused(old, new, message):
    assert old in SMALL_MATRIX
    with pytest.raises(ValueError, match=message):
        parse(SMALL_MATRIX.replace(old, new, 1))
