// N neighbouring elements of global memory as one value: moved in 16-byte accesses, computed with as floats.
#pragma once

#include "kb/device/dtype.cuh"

namespace kb {

/// The word that one access of a thread moves: at most 16 bytes.
template <int kBytes>
struct Word;
template <>
struct Word<2> {
  using Type = unsigned short;
};
template <>
struct Word<4> {
  using Type = unsigned;
};
template <>
struct Word<8> {
  using Type = uint2;
};
template <>
struct Word<16> {
  using Type = uint4;
};

/// N elements of T in registers. Memory it is loaded from is aligned to `kAlignment` bytes.
template <class T, int N>
struct Vector {
  static constexpr int kBytes = N * int(sizeof(T));             ///< 2 … 32
  static constexpr int kAlignment = kBytes < 16 ? kBytes : 16;  ///< bytes of one access
  using Access = typename Word<kAlignment>::Type;

  alignas(kAlignment) T element[N];

  static __device__ __forceinline__ Vector zero() {
    Vector vector;
#pragma unroll
    for (int i = 0; i < N; ++i) vector.element[i] = kb::narrow<T>(0.0f);
    return vector;
  }

  /// Through the caches: for data that other threads read too.
  static __device__ __forceinline__ Vector load(const T* from) {
    Vector vector;
#pragma unroll
    for (int i = 0; i < kBytes / kAlignment; ++i) vector.access(i) = __ldg(reinterpret_cast<const Access*>(from) + i);
    return vector;
  }

  /// First to be evicted: for data that is read once.
  static __device__ __forceinline__ Vector load_streaming(const T* from) {
    Vector vector;
#pragma unroll
    for (int i = 0; i < kBytes / kAlignment; ++i) vector.access(i) = __ldcs(reinterpret_cast<const Access*>(from) + i);
    return vector;
  }

  __device__ __forceinline__ void store_streaming(T* to) {
#pragma unroll
    for (int i = 0; i < kBytes / kAlignment; ++i) __stcs(reinterpret_cast<Access*>(to) + i, access(i));
  }

  __device__ __forceinline__ void widen(float (&values)[N]) const {
    if constexpr (N == 1) {
      values[0] = kb::widen(element[0]);
    } else {
#pragma unroll
      for (int i = 0; i < N / 2; ++i) {
        const float2 pair = Pair<T>::widen(reinterpret_cast<const typename Pair<T>::Type*>(element)[i]);
        values[2 * i] = pair.x;
        values[2 * i + 1] = pair.y;
      }
    }
  }

  static __device__ __forceinline__ Vector narrow(const float (&values)[N]) {
    Vector vector;
    if constexpr (N == 1) {
      vector.element[0] = kb::narrow<T>(values[0]);
    } else {
#pragma unroll
      for (int i = 0; i < N / 2; ++i) {
        auto* pairs = reinterpret_cast<typename Pair<T>::Type*>(vector.element);
        pairs[i] = Pair<T>::narrow(values[2 * i], values[2 * i + 1]);
      }
    }
    return vector;
  }

 private:
  __device__ __forceinline__ Access& access(int i) { return reinterpret_cast<Access*>(element)[i]; }
};

/// Rounds to T and back, as writing a tensor of T and reading it again would.
template <class T, int N>
__device__ __forceinline__ void round_to(float (&values)[N]) {
  if constexpr (sizeof(T) < sizeof(float)) Vector<T, N>::narrow(values).widen(values);
}

}  // namespace kb
