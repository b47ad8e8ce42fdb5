"""Redistributable archives: a manifest of the published schema, archives with its bytes, nothing outside the store."""

from __future__ import annotations

import hashlib
import io
import json
import tarfile
from typing import TYPE_CHECKING

import pytest
from fake_nvcc import toolkit_files
from test_toolchain_host import program

from kernel_builder.errors import DigestError, KernelBuilderError, ToolchainError, UsageError
from kernel_builder.settings import Settings
from kernel_builder.toolchain import supply as supplies
from kernel_builder.toolchain.host import find_host_compiler
from kernel_builder.toolchain.nvcc.provide import offered, provide_nvcc, require
from kernel_builder.toolchain.pip_settings import PipSettings
from kernel_builder.toolchain.supply import Supply
from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Mapping

V126 = MajorMinor(12, 6)
NAME = "redistrib_12.6.3.json"
NVCC = toolkit_files("12.6.85")
CUDART = {"include/cuda_runtime.h": b"", "lib/libcudart.so.12.6.77": b"run time", "lib/libcudart_static.a": b"big"}
CCCL = {"include/cub/cub.cuh": b"", "LICENSE": b"text"}


def tar_xz(files: Mapping[str, bytes | str], *, top: str = "component-archive/") -> bytes:
    """An archive; a text is the target of a symbolic link, bytes are a file's content."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:xz") as tar:
        for name, content in files.items():
            info = tarfile.TarInfo(f"{top}{name}")
            if isinstance(content, str):
                info.type, info.linkname = tarfile.SYMTYPE, content
                tar.addfile(info)
            else:
                info.size, info.mode = len(content), 0o755 if "/bin/" in f"/{name}" else 0o644
                tar.addfile(info, io.BytesIO(content))
    return buffer.getvalue()


class Redist:
    """A folder of archives as a server would have it, by path."""

    def __init__(self) -> None:
        links = {"lib/libcudart.so.12": "libcudart.so.12.6.77", "lib/libcudart.so": "libcudart.so.12"}
        nvcc = {name: content for name, content in NVCC.items() if not name.startswith("lib/")}
        self.components = {
            "cuda_nvcc": tar_xz(nvcc),
            "cuda_cudart": tar_xz({**CUDART, **links}),
            "cuda_cccl": tar_xz(CCCL),
            "libcublas": tar_xz({"include/cublas_v2.h": b"", "lib/libcublas.so.12": b"large"}),
        }
        self.change: dict[str, dict[str, object]] = {}

    def manifest(self) -> bytes:
        """The release's manifest, sizes in text as they are published."""
        rows: dict[str, object] = {"release_date": "2024-11-20", "release_label": "12.6.3", "release_product": "cuda"}
        for name, data in self.components.items():
            rows[name] = {
                "name": name,
                "license": "CUDA Toolkit",
                "version": "12.6.85" if name == "cuda_nvcc" else "12.6.77",
                "linux-x86_64": {
                    "relative_path": self.path(name),
                    "sha256": hashlib.sha256(data).hexdigest(),
                    "md5": "0" * 32,
                    "size": str(len(data)),
                    **self.change.get(name, {}),
                },
                "windows-x86_64": {"relative_path": f"{name}.zip", "sha256": "0" * 64, "size": "1"},
            }
        return json.dumps(rows).encode()

    def path(self, name: str) -> str:
        return f"{name}/linux-x86_64/{name}-linux-x86_64-archive.tar.xz"

    def files(self) -> dict[str, bytes]:
        return {NAME: self.manifest(), **{self.path(name): data for name, data in self.components.items()}}


@pytest.fixture
def redist() -> Redist:
    return Redist()


@pytest.fixture
def provide(tmp_path, redist, recorder, monkeypatch, server):
    """Provide nvcc 12.6 from the loopback server; ``entry`` is what KERNEL_BUILDER_REDIST says."""
    program(tmp_path / "bin", "g++")
    monkeypatch.setattr(supplies, "read_pip_settings", lambda *_: PipSettings(retries=1))
    location = f"{server.url}/files/{NAME}"

    def provide(entry: str = ""):
        server.script.wheels.update(redist.files())
        settings = Settings(store=tmp_path / "store", path=str(tmp_path / "bin"), redist=(entry or location,))
        supply = Supply(settings, recorder)
        try:
            return provide_nvcc(V126, "archive", find_host_compiler(settings), settings, supply, recorder)
        finally:
            supply.close()

    provide.location = location
    return provide


def test_an_nvcc_is_put_together_from_the_release(provide, redist, server, tmp_path) -> None:
    nvcc = provide()
    assert (nvcc.version, nvcc.release, nvcc.source) == (V126, "12.6.85", "archive")
    assert nvcc.root.parent == tmp_path / "store/toolkits"
    assert nvcc.nvcc.stat().st_mode & 0o777 == 0o555
    assert nvcc.cudart.resolve().read_bytes() == b"run time"
    assert nvcc.include == (nvcc.root / "include",)
    assert (nvcc.root / "include/cublas_v2.h").is_file()
    # Neither the libraries of other components nor what is linked statically is kept.
    assert not list(nvcc.root.rglob("libcublas*"))
    assert not list(nvcc.root.rglob("*.a"))
    assert nvcc.origin == f"{NAME} {hashlib.sha256(redist.manifest()).hexdigest()}"


