"""Compiler flags: what kernels need passes, what loads, reads or writes anything does not."""

from __future__ import annotations

import pytest
from spec_samples import BUILD, replaced

from kernel_builder.errors import SpecError
from kernel_builder.spec.flags import CUDA, refusal
from kernel_builder.spec.read import read_kernel

ALLOWED_CXX = [
    "-O3",
    "-Ofast",
    "-O",
    "-g",
    "-std=c++17",
    "-std=gnu++20",
    "-DFOO",
    "-DFOO=1",
    '-DSTR="a_b"',
    "-DF(x)=x",
    "-UFOO",
    "-Wall",
    "-Wno-unused",
    "-Werror=vla",
    "-w",
    "-ffast-math",
    "-fno-math-errno",
    "-funroll-loops",
    "-fno-exceptions",
    "-fvisibility=hidden",
    "-ffp-contract=off",
    "-fopenmp-simd",
    "-mavx2",
    "-mfma",
    "-mavx512f",
    "-mno-avx",
    "-msse4.2",
    "-mamx-bf16",
    "-march=x86-64-v3",
    "-mtune=znver4",
    "-mprefer-vector-width=512",
    "-ftemplate-depth=2000",
    "-fconstexpr-ops-limit=100000000",
    "-pthread",
]

ALLOWED_CUDA = [
    "-O3",
    "-std=c++17",
    "--use_fast_math",
    "-use_fast_math",
    "--expt-relaxed-constexpr",
    "--expt-extended-lambda",
    "-lineinfo",
    "-DX=1",
    "-UY",
    "--ptxas-options=-v,--warn-on-spills",
    "-Xptxas=-O3",
    "-Xcompiler=-O2,-Wall",
    "--maxrregcount=128",
    "--resource-usage",
    "--ftemplate-backtrace-limit=0",
    "--threads=4",
    "--diag-suppress=20012,177",
    "--fmad=false",
    "--default-stream=per-thread",
]

# One class of attack per line: the flag, and the reason that is shown.
REFUSED = [
    ("@flags.txt", "reads further flags from a file"),
    ("--options-file=x", "reads further flags from a file"),
    ("-fplugin=evil.so", "loads code or files into the compiler"),
    ("-fplugin-arg-evil-x=1", "loads code or files into the compiler"),
    ("-fpass-plugin=evil.so", "loads code or files into the compiler"),
    ("-Xclang", "loads code or files into the compiler"),
    ("-load", "loads code or files into the compiler"),
    ("-mllvm", "loads code or files into the compiler"),
    ("-wrapper", "loads code or files into the compiler"),
    ("-wrapper=sh,-c,id", "loads code or files into the compiler"),
    ("-specs=evil.specs", "loads code or files into the compiler"),
    ("--specs=evil.specs", "loads code or files into the compiler"),
    ("-B.", "loads code or files into the compiler"),
    ("-Bcsrc", "loads code or files into the compiler"),
    ("-ccbin=/tmp/evil", "loads code or files into the compiler"),
    ("-fuse-ld=evil", "loads code or files into the compiler"),
    ("-fprofile-use=x", "loads code or files into the compiler"),
    ("-fauto-profile=x", "loads code or files into the compiler"),
    ("-I/etc", "adds an include folder"),
    ("-I", "adds an include folder"),
    ("-isystem/usr", "adds an include folder"),
    ("--sysroot=/x", "adds an include folder"),
    ("-include", "includes a file"),
    ("-include/etc/passwd", "includes a file"),
    ("--include=/etc/passwd", "includes a file"),
    ("-imacros", "includes a file"),
    ("-fmodules-ts", "includes a file"),
    ("-fmodule-mapper=|evil", "includes a file"),
    ("-ldl", "how the library is linked"),
    ("-L.", "how the library is linked"),
    ("-Wl,@x", "how the library is linked"),
    ("-Wl,-rpath,/tmp", "how the library is linked"),
    ("-Xlinker", "how the library is linked"),
    ("-shared", "how the library is linked"),
    ("-T", "how the library is linked"),
    ("-flto", "how the library is linked"),
    ("-o", "which files are written"),
    ("-o/tmp/x", "which files are written"),
    ("-save-temps=obj", "which files are written"),
    ("-fdump-tree-all=/tmp/x", "which files are written"),
    ("-dumpdir", "which files are written"),
    ("-MD", "which files are written"),
    ("-MF/tmp/x", "which files are written"),
    ("-MMD", "which files are written"),
    ("-E", "which files are written"),
    ("-S", "which files are written"),
    ("-c", "which files are written"),
    ("-run", "which files are written"),
    ("--coverage", "which files are written"),
    ("-fprofile-generate", "which files are written"),
    ("-fstack-usage", "which files are written"),
    ("-gsplit-dwarf", "which files are written"),
    ("-Wa,-a=/tmp/x", "passes flags on"),
    ("-Wp,-MD,/tmp/x", "passes flags on"),
    ("-Xassembler", "passes flags on"),
    ("-Xpreprocessor", "passes flags on"),
    ("-x", "language of the sources"),
    ("-xassembler", "language of the sources"),
    ("-march=native", "depend on the machine"),
    ("-mtune=native", "depend on the machine"),
    ("-DKB_STABLE_ABI=0", "the build decides this macro"),
    ("-UTORCH_TARGET_VERSION", "the build decides this macro"),
    ("-D_GLIBCXX_USE_CXX11_ABI=0", "the build decides this macro"),
    ("evil.so", "not on the list"),
    ("csrc/evil.o", "not on the list"),
    ("-D", "not on the list"),
    ("-funknown-flag", "not on the list"),
    ("--param=max-inline-insns-single=5", "not on the list"),
    ("-O3 -fplugin=x.so", "not on the list"),
    ("-", "not on the list"),
]


