// RMSNorm in the classic way: a block per row, started with <<<>>>.
#include "rms_norm.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

namespace {

constexpr int kThreads = 256;

__device__ float sum_of_block(float value) {
  __shared__ float partial[kThreads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  if (threadIdx.x % 32 == 0) partial[threadIdx.x / 32] = value;
  __syncthreads();
  float sum = 0.0f;
  for (int warp = 0; warp < kThreads / 32; ++warp) sum += partial[warp];
  return sum;
}

template <typename T>
__global__ void __launch_bounds__(kThreads)
    norm_row(const T* __restrict__ x, const T* __restrict__ weight, T* __restrict__ y, std::int64_t hidden, float eps) {
  const T* source = x + blockIdx.x * hidden;
  T* target = y + blockIdx.x * hidden;
  float squares = 0.0f;
  for (std::int64_t i = threadIdx.x; i < hidden; i += kThreads) {
    const float value = static_cast<float>(source[i]);
    squares += value * value;
  }
  const float scale = rsqrtf(sum_of_block(squares) / static_cast<float>(hidden) + eps);
  for (std::int64_t i = threadIdx.x; i < hidden; i += kThreads) {
    target[i] = static_cast<T>(static_cast<float>(source[i]) * scale * static_cast<float>(weight[i]));
  }
}

template <typename T>
void launch(const RmsNorm& call, cudaStream_t stream) {
  norm_row<<<static_cast<unsigned>(call.rows), kThreads, 0, stream>>>(
      static_cast<const T*>(call.x), static_cast<const T*>(call.weight), static_cast<T*>(call.y), call.hidden, call.eps);
}

}  // namespace

const char* rms_norm(const RmsNorm& call, void* stream) {
  if (call.rows == 0) return nullptr;
  const auto queue = static_cast<cudaStream_t>(stream);
  switch (call.type) {
    case Element::f32: launch<float>(call, queue); break;
    case Element::f16: launch<__half>(call, queue); break;
    case Element::bf16: launch<__nv_bfloat16>(call, queue); break;
  }
  const cudaError_t status = cudaGetLastError();
  return status == cudaSuccess ? nullptr : cudaGetErrorString(status);
}
