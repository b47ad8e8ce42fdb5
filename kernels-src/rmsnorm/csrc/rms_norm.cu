// RMSNorm forward. A row belongs to blockDim.x threads: a part of a warp with several rows per block (blockDim.y), or
// a whole block. Resident kernels read x once into registers; long ones read it twice, the second time from L2.
#include "kb/device/reduce.cuh"
#include "kb/device/vector.cuh"
#include "rms_norm_args.h"
#include "rms_norm_table.h"

/// x̂ · (w + offset) of N elements with the roundings of the casting order. Its branches are the same for all threads.
template <class X, class W, int N>
__device__ __forceinline__ kb::Vector<X, N> normalise(const kb::Vector<X, N>& x, const kb::Vector<W, N>& weight,
                                                      float rstd, const RmsNormArgs& args) {
  float value[N];
  x.widen(value);
#pragma unroll
  for (int i = 0; i < N; ++i) value[i] *= rstd;
  if (args.casting != Casting::gemma) kb::round_to<X>(value);
  if (args.weight != nullptr) {
    float scale[N];
    weight.widen(scale);
    if (args.offset != 0.0f) {
#pragma unroll
      for (int i = 0; i < N; ++i) scale[i] += args.offset;
      if (args.casting != Casting::gemma) kb::round_to<W>(scale);
    }
#pragma unroll
    for (int i = 0; i < N; ++i) value[i] *= scale[i];
  }
  return kb::Vector<X, N>::narrow(value);
}

template <class X, int N>
__device__ __forceinline__ float sum_of_squares(const kb::Vector<X, N>& x, float sum) {
  float value[N];
  x.widen(value);
#pragma unroll
  for (int i = 0; i < N; ++i) sum = fmaf(value[i], value[i], sum);
  return sum;
}

template <class X>
__device__ __forceinline__ float reciprocal_rms(float sum, const RmsNormArgs& args) {
  // Rounded to nearest: rsqrtf may be two units off, which float32 outputs would show.
  const float rstd = __frsqrt_rn(sum / float(args.hidden) + args.eps);
  return args.casting == Casting::none ? kb::widen(kb::narrow<X>(rstd)) : rstd;
}

/// Rows whose x fits kAccesses accesses of N elements per thread. Weights are read once per thread, not once per row.
template <class X, class W, int N, int kAccesses>
__device__ __forceinline__ void norm_resident(const RmsNormArgs& args) {
  using XVector = kb::Vector<X, N>;
  using WVector = kb::Vector<W, N>;
  __shared__ float partial[32];
  const int accesses = int(args.hidden / N);

  WVector weight[kAccesses];                                        // [hidden], strided over the row's threads
#pragma unroll
  for (int k = 0; k < kAccesses; ++k) {
    const int i = threadIdx.x + k * blockDim.x;
    if (args.weight != nullptr && i < accesses) weight[k] = WVector::load(static_cast<const W*>(args.weight) + i * N);
  }

  const long long step = static_cast<long long>(gridDim.x) * blockDim.y;
  for (long long first = static_cast<long long>(blockIdx.x) * blockDim.y; first < args.rows.count; first += step) {
    const long long row = first + threadIdx.y;
    const bool live = row < args.rows.count;                        // dead rows still take part in the shuffles
    const X* x_row = static_cast<const X*>(args.x) + (live ? args.rows.offset(row) : 0);
    X* y_row = static_cast<X*>(args.y) + row * args.hidden;

    XVector x[kAccesses];                                           // [hidden], strided over the row's threads
#pragma unroll
    for (int k = 0; k < kAccesses; ++k) {
      const int i = threadIdx.x + k * blockDim.x;
      x[k] = live && i < accesses ? XVector::load_streaming(x_row + i * N) : XVector::zero();
    }

    float sum = 0.0f;
#pragma unroll
    for (int k = 0; k < kAccesses; ++k) sum = sum_of_squares(x[k], sum);
    const float rstd = reciprocal_rms<X>(kb::row_sum(sum, partial), args);

#pragma unroll
    for (int k = 0; k < kAccesses; ++k) {
      const int i = threadIdx.x + k * blockDim.x;
      if (live && i < accesses) normalise(x[k], weight[k], rstd, args).store_streaming(y_row + i * N);
    }
  }
}

/// Rows of any length, a block each.
template <class X, class W, int N>
__device__ __forceinline__ void norm_long(const RmsNormArgs& args) {
  using XVector = kb::Vector<X, N>;
  using WVector = kb::Vector<W, N>;
  __shared__ float partial[32];
  const int accesses = int(args.hidden / N);

  for (long long row = blockIdx.x; row < args.rows.count; row += gridDim.x) {
    const X* x_row = static_cast<const X*>(args.x) + args.rows.offset(row);
    X* y_row = static_cast<X*>(args.y) + row * args.hidden;

    float sum = 0.0f;
#pragma unroll 4
    for (int i = threadIdx.x; i < accesses; i += blockDim.x) {
      sum = sum_of_squares(XVector::load(x_row + static_cast<long long>(i) * N), sum);
    }
    const float rstd = reciprocal_rms<X>(kb::block_sum(sum, partial), args);

#pragma unroll 4
    for (int i = threadIdx.x; i < accesses; i += blockDim.x) {
      const long long at = static_cast<long long>(i) * N;
      const XVector x = XVector::load_streaming(x_row + at);
      WVector weight;
      if (args.weight != nullptr) weight = WVector::load(static_cast<const W*>(args.weight) + at);
      normalise(x, weight, rstd, args).store_streaming(y_row + at);
    }
  }
}

/// Elements of a 16-byte access of x.
template <class X>
constexpr int kWide = 16 / int(sizeof(X));

template <class X, class W, int kShape>
__device__ __forceinline__ void norm(const RmsNormArgs& args) {
  if constexpr (kShape == wide) norm_resident<X, W, kWide<X>, kResidentVectors>(args);
  if constexpr (kShape == wide_long) norm_long<X, W, kWide<X>>(args);
  if constexpr (kShape == narrow) norm_resident<X, W, 1, kResidentScalars>(args);
  if constexpr (kShape == narrow_long) norm_long<X, W, 1>(args);
}

#define RMS_NORM_DEFINE(X, W, SHAPE, THREADS)                                                                  \
  extern "C" __global__ void __launch_bounds__(THREADS) rms_norm_##X##_##W##_##SHAPE(const RmsNormArgs args) { \
    norm<kb::X, kb::W, SHAPE>(args);                                                                           \
  }
RMS_NORM_KERNELS(RMS_NORM_DEFINE)
