"""Whose an imported symbol is: the system's, Python's or torch's."""

from __future__ import annotations

from kernel_loader.demangle import demangle

_RUNTIME = ("__cxa_", "__gxx_", "__gnu_cxx", "_Unwind_", "_Znw", "_Zna", "_Zdl", "_Zda")
_PYTHON = ("Py", "_Py")
# libtorch_cpu exports the SLEEF that its vector headers call.
_C_OF_TORCH = ("aoti_", "torch_", "THP", "c10_", "caffe2_", "Sleef_")


def is_std(symbol: str) -> bool:
    """Whether a symbol belongs to the C++ run time: ``std::``, ``operator new``, exceptions, unwinding."""
    if symbol.startswith(_RUNTIME):
        return True
    if not symbol.startswith("_Z"):
        return False
    name = demangle(symbol).rpartition(" for ")[2]
    return name == "std" or name.startswith(("std::", "__gnu_cxx::", "__cxxabiv1::"))


def is_python(symbol: str) -> bool:
    """Whether a symbol is one of CPython's C API."""
    return symbol.startswith(_PYTHON)


def is_torch(symbol: str) -> bool:
    """Whether a symbol without a version is torch's: C++ that is not the run time's, or a name of its C shim."""
    return not is_std(symbol) if symbol.startswith("_Z") else symbol.startswith(_C_OF_TORCH)


def is_system(symbol: str) -> bool:
    """Whether a symbol without a version should have had one: C and C++ run time. CUDA's libraries version theirs."""
    return is_std(symbol) if symbol.startswith("_Z") else not (is_python(symbol) or is_torch(symbol))
