// Element types on the device, and their conversion from and to float, rounding to nearest even.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

namespace kb {

using f16 = __half;
using bf16 = __nv_bfloat16;
using f32 = float;

__device__ __forceinline__ float widen(f16 value) { return __half2float(value); }
__device__ __forceinline__ float widen(bf16 value) { return __bfloat162float(value); }
__device__ __forceinline__ float widen(f32 value) { return value; }

template <class T>
__device__ __forceinline__ T narrow(float value);

template <>
__device__ __forceinline__ f16 narrow<f16>(float value) {
  return __float2half_rn(value);
}
template <>
__device__ __forceinline__ bf16 narrow<bf16>(float value) {
  return __float2bfloat16_rn(value);
}
template <>
__device__ __forceinline__ f32 narrow<f32>(float value) {
  return value;
}

/// Two neighbouring elements; their conversion is one instruction where a scalar one would cost three.
template <class T>
struct Pair;

template <>
struct Pair<f16> {
  using Type = __half2;
  static __device__ __forceinline__ __half2 narrow(float a, float b) { return __floats2half2_rn(a, b); }
  static __device__ __forceinline__ float2 widen(__half2 pair) { return __half22float2(pair); }
};

template <>
struct Pair<bf16> {
  using Type = __nv_bfloat162;
  static __device__ __forceinline__ __nv_bfloat162 narrow(float a, float b) { return __floats2bfloat162_rn(a, b); }
  static __device__ __forceinline__ float2 widen(__nv_bfloat162 pair) { return __bfloat1622float2(pair); }
};

template <>
struct Pair<f32> {
  using Type = float2;
  static __device__ __forceinline__ float2 narrow(float a, float b) { return make_float2(a, b); }
  static __device__ __forceinline__ float2 widen(float2 pair) { return pair; }
};

}  // namespace kb
