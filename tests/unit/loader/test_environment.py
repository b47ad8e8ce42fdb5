"""The environment as a value, as it is probed, and the settings."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import pytest

from kernel_loader.environment import Environment
from kernel_loader.errors import UsageError
from kernel_loader.format.versions import MajorMinor
from kernel_loader.probe import describe_torch, probe
from kernel_loader.settings import Settings


def fake_torch(*, cuda=None, hip=None, xpu=None, mps=False, devices=(), **attributes):
    return SimpleNamespace(
        __version__="2.13.0+test",
        version=SimpleNamespace(cuda=cuda, hip=hip, xpu=xpu),
        backends=SimpleNamespace(mps=SimpleNamespace(is_available=lambda: mps), **attributes.pop("backends", {})),
        compiled_with_cxx11_abi=lambda: True,
        cuda=SimpleNamespace(
            device_count=lambda: len(devices),
            is_initialized=lambda: True,
            get_device_capability=lambda index: devices[index],
        ),
        **attributes,
    )


@pytest.mark.parametrize(
    ("torch", "backend", "version"),
    [
        (fake_torch(), "cpu", None),
        (fake_torch(cuda="12.8"), "cuda", MajorMinor(12, 8)),
        (fake_torch(hip="7.2.53211-e1a6bc5663"), "rocm", MajorMinor(7, 2)),
        (fake_torch(mps=True), "metal", None),
        (fake_torch(xpu="20250302"), "xpu", MajorMinor(2025, 3)),
        (fake_torch(neuron=object()), "neuron", None),
        (fake_torch(cuda="12.8", backends={"tpu": object()}), "tpu", None),
        (fake_torch(npu=SimpleNamespace()), "cann", None),
    ],
)
def test_the_backend_of_torch(torch, backend, version):
    described = describe_torch(torch)
    assert described["backend"] == backend
    assert (described["cuda"] or described["backend_version"]) == version


def test_gpus_are_listed_without_repeats():
    described = describe_torch(fake_torch(cuda="12.8", devices=((9, 0), (9, 0), (8, 0))))
    assert described["capabilities"] == ((9, 0), (8, 0))


def test_a_cuda_torch_without_a_working_gpu_is_no_failure():
    torch = fake_torch(cuda="12.8")
    torch.cuda.device_count = lambda: 1 / 0
    assert describe_torch(torch)["capabilities"] == ()


def test_a_process_without_torch_can_be_described(monkeypatch):
    monkeypatch.setattr("kernel_loader.probe.import_torch", lambda: None)
    env = probe.__wrapped__()
    assert env.torch is None
    assert str(env).startswith("no torch")


def test_described_environments():
    env = Environment.from_dict({"torch": "2.9.1", "cuda": "12.8", "capabilities": ["9.0"], "glibc": "2.28"})
    assert env.backend == "cuda"
    expected = "torch 2.9.1 (CUDA 12.8, C++11 ABI), Python 3.11, x86_64-linux, glibc 2.28, GPU 9.0"
    assert str(env) == expected
    assert Environment.from_dict(env.to_json()) == env


@pytest.mark.parametrize(
    "data",
    [{"torch": "new"}, {"cuda": "x"}, {"backend": "gpu"}, {"color": 1}, {"glibcxx": "a"}, {"capabilities": ["x"]}],
)
def test_a_wrong_description_is_refused(data):
    with pytest.raises(UsageError):
        Environment.from_dict(data)


@pytest.mark.parametrize(
    ("variables", "cache"),
    [
        ({"KERNELS_CACHE": "/a", "HF_HUB_CACHE": "/b", "HF_HOME": "/c"}, "/a"),
        ({"HF_HUB_CACHE": "/b", "HF_HOME": "/c"}, "/b"),
        ({"HF_HOME": "/c"}, "/c/hub"),
        ({"XDG_CACHE_HOME": "/d"}, "/d/huggingface/hub"),
        ({}, str(Path("~/.cache/huggingface/hub").expanduser())),
    ],
)
def test_where_the_cache_lies(variables, cache):
    assert str(Settings.from_environment(variables).cache) == cache


def test_local_kernels_paths_may_hold_colons():
    text = "acme/a=/x:y/a:org/b=C:/b:"
    expected = {"acme/a": Path("/x:y/a"), "org/b": Path("C:/b")}
    assert Settings.from_environment({"LOCAL_KERNELS": text}).local_kernels == expected


@pytest.mark.parametrize(("text", "offline"), [("1", True), ("true", True), ("YES", True), ("0", False), ("", False)])
def test_offline(text, offline):
    assert Settings.from_environment({"HF_HUB_OFFLINE": text}).offline == offline
