// Eight floats at a time, written with the compiler's vector extension: the same source is SSE2, AVX2 or NEON, by the
// target of the function it is inlined into. Conversions from and to float16 and bfloat16 round to nearest even.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic ignored "-Wpsabi"  // vectors in calls: everything here is inlined
#endif

#define KB_INLINE inline __attribute__((always_inline))

/// Marks a function that is compiled for AVX2 with all it inlines. Call it only when `kb::cpu::has_avx2()`.
#if defined(__x86_64__)
#define KB_AVX2 __attribute__((target("avx2,fma")))
#endif

namespace kb::cpu {

constexpr int kLanes = 8;
typedef float Floats __attribute__((vector_size(4 * kLanes)));
typedef std::uint32_t Words __attribute__((vector_size(4 * kLanes)));
typedef std::uint16_t Halves __attribute__((vector_size(2 * kLanes)));

struct f16 {
  std::uint16_t bits;
};
struct bf16 {
  std::uint16_t bits;
};
using f32 = float;

inline bool has_avx2() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
#else
  return false;
#endif
}

KB_INLINE Floats as_floats(const Words& words) { return reinterpret_cast<Floats>(words); }
KB_INLINE Words as_words(const Floats& floats) { return reinterpret_cast<Words>(floats); }
KB_INLINE Floats all(float value) { return Floats{} + value; }

KB_INLINE float sum(const Floats& floats) {
  float total = 0.0f;
  for (int i = 0; i < kLanes; ++i) total += floats[i];
  return total;
}

KB_INLINE Floats widen(Halves halves, bf16) { return as_floats(__builtin_convertvector(halves, Words) << 16); }

KB_INLINE Floats widen(Halves halves, f16) {
  const Words words = __builtin_convertvector(halves, Words);
  const Words magnitude = (words & 0x7fff) << 13;             // exponent still biased by 15
  const Floats scaled = as_floats(magnitude) * 0x1p112f;      // rebias; exact, subnormals too
  const Words special = as_words(scaled) | 0x7f800000;        // exponent 31: infinity or NaN
  const Words finite = as_words(scaled);
  return as_floats((magnitude >= Words{} + 0x0f800000 ? special : finite) | (words & 0x8000) << 16);
}

KB_INLINE Halves narrow(const Floats& floats, bf16) {
  const Words words = as_words(floats);
  const Words rounded = (words + 0x7fff + (words >> 16 & 1)) >> 16;
  const Words quiet = words >> 16 | 0x40;
  const Words result = (words & 0x7fffffff) > Words{} + 0x7f800000 ? quiet : rounded;
  return __builtin_convertvector(result, Halves);
}

KB_INLINE Halves narrow(const Floats& floats, f16) {
  const Words words = as_words(floats);
  const Words magnitude = words & 0x7fffffff;
  const Words normal = (magnitude - 0x38000000 + 0xfff + (magnitude >> 13 & 1)) >> 13;
  const Words subnormal = as_words(as_floats(magnitude) + 0.5f) - 0x3f000000;  // 0.5's last place is 2^-24
  const Words special = magnitude > Words{} + 0x7f800000 ? Words{} + 0x7e00 : Words{} + 0x7c00;
  Words result = magnitude < Words{} + 0x38800000 ? subnormal : normal;
  result = magnitude >= Words{} + 0x47800000 ? special : result;
  return __builtin_convertvector(result | (words >> 16 & 0x8000), Halves);
}

template <class T>
KB_INLINE Floats load(const T* from) {
  Halves halves;
  std::memcpy(&halves, from, sizeof halves);
  return widen(halves, T{});
}
template <>
KB_INLINE Floats load<f32>(const f32* from) {
  Floats floats;
  std::memcpy(&floats, from, sizeof floats);
  return floats;
}

template <class T>
KB_INLINE void store(T* to, const Floats& floats) {
  const Halves halves = narrow(floats, T{});
  std::memcpy(to, &halves, sizeof halves);
}
template <>
KB_INLINE void store<f32>(f32* to, const Floats& floats) {
  std::memcpy(to, &floats, sizeof floats);
}

/// The first `count` of eight elements; the others are zero and their memory is not touched.
template <class T>
KB_INLINE Floats load_part(const T* from, std::int64_t count) {
  T part[kLanes] = {};
  std::memcpy(part, from, count * sizeof(T));
  return load(part);
}

template <class T>
KB_INLINE void store_part(T* to, const Floats& floats, std::int64_t count) {
  T part[kLanes];
  store(part, floats);
  std::memcpy(to, part, count * sizeof(T));
}

/// Rounds to T and back, as writing a tensor of T and reading it again would.
template <class T>
KB_INLINE Floats round_to(const Floats& floats) {
  return widen(narrow(floats, T{}), T{});
}
template <>
KB_INLINE Floats round_to<f32>(const Floats& floats) {
  return floats;
}

}  // namespace kb::cpu
