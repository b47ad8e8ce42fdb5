#include "kb/check.h"
#include "kb/stream.h"
#include "kb/torch.h"
#include "step.h"

namespace {

kb::Tensor step_op(const kb::Tensor& x) {
  KB_CHECK(kb::dtype_of(x) == kb::DType::f32, __FILE__, ": float32 is needed");
  const kb::DeviceGuard guard(kb::device_index(x));
  const kb::Tensor from = kb::contiguous(x);
  kb::Tensor to = kb::empty_contiguous(x);
  step(static_cast<const float*>(from.data_ptr()), static_cast<float*>(to.data_ptr()), x.numel(),
       kb::current_stream(kb::device_index(x)));
  return to;
}

}  // namespace

KB_LIBRARY(m) { m.def("step(Tensor x) -> Tensor"); }
KB_LIBRARY_IMPL(m) { m.impl("step", KB_OP(step_op)); }
