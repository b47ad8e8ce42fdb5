"""What callers rely on, read from files: Python names with signatures, and schemas of ops."""

from __future__ import annotations

import pytest

from kernel_builder.errors import CheckError
from kernel_builder.publish.api import PublicApi, differences, public_api, where_both_show


def names(**files: str) -> list[str]:
    """The API's lines; ``sub__x`` means ``sub/x.py``, and ``init`` is ``__init__``."""
    paths = {f"{name.replace('__', '/').replace('init', '__init__')}.py": text for name, text in files.items()}
    return public_api({path: text.encode() for path, text in paths.items()}, {}).lines()


def ops(source: str) -> tuple[str, ...]:
    return public_api({}, {"b.cpp": source.encode()}).ops


def test_names_are_followed_through_the_package():
    assert names(
        init="from . import layers\nfrom .impl import run as go, _hidden\nfrom .sub import deep\nLIMIT = 3\n"
        "__all__ = ['layers', 'go', 'deep', 'LIMIT']\n",
        impl="def run(a, /, b=1, *rest, c: int = 2, **more) -> int: ...\ndef _hidden(): ...\n",
        layers="class Norm:\n  def __init__(self, size): ...\n  def forward(self, x): ...\n  def _own(self): ...\n",
        sub__init="from ..impl import run as deep\n",
        unused="def unused(): ...\n",
    ) == [
        "LIMIT",
        "deep(a, /, b=1, *rest, c=2, **more)",
        "go(a, /, b=1, *rest, c=2, **more)",
        "layers",
        "layers.Norm",
        "layers.Norm.__init__(self, size)",
        "layers.Norm.forward(self, x)",
    ]


def test_layers_are_public_without_being_listed():
    found = names(
        init="from .f import g\nfrom . import layers\n__all__ = ['g']\n",
        f="def g(x): ...\n",
        layers="from .f import g\nclass L:\n  has_backward: bool = True\n  def forward(self, x): ...\n",
    )
    assert found == ["g(x)", "layers", "layers.L", "layers.L.forward(self, x)", "layers.L.has_backward"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("__all__ = ['f']\n__all__ += ['g']\n", ["f(x)", "g(y)"]),
        ("__all__ = ['f'] + ['g']\n", ["f(x)", "g(y)"]),
        ("__all__: list[str] = ['f']\n", ["f(x)"]),
        ("__all__ = [f]\n", ["f(x)"]),
        ("__all__ = []\n", []),
        ("", ["f(x)", "g(y)"]),
    ],
)
def test_all_is_read_however_it_is_written(text, expected):
    assert names(init=f"def f(x): ...\ndef g(y): ...\ndef _h(): ...\n{text}") == expected


def test_star_imports_bring_what_they_bring_at_run_time():
    found = names(init="from .a import *\n", a="from .b import *\n__all__ = ['f', 'g']\n", b="def f(x): ...\ng = 1\n")
    assert found == ["f(x)", "g"]


def test_of_branches_the_first_that_defines_a_name_counts():
    text = "try:\n  import t\n  def f(x, y): ...\nexcept ImportError:\n  f = None\nif t:\n  def g(z): ...\n"
    assert names(init=text) == ["f(x, y)", "g(z)"]


def test_classes_show_what_they_inherit_and_how_it_is_used():
    base = "class _B:\n  def go(self, x): ...\n  def stop(self): ...\n"
    text = "from .base import _B\nclass C(_B):\n  @property\n  def size(self): ...\n  def stop(self, now): ...\n"
    assert names(init=text + "__all__ = ['C']\n", base=base) == ["C", "C.go(self, x)", "C.size", "C.stop(self, now)"]


def test_defaults_of_a_dataclass_are_those_of_its_constructor():
    text = "@dataclass(frozen=True)\nclass Config:\n  eps: float = 1e-6\n  size: int\n"
    assert names(init=text) == ["Config", "Config.eps = 1e-06", "Config.size"]


@pytest.mark.parametrize(
    "files",
    [
        {"init": "from . import a\n", "a": "from . import b\n", "b": "from . import a\n"},
        {"init": "from .a import f\n", "a": "from .b import f\n", "b": "from .a import f\n"},
        {"init": "from .a import *\n", "a": "from .b import *\n", "b": "from .a import *\n"},
        {"init": "class A(B): ...\nclass B(A): ...\n"},
        {"init": "from .....x import y\nfrom . import *\nfrom .gone import z\n__all__ = ['y', 'z', 'missing']\n"},
        {"init": "from .a import missing\n", "a": "def other(): ...\n"},
    ],
)
def test_circles_and_dead_ends_end(files):
    assert all("other" not in line for line in names(**files))


def test_python_that_cannot_be_parsed_is_a_finding():
    with pytest.raises(CheckError, match=r"f\.py cannot be parsed"):
        names(f="def (")


def test_schemas_are_read_as_the_compiler_reads_them():
    assert ops("""
      // m.def("comment(Tensor x) -> Tensor");
      ops.def("first(Tensor! out, "  /* of rows */
              "Tensor x) -> ()");
      m.def(R"(raw(Tensor   x) -> Tensor)"); m.def(R"x(marked(Tensor x) -> Tensor)x");
      m.def("inferred", &f);  const char* url = "http://x"; char quote = '"';
      constexpr char kLater[] = "constant(Tensor x, str s=\\"a\\") -> (Tensor, Tensor)";
      m.def(kLater); throw Error("x (" + text + ") -> broken");
    """) == (
        'constant(Tensor x, str s="a") -> (Tensor, Tensor)',
        "first(Tensor! out, Tensor x) -> ()",
        "inferred",
        "marked(Tensor x) -> Tensor",
        "raw(Tensor x) -> Tensor",
    )


def test_tests_and_documents_define_no_op():
    source = b'm.def("no(Tensor x) -> Tensor");'
    sources = dict.fromkeys(["toy/README.md", "toy/tests/t.cpp", "toy/benchmarks/b.cu"], source)
    assert public_api({}, sources).ops == ()


def test_libraries_show_schemas_where_there_are_no_sources():
    library = b"\x7fELF\0\xff\xfe\0ns::double(Tensor x) -> Tensor\0a->b\0->\0broken(Tensor x) -> Tens"
    assert public_api({"_k.abi3.so": library}, {}).ops == ("double(Tensor x) -> Tensor",)
    assert public_api({"_k.abi3.so": library}, {"b.cpp": b'm.def("f() -> int");'}).ops == ("f() -> int",)


def test_ops_that_only_one_library_shows_are_not_compared():
    old, new = PublicApi(ops=("f(Tensor x) -> ()", "g() -> ()")), PublicApi(ops=("f(Tensor y) -> ()", "h() -> ()"))
    assert differences(*where_both_show(old, new)) == ["- op f(Tensor x) -> ()", "+ op f(Tensor y) -> ()"]


def test_differences_name_what_went_and_what_came():
    old, new = PublicApi(python={"f": "(x)"}), PublicApi(python={"f": "(x, y=1)"}, ops=("g() -> int",))
    assert differences(old, new) == ["- f(x)", "+ f(x, y=1)", "+ op g() -> int"]
    assert differences(old, old) == []


def test_what_is_recorded_is_read_back_and_nothing_else_is():
    api = PublicApi(python={"f": "(x)"}, ops=("g() -> int",))
    assert PublicApi.from_json(api.to_json()) == api
    for other in (None, [], {}, {**api.to_json(), "rules": 0}, {**api.to_json(), "ops": [1]}):
        assert PublicApi.from_json(other) is None
