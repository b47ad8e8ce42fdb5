"""Which findings refuse, and names of C++ symbols for people."""

from __future__ import annotations

import pytest

from kernel_builder.check.model import Finding, Severity
from kernel_builder.check.report import errors
from kernel_builder.check.symbols import is_std
from kernel_loader.demangle import demangle


def finding(severity: Severity, where: str = "a/torch-cpu: x.py:1") -> Finding:
    return Finding(code="c", severity=severity, where=where, message="m")


def test_only_errors_refuse() -> None:
    assert errors([finding("note"), finding("warning")]) == 0
    assert errors([finding("error"), finding("error"), finding("note")]) == 2


@pytest.mark.parametrize(
    ("symbol", "name", "std"),
    [
        ("_ZN2at5emptyEN3c108ArrayRefIlEE", "at::empty", False),
        ("_ZTIN3c105ErrorE", "typeinfo for c10::Error", False),
        ("_ZNK3c1010TensorImpl5sizesEv", "c10::TensorImpl::sizes", False),
        ("_ZNSt9exceptionD2Ev", "std::exception", True),
        ("_ZTVN10__cxxabiv120__si_class_type_infoE", "vtable for __cxxabiv1::__si_class_type_info", True),
        ("_ZNKSt7__cxx1112basic_stringIcE4sizeEv", "std::__cxx11::basic_string", True),
        ("_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", "std", True),
        ("_Znwm", "_Znwm", True),
        ("aoti_torch_get_dim", "aoti_torch_get_dim", False),
        ("_Z", "_Z", False),
        ("_ZN3c105ErrorD1Ev", "c10::Error", False),
        ("_ZN2at4_ops5empty4callEv", "at::_ops::empty::call", False),
        ("_Z3fooi", "foo", False),
        ("_ZN99999999a", "a", False),
    ],
)
def test_symbols_are_shown_by_their_qualified_names(symbol: str, name: str, std: bool) -> None:
    assert (demangle(symbol), is_std(symbol)) == (name, std)
