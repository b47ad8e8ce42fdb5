// rms_norm as a CUDA extension launches it: the device code of kernels-src/rmsnorm, and host code in the same file.
#pragma once

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "rms_norm.cu"

using RmsNormKernel = void (*)(RmsNormArgs);

#define RMS_NORM_POINTER(X, W, SHAPE, THREADS) rms_norm_##X##_##W##_##SHAPE,
static const RmsNormKernel kRmsNormKernels[] = {RMS_NORM_KERNELS(RMS_NORM_POINTER)};

inline bool rms_norm_aligned(const void* pointer, long long bytes) {
  return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0;
}

inline void launch_rms_norm(const RmsNormArgs& args, cudaStream_t stream) {
  const long long n = 16 / kb::size_of(args.x_type);
  const long long weight_access = std::min<long long>(16, n * kb::size_of(args.weight_type));
  const bool is_wide = args.hidden % n == 0 && args.rows.inner_stride % n == 0 && args.rows.outer_stride % n == 0 &&
                       rms_norm_aligned(args.x, 16) && rms_norm_aligned(args.y, 16) &&
                       rms_norm_aligned(args.weight, weight_access);
  const long long accesses = is_wide ? args.hidden / n : args.hidden;
  const int per_thread = is_wide ? kResidentVectors : kResidentScalars;
  const bool is_resident = accesses <= static_cast<long long>(per_thread) * kResidentThreads;
  const int shape = is_wide ? (is_resident ? wide : wide_long) : (is_resident ? narrow : narrow_long);

  dim3 block(kLongThreads);
  if (is_resident) {
    const long long threads = (accesses + per_thread - 1) / per_thread;
    unsigned lanes = 1;
    while (lanes < threads && lanes < 32) lanes *= 2;
    block = threads > 32 ? dim3(static_cast<unsigned>((threads + 31) / 32 * 32)) : dim3(lanes, 128 / lanes);
  }
  const long long blocks = (args.rows.count + block.y - 1) / block.y;
  const int pair = static_cast<int>(args.x_type) * 3 + static_cast<int>(args.weight_type);
  const unsigned grid = static_cast<unsigned>(std::min<long long>(blocks, 2147483647));
  kRmsNormKernels[pair * kRmsNormShapes + shape]<<<grid, block, 0, stream>>>(args);
}
