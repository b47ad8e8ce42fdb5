"""Every table and key of build.toml (edition 5; ``editions`` brings older ones to it) and kernel-builder.toml."""

from __future__ import annotations

from typing import Any

from kernel_builder.spec.flags import CUDA, CXX, flag_list
from kernel_builder.spec.kinds import (
    BACKENDS,
    BRANCH,
    CAPABILITY,
    DEFINE,
    EXTENSION,
    GIT_URL,
    INTEGER,
    KERNEL_DEPENDENCY,
    KERNEL_NAME,
    REPO_ID,
    STABLE_ABI,
    TABLE,
    TEXT,
    VERSION,
    choice,
    listing,
)
from kernel_builder.spec.paths import PATH
from kernel_builder.spec.table import Key, Section

EDITION = 5
BUILD = "build.toml"
BUILDER = "kernel-builder.toml"
FRAMEWORKS = ("torch", "torch-noarch", "tvm-ffi")
COMPONENT_BACKENDS = ("cpu", "cuda", "metal", "rocm", "xpu")
# Loaders refuse every Python dependency that is not on this list.
PYTHON_DEPENDENCIES = {
    "general": ("einops", "helion", "tvm-ffi"),
    "cuda": ("nvidia-cutlass-dsl",),
    "neuron": ("nki",),
    "tpu": (),
    "xpu": ("onednn",),
}
LIBRARIES = (
    "torch",
    *(f"cutlass_{version}" for version in ("2_10", "3_5", "3_6", "3_8", "3_9", "4_0", "4_4", "4_5")),
    "metal-cpp",
    "sycl_tla",
)

_TEXTS = listing(TEXT)
_PATHS = listing(PATH)
_SOURCES = listing(PATH, unique=False)
_CAPABILITIES = listing(CAPABILITY, least=1)


def _python_depends(backend: str) -> Key[tuple[str, ...]]:
    known = PYTHON_DEPENDENCIES[backend]
    names = f": {', '.join(known)}" if known else "; none is known yet"
    doc = f"Python packages needed at run time{names}."
    return Key(name="python-depends", kind=listing(choice(known)), default=(), doc=doc)


NAME = Key(name="name", kind=KERNEL_NAME, default="", required=True, doc="Name of the kernel.")
KERNEL_VERSION = Key(
    name="version", kind=INTEGER, default=0, required=True, doc="Major version of the public API; branch v<version>."
)
EDITION_KEY = Key(
    name="edition",
    kind=INTEGER,
    default=EDITION,
    required=True,
    doc="Edition of this format: 5. Files without it are read as edition 4 or 3.",
)
LICENSE = Key(name="license", kind=TEXT, default="", required=True, doc="Licence identifier.")
BACKEND_LIST = Key(
    name="backends",
    kind=listing(choice(BACKENDS), least=1),
    default=(),
    required=True,
    doc=f"What the kernel is built for: {', '.join(BACKENDS)}.",
)
UPSTREAM: Key[str | None] = Key(
    name="upstream", kind=GIT_URL, default=None, doc="Git URL of the project it comes from."
)
SOURCE: Key[str | None] = Key(name="source", kind=GIT_URL, default=None, doc="Git URL of this kernel's sources.")
PYTHON_DEPENDS = _python_depends("general")
KERNEL_DEPENDS = Key(
    name="kernel-depends",
    kind=listing(KERNEL_DEPENDENCY),
    default=(),
    doc="Other kernels: {repo-id, version} or {repo-id, revision}.",
)
REPO: Key[str | None] = Key(name="repo-id", kind=REPO_ID, default=None, doc="Repository it is published to.")
HUB_BRANCH: Key[str | None] = Key(name="branch", kind=BRANCH, default=None, doc="Branch instead of v<version>.")
MINVER: Key[Any] = Key(name="minver", kind=VERSION, default=None, doc="Lowest version, inclusive.")
MAXVER: Key[Any] = Key(name="maxver", kind=VERSION, default=None, doc="Highest version, inclusive.")

_BACKEND_KEYS: dict[str, tuple[Key[Any], ...]] = {
    "cuda": (MINVER, MAXVER, KERNEL_DEPENDS, _python_depends("cuda")),
    "neuron": (KERNEL_DEPENDS, _python_depends("neuron")),
    "tpu": (_python_depends("tpu"),),
    "xpu": (KERNEL_DEPENDS, _python_depends("xpu")),
}
BACKEND_TABLES = {name: Section(file=BUILD, title=f"general.{name}", keys=keys) for name, keys in _BACKEND_KEYS.items()}
SUBTABLES: dict[str, Key[Any]] = {
    name: Key(name=name, kind=TABLE, default={}, doc=f"See [general.{name}].") for name in ("hub", *BACKEND_TABLES)
}
GENERAL = Section(
    file=BUILD,
    title="general",
    keys=(
        NAME,
        KERNEL_VERSION,
        EDITION_KEY,
        LICENSE,
        BACKEND_LIST,
        UPSTREAM,
        SOURCE,
        PYTHON_DEPENDS,
        KERNEL_DEPENDS,
        *SUBTABLES.values(),
    ),
)
HUB = Section(file=BUILD, title="general.hub", keys=(REPO, HUB_BRANCH))

