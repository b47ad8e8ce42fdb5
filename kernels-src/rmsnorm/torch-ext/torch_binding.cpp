// rms_norm as a torch op: checks the arguments, describes them without torch, calls the backend.
#include "kb/check.h"
#include "kb/collapse.h"
#include "kb/stream.h"
#include "kb/torch.h"
#include "rms_norm.h"

namespace {

constexpr std::int64_t kMostHidden = std::int64_t{1} << 30;

void check(const kb::Tensor& x, const std::optional<kb::Tensor>& weight, double offset, std::int64_t casting) {
  KB_CHECK(x.dim() >= 1, "x: at least one dimension is needed");
  const std::int64_t hidden = x.size(-1);
  KB_CHECK(hidden >= 1, "x: the last dimension is empty");
  KB_CHECK(hidden <= kMostHidden, "x: the last dimension has ", hidden, " elements, more than 2^30");
  KB_CHECK(kb::dtype_of(x), "x: float16, bfloat16 or float32 is needed");
  KB_CHECK(casting >= 0 && casting <= 2, "casting: ", casting, " is not 0, 1 or 2");
  if (!weight) {
    KB_CHECK(offset == 0, "offset: there is no weight to add it to");
    return;
  }
  KB_CHECK(weight->dim() == 1 && weight->size(0) == hidden, "weight: a vector of ", hidden, " elements is needed");
  KB_CHECK(kb::dtype_of(*weight), "weight: float16, bfloat16 or float32 is needed");
  KB_CHECK(kb::same_device(*weight, x), "weight: it is on another device than x");
}

/// x itself if its rows can be walked in place, else a contiguous copy.
kb::Tensor with_rows(const kb::Tensor& x, kb::Rows& rows) {
  if (kb::collapse_rows(x.sizes().data(), x.strides().data(), x.dim(), rows)) return x;
  kb::Tensor copy = kb::contiguous(x);
  kb::collapse_rows(copy.sizes().data(), copy.strides().data(), copy.dim(), rows);
  return copy;
}

kb::Tensor forward(const kb::Tensor& x, const std::optional<kb::Tensor>& weight, double eps, double offset,
                   std::int64_t casting) {
  check(x, weight, offset, casting);
  const kb::DeviceGuard guard(kb::device_index(x));
  kb::Tensor y = kb::empty_contiguous(x);

  RmsNormArgs args{};
  const kb::Tensor source = with_rows(x, args.rows);
  if (args.rows.count == 0) return y;
  std::optional<kb::Tensor> scale;
  if (weight) scale = kb::contiguous(*weight);

  args.x = source.data_ptr();
  args.weight = scale ? scale->data_ptr() : nullptr;
  args.y = y.data_ptr();
  args.hidden = x.size(-1);
  args.eps = static_cast<float>(eps);
  args.offset = static_cast<float>(offset);
  args.casting = static_cast<Casting>(casting);
  args.x_type = *kb::dtype_of(x);
  args.weight_type = scale ? *kb::dtype_of(*scale) : args.x_type;
  rms_norm_forward(args, kb::current_stream(kb::device_index(x)));
  return y;
}

}  // namespace

KB_LIBRARY(m) {
  m.def("rms_norm_forward(Tensor x, Tensor? weight, float eps, float offset, int casting) -> Tensor");
}

KB_LIBRARY_IMPL(m) { m.impl("rms_norm_forward", KB_OP(forward)); }
