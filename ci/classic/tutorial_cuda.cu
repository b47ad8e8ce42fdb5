// As torch's tutorial on extensions has it: the CUDA source sees all of torch.
#include <ATen/cuda/CUDAContext.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/extension.h>

#include "rms_norm_launch.cuh"

static kb::DType type_of(const at::Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case at::kHalf: return kb::DType::f16;
    case at::kBFloat16: return kb::DType::bf16;
    default: TORCH_CHECK(tensor.scalar_type() == at::kFloat, "float16, bfloat16 or float32 is needed");
  }
  return kb::DType::f32;
}

at::Tensor rms_norm_forward(const at::Tensor& input, const at::Tensor& weight, double eps) {
  TORCH_CHECK(input.is_cuda() && weight.is_cuda(), "tensors on a GPU are needed");
  const at::cuda::CUDAGuard guard(input.device());
  const at::Tensor x = input.contiguous();
  const at::Tensor scale = weight.contiguous();
  at::Tensor y = at::empty_like(x);
  RmsNormArgs args{};
  args.x = x.data_ptr();
  args.weight = scale.data_ptr();
  args.y = y.data_ptr();
  args.hidden = x.size(-1);
  args.rows.count = x.numel() / args.hidden;
  args.rows.inner = args.rows.count;
  args.rows.inner_stride = args.hidden;
  args.eps = static_cast<float>(eps);
  args.x_type = type_of(x);
  args.weight_type = type_of(scale);
  launch_rms_norm(args, at::cuda::getCurrentCUDAStream());
  C10_CUDA_KERNEL_LAUNCH_CHECK();
  return y;
}
