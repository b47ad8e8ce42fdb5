// The operator: what torch's tensors hold, on torch's stream. No device code of its own.
#include "rms_norm_op.h"

#include <torch/csrc/inductor/aoti_torch/c/shim.h>
#include <torch/csrc/stable/accelerator.h>
#include <torch/headeronly/core/ScalarType.h>
#include <torch/headeronly/util/Exception.h>

#include "rms_norm.h"

using torch::headeronly::ScalarType;
using torch::stable::Tensor;

void rms_norm_op(Tensor& y, const Tensor& x, const Tensor& weight, double eps) {
  STD_TORCH_CHECK(x.dim() >= 1 && x.is_contiguous() && y.is_contiguous() && weight.is_contiguous(),
                  "contiguous tensors are needed");
  STD_TORCH_CHECK(x.scalar_type() == weight.scalar_type() && x.scalar_type() == y.scalar_type(),
                  "tensors of one type are needed");
  STD_TORCH_CHECK(weight.numel() == x.size(-1) && y.numel() == x.numel(), "the sizes do not match");
  RmsNorm call{x.data_ptr(), weight.data_ptr(), y.data_ptr(), 0, x.size(-1), static_cast<float>(eps), Element::f32};
  call.rows = call.hidden == 0 ? 0 : x.numel() / call.hidden;
  switch (x.scalar_type()) {
    case ScalarType::Float: break;
    case ScalarType::Half: call.type = Element::f16; break;
    case ScalarType::BFloat16: call.type = Element::bf16; break;
    default: STD_TORCH_CHECK(false, "float32, float16 or bfloat16 is needed");
  }
  const torch::stable::accelerator::DeviceGuard guard(x.get_device_index());
  void* stream = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_current_cuda_stream(x.get_device_index(), &stream));
  const char* fault = rms_norm(call, stream);
  STD_TORCH_CHECK(fault == nullptr, "rms_norm: ", fault);
}
