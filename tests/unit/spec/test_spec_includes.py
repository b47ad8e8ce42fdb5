"""The include scanner sees every project file that a compiler could read."""

from __future__ import annotations

import pytest

from kernel_builder.errors import SpecError
from kernel_builder.spec.includes import Known, directives, reachable


@pytest.fixture
def tree(tmp_path):
    """Writes files below ``kernel`` and ``common``; returns what ``kernel/csrc/a.cpp`` reaches, as relative names."""

    def reached(files: dict[str, str], include_dirs: tuple[str, ...] = ("common/include", "kernel/csrc")) -> set[str]:
        for path, text in files.items():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / path).write_text(text)
        (tmp_path / "common").mkdir(exist_ok=True)
        found = reachable(
            tmp_path / "kernel/csrc/a.cpp",
            [tmp_path / folder for folder in include_dirs],
            tmp_path / "kernel",
            tmp_path / "common",
        )
        assert list(found) == sorted(found)
        return {path.relative_to(tmp_path).as_posix() for path in found} - {"kernel/csrc/a.cpp"}

    return reached


def names(text: str) -> list[str | None]:
    return [directive.name for directive in directives(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('#include "a.h"', ["a.h"]),
        ("#include <a.h>", ["a.h"]),
        ('  #  include\t"a.h" // why', ["a.h"]),
        ('/* x */ #include "a.h"', ["a.h"]),
        ('#include /* x */ "a.h"', ["a.h"]),
        ('# /* x */ include "a.h"', ["a.h"]),
        ('#include"a.h"', ["a.h"]),
        ('#inc\\\nlude "a.h"', ["a.h"]),
        ('#include \\\r\n "a.h"', ["a.h"]),
        ('#include_next <a.h>\n#import "b.h"', ["a.h", "b.h"]),
        ('#embed "data.bin"', ["data.bin"]),
        ('%:include "a.h"', ["a.h"]),
        ('??=include "a.h"', ["a.h"]),
        ('#if 0\n#include "a.h"\n#endif', ["a.h"]),
        ('#if __has_include("a.h")\n#endif', ["a.h"]),
        ("#include NAME", [None]),
        ("#include NAME(x)", [None]),
        ('// #include "a.h"', []),
        ('/* \n#include "a.h"\n*/', []),
        ('/* \n#include "a.h"', []),
        ('// a \\\n#include "a.h"', []),
        ('const char* s = "/*";\n#include "a.h"\n// */', ["a.h"]),
        ('char c = \'"\';\n#include "a.h"', ["a.h"]),
        ("char c = '\\'';  /*\n#include \"a.h\"\n*/", []),
        ("int n = 1'000'000; /* it's */\n#include \"a.h\"", ["a.h"]),
        ('auto s = R"(/*)";\n#include "a.h"', ["a.h"]),
        ('auto s = R"x(" /* )" )x";\n#include "a.h"', ["a.h"]),
        ('auto s = FOOR"(/*";\n#include "a.h"', ["a.h"]),
        ('#error don\'t\n#include "a.h"', ["a.h"]),
        ('int include = 3; x #include "a.h"', []),
        ("#included <a.h>", []),
        ('#include "it\'s.h"', ["it's.h"]),
        ("#include <a//b.h>", ["a//b.h"]),
    ],
)
def test_directives(text, expected):
    assert names(text) == expected


def test_includes_are_followed_through_headers(tree):
    found = tree(
        {
            "kernel/csrc/a.cpp": '#include "b.h"',
            "kernel/csrc/b.h": '#include "deep/c.h"',
            "kernel/csrc/deep/c.h": '#include "d.h"\n#include <kb/e.h>',
            "kernel/csrc/deep/d.h": "",
            "kernel/csrc/unused.h": "",
            "common/include/kb/e.h": "",
        }
    )
    assert found == {"kernel/csrc/b.h", "kernel/csrc/deep/c.h", "kernel/csrc/deep/d.h", "common/include/kb/e.h"}


def test_cycles_end(tree):
    assert tree({"kernel/csrc/a.cpp": '#include "b.h"', "kernel/csrc/b.h": '#include "a.cpp"\n#include "b.h"'}) == {
        "kernel/csrc/b.h"
    }


def test_angled_includes_do_not_look_beside_the_file(tree):
    files = {"kernel/csrc/a.cpp": "#include <b.h>", "kernel/csrc/b.h": ""}
    assert tree(files, ("common/include",)) == set()
    assert tree(files) == {"kernel/csrc/b.h"}


