#include <torch/csrc/stable/library.h>

#include "registration.h"
#include "rms_norm_op.h"

STABLE_TORCH_LIBRARY_EXPAND(TORCH_EXTENSION_NAME, ops) {
  ops.def("rms_norm(Tensor! y, Tensor x, Tensor weight, float eps) -> ()");
}

STABLE_TORCH_LIBRARY_IMPL_EXPAND(TORCH_EXTENSION_NAME, CUDA, ops) { ops.impl("rms_norm", TORCH_BOX(&rms_norm_op)); }

REGISTER_EXTENSION(TORCH_EXTENSION_NAME)
