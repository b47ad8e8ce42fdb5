"""README.md of a kernel, rendered from its CARD.md."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any

from kernel_builder.rendering import render_file
from kernel_builder.spec.sources import python_folder

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from kernel_builder.package.model import PackagedVariant
    from kernel_builder.spec.model import Kernel


def render_card(kernel: Kernel, variants: Sequence[PackagedVariant]) -> str | None:
    """Text of README.md, None when the kernel has no CARD.md.

    Raises:
        SpecError: CARD.md has a fault or uses an unknown variable.
    """
    card = kernel.root / "CARD.md"
    if not card.is_file():
        return None
    module = python_folder(kernel)
    names = _public_names(module / "__init__.py")
    return render_file(
        card,
        repo_id=kernel.hub.repo_id or kernel.name,
        version=kernel.version,
        license=kernel.license.lower(),
        upstream=kernel.upstream,
        source=kernel.source,
        functions=[name for name in names if name != "layers"],
        layers=_layer_names(module) if "layers" in names else [],
        has_benchmark=any((kernel.root / "benchmarks").glob("benchmark*.py")),
        variants=[_variant_row(variant) for variant in variants],
    )


def _variant_row(variant: PackagedVariant) -> dict[str, Any]:
    metadata = variant.metadata
    archs = [*map(str, metadata.archs)]
    return {"name": variant.name, "backend": metadata.backend, "archs": archs, "digest": variant.digest}


def _parse(path: Path) -> ast.Module:
    return ast.parse(path.read_bytes()) if path.is_file() else ast.Module(body=[], type_ignores=[])


def _public_names(path: Path) -> list[str]:
    """The strings of a literal ``__all__``."""
    for node in _parse(path).body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        value = getattr(node, "value", None)
        if any(isinstance(t, ast.Name) and t.id == "__all__" for t in targets) and isinstance(
            value, ast.List | ast.Tuple
        ):
            return [e.value for e in value.elts if isinstance(e, ast.Constant) and isinstance(e.value, str)]
    return []


def _layer_names(module: Path) -> list[str]:
    paths = (module / "layers.py", module / "layers" / "__init__.py")
    classes = [node.name for path in paths for node in _parse(path).body if isinstance(node, ast.ClassDef)]
    return [name for name in classes if not name.startswith("_")]