SRC = Key(name="src", kind=_SOURCES, default=(), doc="Binding sources and headers.")
SRC_REQUIRED = Key(
    name="src",
    kind=listing(PATH, unique=False, least=1),
    default=(),
    required=True,
    doc="Sources and headers, each listed; patterns are not expanded.",
)
INCLUDE = Key(name="include", kind=_PATHS, default=(), doc="Include folders inside the kernel folder.")
PYEXT = Key(
    name="pyext", kind=listing(EXTENSION), default=("py", "pyi"), doc="Extensions of files shipped beside .py files."
)
CXX_FLAGS = Key(name="cxx-flags", kind=flag_list(CXX), default=(), doc="Flags of C++ sources, from the allowed ones.")
STABLE = Key(
    name="stable-abi",
    kind=STABLE_ABI,
    default={},
    doc="Lowest torch of the stable ABI, for all backends or per backend; others use the full ABI.",
)
CUDA_ARCHS = Key(name="cuda_capabilities", kind=_TEXTS, default=(), doc="Architectures written to metadata.json.")
ROCM_ARCHS = Key(name="rocm_archs", kind=_TEXTS, default=(), doc="Architectures written to metadata.json.")
FRAMEWORK_TABLES = {
    "torch": Section(file=BUILD, title="torch", keys=(SRC, PYEXT, INCLUDE, MINVER, MAXVER, STABLE, CXX_FLAGS)),
    "torch-noarch": Section(file=BUILD, title="torch-noarch", keys=(PYEXT, CUDA_ARCHS, ROCM_ARCHS)),
    "tvm-ffi": Section(file=BUILD, title="tvm-ffi", keys=(SRC_REQUIRED, PYEXT, INCLUDE, CXX_FLAGS)),
}

BACKEND = Key(
    name="backend",
    kind=choice(COMPONENT_BACKENDS),
    default="",
    required=True,
    doc=f"One of {', '.join(COMPONENT_BACKENDS)}.",
)
DEPENDS = Key(
    name="depends",
    kind=listing(choice(LIBRARIES)),
    default=(),
    required=True,
    doc=f"Libraries whose headers the sources see: {', '.join(LIBRARIES)}; may be empty.",
)
CAPABILITIES: Key[Any] = Key(
    name="cuda-capabilities", kind=_CAPABILITIES, default=None, doc="Architectures of .cu sources (cuda)."
)
CUDA_FLAGS = Key(name="cuda-flags", kind=flag_list(CUDA), default=(), doc="Flags of .cu sources (cuda).")
CUDA_MINVER: Key[Any] = Key(
    name="cuda-minver", kind=VERSION, default=None, doc="Left out of variants of older CUDA (cuda)."
)
_COMPONENT_KEYS: tuple[Key[Any], ...] = (BACKEND, DEPENDS, SRC_REQUIRED, INCLUDE, CXX_FLAGS)
_EXTRA_KEYS: dict[str, tuple[Key[Any], ...]] = {
    "cuda": (CAPABILITIES, CUDA_FLAGS, CUDA_MINVER),
    "rocm": (
        Key(name="rocm-archs", kind=_TEXTS, default=(), doc="Architectures (rocm; checked, not built)."),
        Key(name="hip-flags", kind=listing(TEXT, unique=False), default=(), doc="Flags (rocm; checked, not built)."),
    ),
    "xpu": (
        Key(name="sycl-flags", kind=listing(TEXT, unique=False), default=(), doc="Flags (xpu; checked, not built)."),
    ),
}
COMPONENT_TABLES = {
    backend: Section(file=BUILD, title="kernel.<key>", keys=(*_COMPONENT_KEYS, *_EXTRA_KEYS.get(backend, ())))
    for backend in COMPONENT_BACKENDS
}
# For a component whose backend is not readable: every key is known, so that only real faults are noted.
ANY_COMPONENT = Section(
    file=BUILD, title="kernel.<key>", keys=(*_COMPONENT_KEYS, *(key for keys in _EXTRA_KEYS.values() for key in keys))
)

DEVICE_SRC = Key(
    name="src",
    kind=PATH,
    default="",
    required=True,
    doc="The .cu file: device code only, compiled for each architecture.",
)
DEVICE_CAPABILITIES: Key[Any] = Key(
    name="capabilities",
    kind=_CAPABILITIES,
    default=None,
    doc='Architectures such as "8.0", "9.0a", "12.0+PTX" (machine code and PTX); default: the toolkit\'s.',
)
DEFINES = Key(name="defines", kind=listing(DEFINE), default=(), doc="Preprocessor definitions, NAME or NAME=VALUE.")
SHARED_BYTES = Key(
    name="dynamic-shared-bytes", kind=INTEGER, default=0, doc="Largest dynamic shared memory of a launch, in bytes."
)
DEVICE = Section(
    file=BUILDER,
    title="device.<name>",
    keys=(DEVICE_SRC, INCLUDE, DEVICE_CAPABILITIES, DEFINES, SHARED_BYTES),
)

SECTIONS = (GENERAL, HUB, *BACKEND_TABLES.values(), *FRAMEWORK_TABLES.values(), ANY_COMPONENT, DEVICE)


def documentation() -> tuple[tuple[str, str, str, str, str], ...]:
    """Rows for documentation: file, table, key, type (with ``, required``), meaning."""
    return tuple(
        (section.file, f"[{section.title}]", key.name, key.kind.label + (", required" if key.required else ""), key.doc)
        for section in SECTIONS
        for key in section.keys
    )
