"""matrix.toml: the shipped window, and refusals of a bad file."""

from __future__ import annotations

import pytest
from plan_samples import SMALL_MATRIX, version

from kernel_builder.plan.matrix import default_matrix, parse


def test_the_window():
    builds = {str(torch.version): " ".join(map(str, torch.cuda)) for torch in default_matrix().torches}
    assert builds == {
        "2.7": "12.6 12.8",
        "2.8": "12.6 12.8 12.9",
        "2.9": "12.6 12.8 13.0",
        "2.10": "12.6 12.8 13.0",
        "2.11": "12.6 12.8 13.0",
        "2.12": "12.6 13.0 13.2",
        "2.13": "12.6 13.0 13.2",
        "2.14": "12.6 13.0 13.2",
        "2.15": "12.6 13.0 13.2",
    }
    assert default_matrix().backends == ("cpu", "cuda")
    assert list(map(str, default_matrix().nvccs)) == ["12.4", "13.0", "13.2"]


def test_every_torch_and_toolkit_is_locked():
    from kernel_builder.toolchain.lock import read_lock

    lock, matrix = read_lock(), default_matrix()
    assert {torch.version for torch in matrix.torches} <= lock.sdks.keys()
    assert {stable.sdk for stable in matrix.stables} <= lock.sdks.keys()
    assert set(matrix.cuda) <= lock.toolkits.keys()
    assert set(matrix.nvccs) <= lock.nvccs.keys()


def test_defaults_are_known_to_their_toolkit():
    for toolkit in default_matrix().toolkits.values():
        assert {(arch.major, arch.minor) for arch in toolkit.default} <= {(a.major, a.minor) for a in toolkit.known}
        assert [arch.ptx for arch in toolkit.default].count(True) == 1
        assert not any(arch.ptx for arch in toolkit.known)
        assert toolkit.driver


def test_what_toolkits_know():
    known = {str(v): {str(arch) for arch in toolkit.known} for v, toolkit in default_matrix().toolkits.items()}
    assert {"9.0a"} < known["12.6"]
    assert not known["12.6"] & {"10.0", "12.0"}
    assert {"10.0a", "12.0"} < known["12.8"]
    assert "10.3a" not in known["12.8"]
    assert "10.3a" in known["12.9"]
    assert "7.0" in known["12.9"]
    assert "7.0" not in known["13.0"]


def test_a_stable_binding_may_serve_older_torches_than_its_target():
    oldest = default_matrix().stables[0]
    assert (str(oldest.torch), str(oldest.target)) == ("2.7", "2.9")
    assert oldest.sdk >= oldest.target


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('target = "2.9"\ntorch = "2.9"', 'target = "2.9"\ntorch = "2.10"', "torch is not newer"),
        ('sdk = "2.10"', 'sdk = "2.8"', "sdk not older"),
        ('cuda."12.6"', 'cuda."12.5"', "no toolkit"),
        ('version = "2.9"', 'version = "2.8"', "ascend, each once"),
        ('version = "2.8"', 'version = "10.8"', "has no variant name"),
        ('cuda."12.6"', 'cuda."12.10"', "has no variant name"),
        ('platform = "x86_64-linux"\n', "", "lacks the key 'platform'"),
        ('ptx = "9.0"', 'ptx = "9"', "not a GPU architecture"),
        ('driver = "560.28"\n', "", "lacks the key 'driver'"),
    ],
)
def test_a_bad_matrix_is_refused(old, new, message):
    assert old in SMALL_MATRIX
    with pytest.raises(ValueError, match=message):
        parse(SMALL_MATRIX.replace(old, new, 1))


def test_versions_of_the_small_matrix():
    assert [torch.version for torch in parse(SMALL_MATRIX).torches] == [version("2.8"), version("2.9"), version("2.10")]
