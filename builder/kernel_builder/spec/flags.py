"""Compiler flags that a kernel may set: an allow-list, because a flag can load code, read files or write them.

Everything not listed is refused. Reasons are given for the classes an author is most likely to try.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from kernel_builder.spec.kinds import RESERVED_MACROS, Kind, mismatch, text

if TYPE_CHECKING:
    from kernel_builder.spec.faults import Place

_DEFINE = r"-D[A-Za-z_]\w*(\([\w, ]*\))?(=.*)?|-U[A-Za-z_]\w*"
_ISA = (
    r"sse[0-9a.]*|ssse3|avx[0-9a-z.]*|amx-[a-z0-9]+|fma4?|f16c|bmi2?|popcnt|lzcnt|movbe|v?aes|v?pclmul(qdq)?"
    r"|gfni|sha|prfchw|vzeroupper|cx16"
)
_FLOATING = (
    r"fast-math|math-errno|trapping-math|finite-math-only|associative-math|reciprocal-math|signed-zeros"
    r"|unsafe-math-optimizations|rounding-math|signaling-nans|cx-limited-range|excess-precision=(fast|standard)"
    r"|fp-contract=(off|on|fast)"
)
_CODE = (
    r"unroll-(all-)?loops|(tree-)?(loop-|slp-)?vectorize|peel-loops|inline(-functions)?|inline-limit=\d+"
    r"|strict-aliasing|strict-overflow|wrapv|omit-frame-pointer|delete-null-pointer-checks|builtin|gcse|plt"
    r"|prefetch-loop-arrays|merge-constants|openmp(-simd)?|PIC|stack-protector(-strong|-all)?"
    r"|semantic-interposition|unit-at-a-time|vect-cost-model=[a-z-]+|jump-tables"
)
_LANGUAGE = (
    r"exceptions|rtti|permissive|char8_t|aligned-new(=\d+)?|sized-deallocation|threadsafe-statics"
    r"|(un)?signed-char|access-control|concepts|coroutines|template-depth=\d+|template-backtrace-limit=\d+"
    r"|constexpr-(depth|ops-limit|loop-limit|cache-depth)=\d+|max-errors=\d+|visibility=(hidden|default)"
    r"|visibility-inlines-hidden|diagnostics-color=[a-z]+"
)
CXX = re.compile(
    rf"{_DEFINE}|-O([0-3sgz]|fast)?|-g[0-3]?|-std=(c|gnu)\+\+\w\w|-w|-pedantic(-errors)?|-ansi|-pthread"
    rf"|-W(no-)?[a-z][a-z0-9+-]*(=[a-z0-9-]+)?"
    rf"|-f(no-)?({_FLOATING}|{_CODE}|{_LANGUAGE})"
    rf"|-m(no-)?({_ISA})|-mprefer-vector-width=\w+|-m(arch|tune|cpu)=(?!native)[a-z0-9.+-]+"
)
PTXAS = re.compile(
    r"-v|--verbose|-O[0-4]|--opt-level[= ][0-4]|-dlcm=[a-z]+|--def-load-cache=[a-z]+|-w|--?warn-[a-z-]+|-Werror"
    r"|--allow-expensive-optimizations=(true|false)|--disable-optimizer-constants|-maxrregcount=\d+|--register-usage-level=\d+"
)
CUDA = re.compile(
    rf"{_DEFINE}|-O[0-3]|--?std[= ]?=?c\+\+\w\w|-w|-lineinfo|--generate-line-info|--?use_fast_math|-g"
    r"|--?expt-(relaxed-constexpr|extended-lambda)|--?extended-lambda|--?maxrregcount=\d+|--?resource-usage|-res-usage"
    r"|--?(ftz|fmad|prec-div|prec-sqrt)=(true|false)|--?ftemplate-(backtrace-limit|depth)[= ]\d+"
    r"|--?diag-(suppress|warn)[= ][\d,]+|--?display-error-number|-Wno-[a-z-]+"
    r"|--?default-stream[= ](legacy|null|per-thread)"
    r"|(--threads|-t)[= ]\d+|--?(extra-device-vectorization|restrict)|--?split-compile[= ]\d+"
    r"|--?compress-mode[= ](default|size|speed|balance|none)|--?no-compress"
)
FATBINARY = re.compile(r"--?(compress-all|no-compress)")
_PASSED_ON = {
    "-Xcompiler": CXX, "--compiler-options": CXX, "-Xptxas": PTXAS, "--ptxas-options": PTXAS, "-Xfatbin": FATBINARY,
}  # fmt: skip
_TAKES_NEXT = (
    *_PASSED_ON, "-std", "--std", "--threads", "-t", "--default-stream", "--split-compile", "--compress-mode",
    "-compress-mode",
)  # fmt: skip

# Reason → beginnings of flags. The longest beginning that fits explains best: -fprofile-use loads, -fprofile writes.
_REASONS = {
    "it reads further flags from a file": "@ --options-file -optf --config",
    "it loads code or files into the compiler": (
        "-fplugin -fpass-plugin -Xclang -load -mllvm -wrapper -specs --specs -ccbin --compiler-bindir -B -iplugindir"
        " -fuse-ld -fprofile-use -fauto-profile -dynamic --use-local-env"
    ),
    "it adds an include folder; use the key include": (
        "-I -isystem -iquote -idirafter -isysroot --sysroot -iprefix -iwith --include-path --system-include"
    ),
    "it includes a file that the sources do not name": "-include --include -imacros --pre-include -fmodule",
    "it changes how the library is linked": (
        "-l -L -Wl -Xlinker -shared -static -rdynamic -T -u -z -s -nostd -nodefault -no-pie -pie -cudart -flto -fwhopr"
    ),
    "it changes which files are written": (
        "-o -c -S -E -M -save-temps --save-temps -fdump -dump -aux -fstack-usage -fcallgraph -ftime-report -fopt-info"
        " -fprofile -ftest-coverage --coverage -fsave -gsplit -keep --keep -d -run --run -fdiagnostics --output"
    ),
    "it passes flags on to a program unseen": "-Wa -Wp -Xassembler -Xpreprocessor -Xnvlink -Xcudafe -Xarch",
    "it changes the language of the sources": "-x -ObjC --x --language",
    "the result would depend on the machine that builds": (
        "-march=native -mtune=native -mcpu=native -arch=native --gpu-architecture=native"
    ),
    "architectures belong to capabilities": "-gencode --generate-code --gpu -arch -code -fatbin -cubin -ptx",
    "each source is compiled as a whole program, and device code of several is never linked": (
        "-rdc --relocatable-device-code -dc --device-c -dw --device-w -dlink --device-link -dlto --dlink-time-opt"
    ),
}
_UNKNOWN = "it is not on the list of flags that kernels may set"


def _joined(flags: list[str]) -> list[tuple[int, str]]:
    """Flags with their index; a flag that takes the next argument is joined to it with ``=``."""
    found: list[tuple[int, str]] = []
    index = 0
    while index < len(flags):
        flag, start = flags[index], index
        if flag in _TAKES_NEXT and index + 1 < len(flags):
            index += 1
            flag = f"{flag}={flags[index]}"
        found.append((start, flag))
        index += 1
    return found


def refusal(flag: str, allowed: re.Pattern[str] = CXX) -> str | None:
    """Why a flag is refused, None when a kernel may set it. A separate argument comes as ``flag=argument``."""
    name, _, value = flag.partition("=")
    if name[:2] in ("-D", "-U") and name[2:] in RESERVED_MACROS:
        return "the build decides this macro"
    if name in _PASSED_ON and allowed is CUDA:
        return next((why for part in value.split(",") if (why := refusal(part, _PASSED_ON[name]))), None)
    if allowed.fullmatch(flag):
        return None
    fitting = [
        (len(beginning), why)
        for why, beginnings in _REASONS.items()
        for beginning in beginnings.split()
        if flag.startswith(beginning)
    ]
    return max(fitting, default=(0, _UNKNOWN))[1]


def flag_list(allowed: re.Pattern[str]) -> Kind[tuple[str, ...]]:
    """A list of flags, each an argument of its own, checked against an allow-list."""

    def check(value: object, at: Place) -> tuple[str, ...] | None:
        if not isinstance(value, list):
            mismatch(at, "a list of strings", value)
            return None
        before = len(at.faults)
        flags = [text().check(raw, at.item(index)) or "" for index, raw in enumerate(value)]
        if len(at.faults) > before:
            return None
        for index, flag in _joined(flags) if allowed is CUDA else enumerate(flags):
            if why := refusal(flag, allowed):
                at.item(index).fault(f"the flag {flag!r} is refused: {why}")
        return tuple(flags)

    return Kind(label="list of strings", check=check)