def test_a_second_run_asks_no_server(provide, server) -> None:
    first = provide()
    server.script.requests.clear()
    assert provide() == first
    assert server.script.requests == []


def test_a_folder_of_this_machine_serves_as_well(provide, redist, tmp_path) -> None:
    for name, data in redist.files().items():
        path = tmp_path / "mirror" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    near = provide(str(tmp_path / "mirror" / NAME))
    assert near.digest == provide((tmp_path / "mirror" / NAME).as_uri()).digest == provide().digest


def test_a_pinned_manifest_must_be_the_one_that_is_served(provide, redist, tmp_path) -> None:
    pin = hashlib.sha256(redist.manifest()).hexdigest()
    with pytest.raises(DigestError, match="not the one that KERNEL_BUILDER_REDIST names"):
        provide(f"{provide.location}#sha256={'0' * 64}")
    assert not (tmp_path / "store/manifests").exists()
    assert provide(f"{provide.location}#sha256={pin}").release == "12.6.85"


def test_an_archive_with_other_bytes_is_refused_and_nothing_stays(provide, redist, tmp_path) -> None:
    redist.change["cuda_cudart"] = {"sha256": "0" * 64}
    with pytest.raises(DigestError, match="cuda_cudart-linux-x86_64-archive"):
        provide()
    assert not (tmp_path / "store/toolkits").exists()
    assert not any((tmp_path / "store/tmp").iterdir())


@pytest.mark.parametrize(
    ("files", "top", "says"),
    [
        ({"include/../../escape.h": b""}, "a/", "outside its folder"),
        ({"/include/root.h": b""}, "", "outside its folder"),
        ({"include/out.h": "../../../../etc/passwd"}, "a/", "leads outside"),
        ({"include/out.h": "/etc/passwd"}, "a/", "leads outside"),
        ({"include/sub/out.h": "../../../etc/passwd"}, "a/", "leads outside"),
    ],
)
def test_an_archive_that_reaches_outside_is_refused(files, top, says, provide, redist, tmp_path) -> None:
    redist.components["cuda_cccl"] = tar_xz(files, top=top)
    with pytest.raises(ToolchainError, match=says):
        provide()
    assert not list(tmp_path.rglob("escape.h"))
    assert not (tmp_path / "store/toolkits").exists()


def test_a_link_cannot_lead_later_files_elsewhere(provide, redist, tmp_path) -> None:
    redist.components["cuda_cccl"] = tar_xz({"include/sub": "../lib", "include/sub/planted.h": b""})
    provide()
    assert [path.parent.name for path in (tmp_path / "store").rglob("planted.h")] == ["sub"]


def test_an_archive_that_is_none_is_refused(provide, redist) -> None:
    redist.components["cuda_cccl"] = b"no archive"
    with pytest.raises(ToolchainError, match="cannot be unpacked"):
        provide()


def test_a_release_that_lacks_programs_is_refused(provide, redist) -> None:
    redist.components["cuda_nvcc"] = tar_xz({"bin/nvcc": b""})
    with pytest.raises(ToolchainError, match=r"hold no nvvm/bin/cicc"):
        provide()


@pytest.mark.parametrize(
    "change",
    [
        {"relative_path": "../../elsewhere.tar.xz"},
        {"relative_path": "http://other.example/a.tar.xz"},
        {"relative_path": "/etc/a.tar.xz"},
        {"sha256": "none"},
        {"size": "many"},
    ],
)
def test_a_manifest_that_leads_elsewhere_or_pins_nothing_is_refused(change, provide, redist) -> None:
    redist.change["cuda_nvcc"] = change
    with pytest.raises(ToolchainError, match="manifest cannot be read"):
        provide()


@pytest.mark.parametrize("data", [b"<html>", b"[]", b"{}", b'{"cuda_nvcc": 1}', b"\xff"])
def test_a_manifest_that_is_none_is_refused_and_not_kept(data, provide, redist, monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(redist, "manifest", lambda: data)
    with pytest.raises(ToolchainError, match="manifest cannot be read"):
        provide()
    assert not (tmp_path / "store/manifests").exists()


def test_a_server_without_the_manifest_is_an_error_with_its_answer(provide) -> None:
    with pytest.raises(ToolchainError, match="manifest cannot be had: the server answers 404"):
        provide(provide.location.replace("12.6.3", "12.6.9"))


def test_versions_are_read_off_the_names_without_a_request(tmp_path) -> None:
    def settings(*entries: str) -> Settings:
        return Settings(store=tmp_path, redist=entries)

    both = settings("https://mirror.example/redistrib_12.8.1.json", "/mnt/redistrib_12.6.3.json")
    assert [str(version) for version in offered("archive", both)] == ["12.6", "12.8"]
    with pytest.raises(ToolchainError, match=r"No release manifest is of CUDA 12\.9") as caught:
        require([MajorMinor(12, 9)], "archive", both)
    assert "CUDA 12.6: /mnt/redistrib_12.6.3.json" in caught.value.detail
    refused: list[KernelBuilderError] = []
    for wrong in (settings(), settings("https://mirror.example/"), settings("redistrib_12.6.3.json#sha256=12")):
        with pytest.raises(UsageError) as usage:
            offered("archive", wrong)
        refused.append(usage.value)
    assert all("redistrib_<release>.json" in error.hint for error in refused)
