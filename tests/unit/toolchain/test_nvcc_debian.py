"""The Debian package of nvcc: from apt's mirrors, without touching apt's folders, with the locked bytes only."""

from __future__ import annotations

import hashlib
import io
import tarfile
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from wheel_server import FILES, NAME, wheel_bytes

from kernel_builder.errors import DigestError, ToolchainError
from kernel_builder.files import sha256_of, tree_digest
from kernel_builder.settings import Settings
from kernel_builder.toolchain import relock as relocking
from kernel_builder.toolchain.lock import LockedPackage, read_lock
from kernel_builder.toolchain.nvcc import debian
from kernel_builder.toolchain.nvcc.apt_sources import Mirror, read_mirrors
from kernel_builder.toolchain.nvcc.debian import pin, unpack
from kernel_builder.toolchain.nvcc.provide import require
from kernel_builder.toolchain.pip_settings import PipSettings
from kernel_builder.toolchain.relock import relock
from kernel_builder.toolchain.supply import Supply
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from pathlib import Path

WRITTEN = """
version = 1
[nvcc."12.4"]
release = "12.4.131"
headers = ["pkg/include"]
package = {name = "nvidia-cuda-toolkit", version = "12.4.131~12.4.1-2", suite = "trixie", component = "non-free"}
wheel = [{project = "headers", version = "1.0", include = ["pkg/include/*"]}]
"""
VERSION = "12.4.131~12.4.1-2"
LIBRARY = "usr/lib/nvidia-cuda-toolkit"
MEMBERS = (
    *(f"usr/bin/{name}" for name in ("bin2c", "cudafe++", "fatbinary", "nvlink", "ptxas", "nvdisasm")),
    *(f"{LIBRARY}/bin/{name}" for name in ("nvcc", "cicc", "crt/link.stub", "crt/prelink.stub")),
    f"{LIBRARY}/libdevice/libdevice.10.bc",
)
APT_GET = """#!/bin/sh
echo "$@" >> {folder}/apt.log
case "$*" in
  *update) if grep -q good.example sources.list; then exit 0; fi; echo "E: no Release file" >&2; exit 100;;
  *"={offered}") cp {folder}/package.deb nvidia-cuda-toolkit.deb;;
  *) echo "E: Version not found" >&2; exit 100;;
esac
"""


def script(path: Path, text: str) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def deb(path: Path, members=MEMBERS) -> None:
    with tarfile.open(path, "w") as tar:
        for name in members:
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(name), 0o755
            tar.addfile(info, io.BytesIO(name.encode()))


@pytest.fixture
def offer(tmp_path, monkeypatch):
    """A machine whose apt offers a version of the package."""

    def offer(version: str = VERSION, members=MEMBERS) -> Settings:
        deb(tmp_path / "package.deb", members)
        script(tmp_path / "bin/apt-get", APT_GET.format(folder=tmp_path, offered=version))
        script(tmp_path / "bin/apt-cache", f"#!/bin/sh\necho '  Candidate: {version}'\n")
        script(tmp_path / "bin/dpkg-deb", '#!/bin/sh\nexec tar -xf "$2" -C "$3"\n')
        lists = tmp_path / "apt/sources.list.d"
        lists.mkdir(parents=True, exist_ok=True)
        (lists.parent / "sources.list").write_text("deb http://bad.example/debian bookworm main\n")
        (lists / "more.list").write_text("deb [signed-by=/keys.gpg] http://good.example/debian bookworm main\n")
        monkeypatch.setattr(debian, "_APT_FOLDER", tmp_path / "apt")
        return Settings(store=tmp_path / "store", path=f"{tmp_path / 'bin'}:/usr/bin:/bin")

    return offer


@pytest.fixture
def package(tmp_path) -> LockedPackage:
    deb(tmp_path / "package.deb")
    return LockedPackage(
        name="nvidia-cuda-toolkit",
        version=VERSION,
        suite="trixie",
        component="non-free",
        sha256=sha256_of(tmp_path / "package.deb"),
    )


