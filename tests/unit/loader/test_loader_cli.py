"""``python -m kernel_loader``."""

from __future__ import annotations

import json

import pytest
from kernel_fakes import blob_of, publish, variant_files, write_files

from kernel_loader.__main__ import main

pytestmark = pytest.mark.usefixtures("environment")
REPO = "acme/toy"


@pytest.fixture
def filled(hub, uid):
    variants = {name: variant_files(uid, backend="cuda", archs=["9.0a"]) for name in
                ("torch-stable-abi210-cu128-x86_64-linux", "torch29-cxx11-cu128-x86_64-linux")}  # fmt: skip
    publish(hub, REPO, "v1", {**variants, "torch-cpu": variant_files(uid)})
    publish(hub, REPO, "v2", {"torch-cuda": variant_files(uid, version=2)})
    return str(hub)


def run(capsys, *arguments):
    code = main(list(arguments))
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_explain_this_environment(filled, capsys):
    code, out, _ = run(capsys, "explain", REPO, "--version", "1", "--hub", filled)
    assert code == 0
    assert "-> torch-cpu: fits" in out
    assert "torch29-cxx11-cu128-x86_64-linux: built for cuda, wanted is cpu" in out


def test_explain_a_described_environment(filled, capsys):
    arguments = ("explain", f"{REPO}@v1", "--hub", filled, "--torch", "2.9", "--cuda", "12.8", "--json")
    code, out, _ = run(capsys, *arguments, "--capability", "9.0")
    data = json.loads(out)
    assert (code, data["version"], data["best"]) == (0, 1, "torch29-cxx11-cu128-x86_64-linux")
    assert data["environment"]["capabilities"] == ["9.0"]
    assert data["decisions"][1]["reason"] == "stable-abi-newer"
    code, out, _ = run(capsys, *arguments, "--capability", "10.0")
    assert (code, json.loads(out)["best"]) == (9, None)
    assert json.loads(out)["decisions"][0]["detail"] == "has code for 9.0a, the GPU is 10.0"


def test_explain_nothing_fits(filled, capsys):
    code, out, _ = run(capsys, "explain", REPO, "--version", "2", "--hub", filled)
    assert code == 9
    assert out.splitlines()[-1] == "no variant fits"


def test_info(filled, capsys):
    code, out, _ = run(capsys, "info", REPO, "--version", "1", "--hub", filled)
    assert code == 0
    assert "license: Apache-2.0" in out
    assert "  torch-cpu" in out.splitlines()


def test_versions(filled, capsys):
    code, out, _ = run(capsys, "versions", REPO, "--hub", filled, "--json")
    rows = json.loads(out)["versions"]
    assert code == 0
    assert [(row["version"], row["best"]) for row in rows] == [(1, "torch-cpu"), (2, None)]


def test_verify_a_hub(filled, hub, uid, capsys):
    assert run(capsys, "verify", REPO, "--version", "1", "--hub", filled)[0] == 0
    blob_of(hub, REPO, b"value = 1\n").write_bytes(b"value = 2\n")
    code, out, _ = run(capsys, "verify", REPO, "--version", "1", "--hub", filled)
    assert code == 7
    assert "mismatch  torch-cpu: The hub's content of build/torch-cpu/_ops.py is not what its hash says." in out


def test_verify_a_folder(tmp_path, uid, capsys):
    folder = write_files(tmp_path / "build" / "torch-cpu", variant_files(uid))
    write_files(tmp_path / "build" / "torch-cuda", variant_files(uid, digest=False))
    code, out, _ = run(capsys, "verify", str(tmp_path))
    assert (code, out) == (0, "ok        torch-cpu\nno-digest torch-cuda\n")
    (folder / "_ops.py").write_text("value = 2\n")
    assert run(capsys, "verify", str(tmp_path))[0] == 7


def test_errors_are_one_sentence_and_a_hint(capsys):
    code, out, err = run(capsys, "info", REPO, "--version", "1")
    assert (code, out) == (2, "")
    assert err.splitlines()[0] == "error: No hub is named."
    assert err.splitlines()[-1].startswith("hint: name a folder hub")


@pytest.mark.parametrize(
    "arguments",
    [
        ("info", "no-such/kernel", "--version", "1", "--hub", "/no/such/folder"),
        ("info", "./no-such-folder"),
        ("explain", REPO),
        ("explain", "bad repo", "--version", "1"),
        ("explain", REPO, "--version", "1", "--torch", "new"),
        ("versions", "."),
        ("versions", REPO, "--hub", "https://hub.example"),
    ],
)
def test_wrong_input_gives_no_traceback(capsys, arguments):
    code, out, err = run(capsys, *arguments)
    assert code in (2, 9)
    assert out == ""
    assert err.startswith("error: ")


def test_usage_errors_of_the_parser_have_exit_code_2(capsys):
    with pytest.raises(SystemExit) as caught:
        main(["explode"])
    assert caught.value.code == 2


def test_debug_shows_the_traceback(capsys, monkeypatch):
    monkeypatch.setenv("KERNEL_BUILDER_DEBUG", "1")
    with pytest.raises(ValueError, match="No hub"):
        main(["info", REPO, "--version", "1"])