def test_every_match_counts_because_of_include_next(tree):
    files = {
        "kernel/csrc/a.cpp": "#include <x.h>",
        "common/include/x.h": "#include_next <x.h>",
        "kernel/csrc/x.h": '#include "only_second.h"',
        "kernel/csrc/only_second.h": "",
    }
    assert tree(files) == {"common/include/x.h", "kernel/csrc/x.h", "kernel/csrc/only_second.h"}


def test_system_and_missing_headers_are_left_to_the_compiler(tree):
    assert tree({"kernel/csrc/a.cpp": '#include <vector>\n#include "ATen/ATen.h"\n#include "missing.h"'}) == set()


def test_a_computed_include_reaches_every_header(tree):
    found = tree(
        {
            "kernel/csrc/a.cpp": "#include HEADER",
            "kernel/x/one.cuh": "",
            "kernel/two.hpp": '#include "data.txt"',
            "kernel/data.txt": "",
            "kernel/other.cpp": "",
            "common/include/kb/three.h": "",
        }
    )
    assert found == {"kernel/x/one.cuh", "kernel/two.hpp", "kernel/data.txt", "common/include/kb/three.h"}


@pytest.mark.parametrize(
    "include",
    [
        '"../../outside.h"',
        "<../../outside.h>",
        '"/etc/passwd"',
        "</etc/passwd>",
        '"../../not_there.h"',
        '"/"',
        '"../../.."',
    ],
)
def test_includes_that_leave_are_refused(tree, tmp_path, include):
    (tmp_path / "outside.h").write_text("")
    with pytest.raises(SpecError, match="leaves the kernel folder") as caught:
        tree({"kernel/csrc/a.cpp": f"#include {include}"})
    assert caught.value.where.endswith("kernel/csrc/a.cpp")
    assert caught.value.exit_code == 2


def test_dots_that_stay_inside_are_fine(tree):
    assert tree({"kernel/csrc/a.cpp": '#include "../x/../b.h"', "kernel/b.h": ""}) == {"kernel/b.h"}


def test_links_that_leave_are_refused(tree, tmp_path):
    (tmp_path / "outside.h").write_text("")
    (tmp_path / "kernel/csrc").mkdir(parents=True)
    (tmp_path / "kernel/csrc/b.h").symlink_to(tmp_path / "outside.h")
    with pytest.raises(SpecError, match="leaves the kernel folder"):
        tree({"kernel/csrc/a.cpp": '#include "b.h"'})


def test_dots_after_a_linked_folder_do_not_hide_a_way_out(tree, tmp_path):
    (tmp_path / "secret.h").write_text("")
    (tmp_path / "kernel/csrc").mkdir(parents=True)
    (tmp_path / "kernel/csrc/loop").symlink_to(tmp_path / "kernel")
    with pytest.raises(SpecError, match="leaves the kernel folder"):
        tree({"kernel/csrc/a.cpp": '#include "loop/../secret.h"'})


@pytest.mark.parametrize("planted", ["kernel/csrc/b.h.gch", "kernel/csrc/vector.gch"])
def test_precompiled_headers_are_refused(tree, planted):
    with pytest.raises(SpecError, match="precompiled header"):
        tree({"kernel/csrc/a.cpp": '#include "b.h"\n#include <vector>', "kernel/csrc/b.h": "", planted: ""})


def test_hostile_names_do_not_crash(tree):
    text = f'#include "{"x" * 5000}"\n#include "nul\0.h"\n#include "."\n#include <>\n#include "'
    assert tree({"kernel/csrc/a.cpp": text}) == set()


def test_a_source_that_is_not_utf8_is_scanned(tmp_path):
    (tmp_path / "a.cpp").write_bytes(b'// \xff\n#include "b.h"\n')
    (tmp_path / "b.h").write_bytes(b"")
    assert [p.name for p in reachable(tmp_path / "a.cpp", [], tmp_path, None)] == ["a.cpp", "b.h"]


def test_a_shared_memory_of_directives_changes_nothing(tmp_path):
    (tmp_path / "a.cpp").write_text('#include "b.h"')
    (tmp_path / "b.h").write_text("")
    known = Known()
    first = reachable(tmp_path / "a.cpp", [], tmp_path, None, known=known)
    assert reachable(tmp_path / "a.cpp", [], tmp_path, None, known=known) == first
    assert set(known.directives) == set(first)