def test_the_programs_lie_where_the_profile_beside_them_looks(offer, package, tmp_path, recorder) -> None:
    folder = tmp_path / "toolkit"
    folder.mkdir()
    files = unpack(package, folder, offer(), recorder)
    home = folder / "nvidia/cuda_nvcc"
    assert (home / "nvvm/bin/cicc").read_text() == f"{LIBRARY}/bin/cicc"
    assert (home / "bin/crt/link.stub").is_file()
    profile = (home / "bin/nvcc.profile").read_text()
    assert "$(_HERE_)/.." in profile
    assert "/usr" not in profile
    # Nothing else is left behind, and what is there is what is reported.
    assert {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()} == set(files)
    assert not any("nvdisasm" in name for name in files)


def test_the_next_mirror_is_asked_and_apt_keeps_to_folders_of_ours(offer, package, tmp_path, recorder) -> None:
    folder = tmp_path / "toolkit"
    folder.mkdir()
    unpack(package, folder, offer(), recorder)
    assert any("bad.example" in note for note in recorder.notes)
    calls = (tmp_path / "apt.log").read_text().splitlines()
    assert all(call.startswith(f"-c {folder}/.apt-") for call in calls)
    assert not any("install" in call.split() for call in calls)


def test_another_version_on_the_mirror_is_refused_with_the_way_to_pin_it(offer, package, tmp_path, recorder) -> None:
    with pytest.raises(ToolchainError) as caught:
        unpack(package, tmp_path, offer("12.4.131~12.4.1-3"), recorder)
    assert "has nvidia-cuda-toolkit 12.4.131~12.4.1-3; the lock names 12.4.131~12.4.1-2" in caught.value.message
    assert caught.value.hint.endswith("kernel-builder toolchain lock nvcc-12.4")
    assert not (tmp_path / "nvidia").exists()


def test_other_bytes_are_refused_before_they_are_unpacked(offer, package, tmp_path, recorder) -> None:
    with pytest.raises(DigestError, match="not the one that the lock names"):
        unpack(replace(package, sha256="0" * 64), tmp_path, offer(), recorder)
    assert not (tmp_path / "nvidia").exists()


def test_no_mirror_with_the_suite_tells_what_each_said(offer, package, tmp_path, recorder) -> None:
    settings = offer()
    (tmp_path / "apt/sources.list.d/more.list").unlink()
    with pytest.raises(ToolchainError, match="No mirror that apt is configured for has the suite") as caught:
        unpack(package, tmp_path, settings, recorder)
    assert caught.value.detail == "bad.example: E: no Release file"
    (tmp_path / "apt/sources.list").unlink()
    with pytest.raises(ToolchainError, match="apt is configured for no mirror"):
        unpack(package, tmp_path, settings, recorder)


def test_a_package_that_lacks_a_program_is_refused(offer, package, tmp_path, recorder) -> None:
    settings = offer(members=MEMBERS[1:])
    changed = replace(package, sha256=sha256_of(tmp_path / "package.deb"))
    with pytest.raises(ToolchainError, match="holds no file usr/bin/bin2c"):
        unpack(changed, tmp_path, settings, recorder)


def test_pinning_takes_the_newest_of_the_same_cuda_version_only(offer, package, recorder) -> None:
    pinned, files = pin(replace(package, sha256="", size=0), offer("12.4.131~12.4.1-9"), recorder)
    assert (pinned.version, pinned.sha256) == ("12.4.131~12.4.1-9", package.sha256)
    assert "nvidia/cuda_nvcc/bin/nvcc.profile" in files
    with pytest.raises(ToolchainError, match="another CUDA version"):
        pin(package, offer("12.9.86~12.9.1-1"), recorder)


