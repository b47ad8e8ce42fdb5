"""What this version cannot build, said before anything is built."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from kernel_builder.errors import SpecError
from kernel_builder.spec.schema import BUILD

if TYPE_CHECKING:
    from kernel_builder.plan.model import VariantPlan
    from kernel_builder.spec.model import Kernel

_FLAGS_HINT = "give [device.<name>] in kernel-builder.toml its own capabilities and defines"
_BINDING_HINT = "name .cu files in the src of a [kernel.<key>]"


def refuse_framework(kernel: Kernel) -> None:
    """Refuse a kernel whose framework is not torch.

    Raises:
        SpecError: It is torch-noarch or tvm-ffi.
    """
    if kernel.framework != "torch":
        _refuse(kernel, kernel.framework, f"[{kernel.framework}] kernels are valid, but not built by this version.")


def refuse_sources(variant: VariantPlan) -> None:
    """Refuse a variant that needs what this version does not have.

    Raises:
        SpecError: The binding needs nvcc, or a component needs a library other than torch, or has settings for sources
            that it does not have.
    """
    kernel = variant.kernel
    for index, path in enumerate(kernel.torch.sources):
        if path.endswith(".cu"):
            _refuse(kernel, f"torch.src[{index}]", f"{path} is CUDA code, and a binding is C++.", _BINDING_HINT)
    for component in variant.components:
        place = f"kernel.{component.key}"
        has_cuda = any(source.endswith(".cu") for source in component.sources)
        if has_cuda and component.backend != "cuda":
            _refuse(kernel, f"{place}.src", f"A component for {component.backend} cannot have .cu sources.")
        for key, value in (("cuda-flags", component.cuda_flags), ("cuda-capabilities", component.cuda_capabilities)):
            if value and not has_cuda:
                _refuse(kernel, f"{place}.{key}", f"{key} is for .cu sources, and there is none here.", _FLAGS_HINT)
        for library in component.depends:
            if library != "torch":
                _refuse(kernel, f"{place}.depends", f"{library} is valid, but not provided by this version.")


def _refuse(kernel: Kernel, path: str, message: str, hint: str = "") -> NoReturn:
    raise SpecError(message, where=f"{kernel.root / BUILD}: {path}", hint=hint)