@pytest.mark.parametrize("flag", ALLOWED_CXX)
def test_flags_that_kernels_use_pass(flag):
    assert refusal(flag) is None


@pytest.mark.parametrize("flag", ALLOWED_CUDA)
def test_flags_for_device_code_pass(flag):
    assert refusal(flag, CUDA) is None


@pytest.mark.parametrize(("flag", "reason"), REFUSED)
def test_flags_that_reach_beyond_the_sources_are_refused(flag, reason):
    assert reason in (refusal(flag) or "")


@pytest.mark.parametrize("flag", [flag for flag, _ in REFUSED if flag not in ("-I", "-T", "-")])
@pytest.mark.parametrize("way", ["-Xcompiler={}", "--compiler-options=-O2,{}"])
def test_nothing_slips_through_flags_that_pass_flags_on(flag, way):
    assert refusal(way.format(flag), CUDA)


@pytest.mark.parametrize("flag", ["-rdc=true", "--relocatable-device-code=true", "-dc", "-dlto"])
def test_device_code_of_several_sources_is_not_linked_and_the_refusal_says_so(flag):
    assert "whole program" in (refusal(flag, CUDA) or "")


@pytest.mark.parametrize(
    "flag", ["-compress-mode=size", "--compress-mode=none", "-Xfatbin=-compress-all", "--no-compress"]
)
def test_compression_of_device_code_is_the_authors_choice(flag):
    assert refusal(flag, CUDA) is None


@pytest.mark.parametrize("flag", ["-Xfatbin=--create", "-Xfatbin=--options-file", "-compress-mode=fast"])
def test_nothing_but_compression_reaches_fatbinary(flag):
    assert refusal(flag, CUDA) is not None


@pytest.mark.parametrize("flag", ["-gencode=arch=compute_80,code=sm_80", "-arch=sm_90", "-code=sm_90"])
def test_architectures_are_not_set_by_flags(flag):
    assert refusal(flag, CUDA) == "architectures belong to capabilities"


@pytest.mark.parametrize(
    ("flags", "index"),
    [
        ('["-Xcompiler", "-fplugin=x.so"]', 0),
        ('["-O3", "-Xptxas", "@x"]', 1),
        ('["-Xcompiler"]', 0),
        ('["-O3", "-O2", "-ldl"]', 2),
    ],
)
def test_the_fault_names_the_flag_and_its_place(kernel_folder, flags, index):
    build = replaced('src = ["csrc/op_cuda.cpp"', f'cuda-flags = {flags}\nsrc = ["csrc/op_cuda.cpp"')
    with pytest.raises(SpecError, match="is refused") as caught:
        read_kernel(kernel_folder(build=build))
    assert caught.value.where.endswith(f"kernel.launch.cuda-flags[{index}]")


@pytest.mark.parametrize("table", ["[torch]\n", "[kernel.host]\n"])
def test_cxx_flags_are_checked_in_every_table(kernel_folder, table):
    build = replaced(table, f'{table}cxx-flags = ["-O3", "-fplugin=x.so"]\n')
    with pytest.raises(SpecError, match="loads code or files"):
        read_kernel(kernel_folder(build=build))


@pytest.mark.parametrize(
    ("flags", "expected"),
    [('"-O3"', "expected a list of strings"), ("[3]", "expected a string"), ('["-DX=\\n"]', "control character")],
)
def test_flags_of_a_wrong_type(kernel_folder, flags, expected):
    with pytest.raises(SpecError, match=expected):
        read_kernel(kernel_folder(build=BUILD.replace("[torch]\n", f"[torch]\ncxx-flags = {flags}\n")))
