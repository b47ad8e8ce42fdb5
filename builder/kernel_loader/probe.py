"""This process as an ``Environment``. torch is imported when it is installed; a missing GPU is no failure."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib.metadata
import importlib.util
import os
import platform
import re
import sys
import sysconfig
from pathlib import Path
from typing import Any

from kernel_loader.environment import Environment, numbers
from kernel_loader.format.versions import MajorMinor

_CPUS = {"amd64": "x86_64", "arm64": "aarch64"}
_XPU = re.compile(r"(\d{4})(\d{2})\d*")


@functools.cache
def probe() -> Environment:
    """Describe this process; asked once."""
    torch = import_torch()
    return Environment(
        **(_describe_without_torch() if torch is None else describe_torch(torch)),
        cpu=cpu_name(),
        os=platform.system().lower(),
        python=sys.version_info[:2],
        free_threaded=bool(sysconfig.get_config_var("Py_GIL_DISABLED")),
        glibc=_glibc(),
        glibcxx=_glibcxx(),
        tvm_ffi=_installed("apache-tvm-ffi"),
        macos=_macos(),
    )


def cpu_name() -> str:
    """This machine's processor as variant names spell it."""
    machine = platform.machine().lower()
    return _CPUS.get(machine, machine)


def import_torch() -> Any:
    """The torch module, None when it is not installed."""
    if importlib.util.find_spec("torch") is None:
        return None
    return importlib.import_module("torch")


def describe_torch(torch: Any) -> dict[str, Any]:
    """The part of an environment that torch decides: its version, backend, ABI and GPUs."""
    backend, version = _backend_of(torch)
    is_cuda = backend == "cuda"
    return {
        "torch": str(torch.__version__),
        "cuda": version if is_cuda else None,
        "backend": backend,
        "backend_version": None if is_cuda else version,
        "cxx11": bool(torch.compiled_with_cxx11_abi()),
        "capabilities": _capabilities(torch) if is_cuda else (),
        "driver": _nvml_driver() if is_cuda else None,
    }


def _backend_of(torch: Any) -> tuple[str, MajorMinor | None]:
    """First match wins. The CUDA version is the one torch was built with: a machine without GPU changes nothing."""
    version = torch.version
    if hasattr(torch.backends, "tpu"):
        return "tpu", None
    if hasattr(torch, "neuron"):
        return "neuron", None
    if version.cuda:
        return "cuda", MajorMinor.parse(version.cuda)
    if version.hip:
        return "rocm", MajorMinor.parse(version.hip)
    if getattr(torch.backends, "mps", None) is not None and torch.backends.mps.is_available():
        return "metal", None
    if xpu := _XPU.match(getattr(version, "xpu", None) or ""):
        return "xpu", MajorMinor(int(xpu[1]), int(xpu[2]))
    if hasattr(torch, "npu"):
        return "cann", _cann(torch.npu)
    return "cpu", None


def _cann(npu: Any) -> MajorMinor | None:
    with contextlib.suppress(Exception):  # a private API of torch_npu, absent in some versions
        return MajorMinor.parse(npu.utils.get_cann_version())
    return None


def _describe_without_torch() -> dict[str, Any]:
    for name in ("libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"):
        with contextlib.suppress(OSError, AttributeError):
            number = ctypes.c_int(0)
            if ctypes.CDLL(name).cudaRuntimeGetVersion(ctypes.byref(number)) == 0:
                return {"backend": "cuda", "cuda": _cuda_number(number.value), "cxx11": None}
    return {"backend": "cpu", "cxx11": None}


def _capabilities(torch: Any) -> tuple[tuple[int, int], ...]:
    """Compute capabilities of the visible GPUs.

    A CUDA context in this process would break later forks, so the driver's management library is asked first; it
    cannot tell which GPUs are visible, so its answer counts only when all GPUs are alike.
    """
    with contextlib.suppress(Exception):  # broken drivers raise anything; a kernel for the CPU must still load
        count = torch.cuda.device_count()
        if count == 0:
            return ()
        alike = _nvml_capabilities()
        if len(alike) == 1 and not torch.cuda.is_initialized():
            return alike
        return tuple(dict.fromkeys(torch.cuda.get_device_capability(index) for index in range(count)))
    return ()


def _nvml() -> ctypes.CDLL | None:
    with contextlib.suppress(OSError, AttributeError):
        library = ctypes.CDLL("libnvidia-ml.so.1")
        if library.nvmlInit_v2() == 0:
            return library
    return None


def _nvml_capabilities() -> tuple[tuple[int, int], ...]:
    library = _nvml()
    count = ctypes.c_uint(0)
    if library is None or library.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
        return ()
    found = []
    for index in range(count.value):
        device, major, minor = ctypes.c_void_p(), ctypes.c_int(0), ctypes.c_int(0)
        library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(device))
        library.nvmlDeviceGetCudaComputeCapability(device, ctypes.byref(major), ctypes.byref(minor))
        found.append((major.value, minor.value))
    return tuple(dict.fromkeys(found))


def _nvml_driver() -> MajorMinor | None:
    library, number = _nvml(), ctypes.c_int(0)
    if library is None or library.nvmlSystemGetCudaDriverVersion_v2(ctypes.byref(number)) != 0:
        return None
    return _cuda_number(number.value)


def _cuda_number(number: int) -> MajorMinor:
    """12080 → 12.8."""
    return MajorMinor(number // 1000, number % 1000 // 10)


def _glibc() -> tuple[int, int] | None:
    try:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
    except (AttributeError, OSError, ValueError):
        return None
    if name != "glibc":
        return None
    parsed = MajorMinor.parse(version)
    return parsed.major, parsed.minor


def _glibcxx() -> tuple[int, ...] | None:
    """Newest GLIBCXX version of the libstdc++ that this process has loaded; torch loads one."""
    with contextlib.suppress(OSError):
        maps = Path("/proc/self/maps").read_text(errors="replace")
        path = re.search(r"(/\S*libstdc\+\+\.so\.6\S*)", maps)
        if path:
            found = re.findall(rb"GLIBCXX_(\d+(?:\.\d+)+)\0", Path(path[1]).read_bytes())
            return max((numbers(version.decode()) for version in found), default=None)
    return None


def _installed(distribution: str) -> MajorMinor | None:
    with contextlib.suppress(importlib.metadata.PackageNotFoundError, ValueError):
        return MajorMinor.parse(importlib.metadata.version(distribution))
    return None


def _macos() -> MajorMinor | None:
    version = platform.mac_ver()[0]
    return MajorMinor.parse(f"{version}.0") if version else None
