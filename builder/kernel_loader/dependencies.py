"""Python packages that a kernel needs, checked before anything of it is imported."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
from typing import TYPE_CHECKING

from kernel_loader.errors import DependencyMissing

if TYPE_CHECKING:
    from packaging.requirements import Requirement

    from kernel_loader.format.metadata import Metadata

# Names that kernels may depend on under another name than that of the distribution or module.
_DISTRIBUTIONS = {"tvm-ffi": "apache-tvm-ffi", "onednn": "onednn-devel"}
_MODULES = {"nvidia-cutlass-dsl": "cutlass", "tvm-ffi": "tvm_ffi"}


def check_dependencies(metadata: Metadata, *, where: str) -> None:
    """Make sure that every Python package of ``python-depends`` is installed and new enough.

    Raises:
        DependencyMissing: Some are not; the hint is the pip line.
    """
    if not metadata.python_depends:
        return
    requirements = [_requirement(text, where) for text in metadata.python_depends]
    problems = [(requirement, problem) for requirement in requirements if (problem := _problem(requirement))]
    if problems:
        wanted = " ".join(f"'{_distribution(requirement)}{requirement.specifier}'" for requirement, _ in problems)
        raise DependencyMissing(
            f"The kernel needs {problems[0][1]}.",
            where=where,
            detail="\n".join(f"  and {problem}" for _, problem in problems[1:]),
            hint=f"pip install {wanted}",
        )


def _requirement(text: str, where: str) -> Requirement:
    from packaging.requirements import InvalidRequirement, Requirement

    try:
        requirement = Requirement(text)
    except InvalidRequirement as e:
        raise DependencyMissing(f"python-depends has an entry {text!r} that names no package.", where=where) from e
    if requirement.url:
        message = f"python-depends names {requirement.name} by an address, which is never followed."
        raise DependencyMissing(message, where=where)
    return requirement


def _distribution(requirement: Requirement) -> str:
    return _DISTRIBUTIONS.get(requirement.name, requirement.name)


def _problem(requirement: Requirement) -> str:
    if requirement.marker and not requirement.marker.evaluate():
        return ""
    name, version = _distribution(requirement), _version(_distribution(requirement))
    if version is None and not _importable(requirement.name):
        return f"the Python package {name}{requirement.specifier}, which is not installed"
    if version is not None and not requirement.specifier.contains(version, prereleases=True):
        return f"the Python package {name}{requirement.specifier}, and version {version} is installed"
    return ""


def _version(distribution: str) -> str | None:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _importable(name: str) -> bool:
    module = _MODULES.get(name, re.sub(r"[-.]", "_", name))
    return importlib.util.find_spec(module) is not None
