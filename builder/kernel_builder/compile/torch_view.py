"""What a source that sees torch is compiled with: headers, ABI, language standard."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from kernel_loader.format.versions import MajorMinor

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.toolchain.model import Toolchain

_CXX20_SINCE = MajorMinor(2, 14)


@dataclass(frozen=True, kw_only=True, slots=True)
class TorchView:
    """One torch SDK with one ABI.

    Attributes:
        label: ``torch 2.13 stable 2.9 ABI``.
        standard: C++ standard, ``17`` or ``20``.
        macros: Definitions that choose the ABI.
        include: Include arguments; system folders, because their warnings are not the author's.
        prefix_map: What ``__FILE__`` gives for headers instead of this machine's folder.
    """

    label: str
    standard: int
    macros: tuple[str, ...]
    include: tuple[str, ...]
    places: Mapping[str, str]
    tools: Mapping[str, str]
    prefix_map: str = "-ffile-prefix-map=@sdk@/=torch/"


def torch_view(variant: VariantPlan, toolchain: Toolchain) -> TorchView:
    """The torch that a variant is compiled against."""
    sdk, target = toolchain.sdks[variant.sdk], target_of(variant)
    folders = [f"@sdk@/{path.relative_to(sdk.root).as_posix()}" for path in sdk.include]
    if target is not None:
        macros: tuple[str, ...] = ("-DKB_STABLE_ABI=1", f"-DTORCH_TARGET_VERSION={spell_target(target)}")
    else:
        macros = ("-DKB_STABLE_ABI=0",)
    return TorchView(
        label=f"torch {sdk.version} {'full' if target is None else f'stable {target}'} ABI",
        standard=20 if target is None and sdk.version >= _CXX20_SINCE else 17,
        macros=macros,
        include=tuple(word for folder in folders for word in ("-isystem", folder)),
        places={"sdk": str(sdk.root)},
        tools={f"torch SDK {sdk.version}": sdk.digest},
    )


def target_of(variant: VariantPlan) -> MajorMinor | None:
    """Torch whose stable ABI is compiled against, None for the full ABI; the variant's name may carry an older one."""
    return (variant.target or variant.variant.framework.version) if variant.stable else None


def spell_target(version: MajorMinor) -> str:
    """Torch version as its stable ABI spells it: 2.10 → ``0x020a000000000000``."""
    return f"0x{version.major:02x}{version.minor:02x}000000000000"