def test_toolchain_lock_pins_the_package_with_the_wheels(offer, server, tmp_path, recorder, monkeypatch) -> None:
    settings = offer("12.4.140~12.4.1-1")
    monkeypatch.setattr(relocking, "read_pip_settings", lambda *_: PipSettings(index_url=server.simple))
    server.script.json_page = True
    server.script.wheels[NAME] = wheel_bytes(FILES)
    path = tmp_path / "lock.toml"
    path.write_text(WRITTEN)
    relock(["nvcc-12.4"], settings, recorder, path=path)
    item = read_lock(path).nvcc(MajorMinor(12, 4))
    assert item.package
    assert (item.release, item.package.version) == ("12.4.140", "12.4.140~12.4.1-1")
    assert (item.package.sha256, item.package.size) == (
        sha256_of(tmp_path / "package.deb"),
        (tmp_path / "package.deb").stat().st_size,
    )
    assert item.digest != item.wheels[0].tree
    # What was pinned is what a build accepts.
    root = Supply(settings, recorder).folder_of(item)
    root.mkdir(parents=True)
    files = {name: hashlib.sha256(FILES[name]).hexdigest() for name in ("pkg/include/a.h", "pkg/include/sub/b.h")}
    assert tree_digest({**files, **unpack(item.package, root, settings, recorder)}) == item.digest
    with pytest.raises(ToolchainError, match=r"nvcc 12\.6 cannot be laid out like 12\.4"):
        relock(["nvcc-12.6"], settings, recorder, path=path)


def test_without_apt_the_ways_to_an_nvcc_are_told_before_a_byte_is_fetched(tmp_path) -> None:
    with pytest.raises(ToolchainError, match="apt-get, apt-cache, dpkg-deb are not on PATH") as caught:
        require([MajorMinor(12, 4)], "locked", Settings(store=tmp_path, path=""))
    assert caught.value.exit_code == 4
    for way in ("pip wheels", "apt install nvidia-cuda-toolkit", "--toolkit system", "--toolkit archive"):
        assert way in caught.value.hint
    # The wheels of CUDA 13 need no apt.
    require([MajorMinor(13, 0)], "locked", Settings(store=tmp_path, path=""))


def test_what_the_store_has_needs_no_apt(tmp_path) -> None:
    item = read_lock().nvcc(MajorMinor(12, 4))
    (tmp_path / "toolkits" / f"nvcc-{item.release}-{item.digest[:12]}").mkdir(parents=True)
    require([MajorMinor(12, 4)], "locked", Settings(store=tmp_path, path=""))


def test_both_forms_of_apts_sources_are_read(tmp_path) -> None:
    (tmp_path / "sources.list").write_text(
        "# a comment\n"
        "deb http://one.example/debian trixie main contrib # why\n"
        "deb-src http://source.example/debian trixie main\n"
        "deb cdrom:[Debian 13] trixie main\n"
        "deb http://flat.example/ ./\n"
    )
    lists = tmp_path / "sources.list.d"
    lists.mkdir()
    (lists / "a.sources").write_text(
        "Types: deb deb-src\nURIs: https://two.example/debian\n  https://three.example/debian\n"
        "# a comment\nSuites: bookworm bookworm-updates\nComponents: main\nSigned-By: /keys/a.gpg\n\n"
        "Types: deb\nURIs: http://off.example/debian\nSuites: trixie\nComponents: main\nEnabled: no\n\n"
        "Types: deb\nURIs: http://sec.example/debian-security\nSuites: trixie-security\nComponents: main\n\n"
        "Types: deb\nURIs: http://inline.example/debian\nSuites: trixie\nComponents: main\n"
        "Signed-By:\n -----BEGIN PGP PUBLIC KEY BLOCK-----\n"
    )
    (lists / "b.list").write_text("deb [ arch=amd64 signed-by=/keys/b.gpg ] http://four.example/debian trixie main\n")
    (lists / "c.sources.disabled").write_text("Types: deb\nURIs: http://no.example\nSuites: a\nComponents: main\n")
    assert read_mirrors(tmp_path) == (
        Mirror(uri="http://one.example/debian"),
        Mirror(uri="https://two.example/debian", keyring="/keys/a.gpg"),
        Mirror(uri="https://three.example/debian", keyring="/keys/a.gpg"),
        Mirror(uri="http://inline.example/debian"),
        Mirror(uri="http://four.example/debian", keyring="/keys/b.gpg"),
    )
