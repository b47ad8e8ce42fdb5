// RMSNorm forward on the CPU: rows in parallel, eight elements at a time, AVX2 where the processor has it.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include "kb/cpu/lanes.h"
#include "kb/parallel.h"
#include "rms_norm.h"

namespace {

using namespace kb::cpu;

constexpr std::int64_t kBlock = 4096;            // elements summed in fp32 before the sum goes to fp64
constexpr std::int64_t kElementsPerTask = 1 << 15;  // work below this is not worth a thread

template <class X>
KB_INLINE double sum_of_squares(const X* x, std::int64_t hidden) {
  double total = 0.0;
  for (std::int64_t begin = 0; begin < hidden; begin += kBlock) {
    const std::int64_t end = std::min(begin + kBlock, hidden);
    Floats even{};
    Floats odd{};
    std::int64_t i = begin;
    for (; i + 2 * kLanes <= end; i += 2 * kLanes) {
      const Floats a = load(x + i);
      const Floats b = load(x + i + kLanes);
      even += a * a;
      odd += b * b;
    }
    for (; i < end; i += kLanes) {
      const Floats a = load_part(x + i, std::min<std::int64_t>(kLanes, end - i));
      even += a * a;
    }
    total += sum(even + odd);
  }
  return total;
}

/// x̂ · (w + offset) with the roundings of the casting order; `weight` may be null.
template <class X, class W>
KB_INLINE Floats normalise(const Floats& x, const Floats* weight, float rstd, const RmsNormArgs& args) {
  Floats value = x * rstd;
  if (args.casting != Casting::gemma) value = round_to<X>(value);
  if (weight == nullptr) return value;
  Floats scale = *weight;
  if (args.offset != 0.0f) {
    scale += args.offset;
    if (args.casting != Casting::gemma) scale = round_to<W>(scale);
  }
  return value * scale;
}

template <class X, class W>
KB_INLINE void norm_row(const RmsNormArgs& args, const X* x, X* y) {
  const W* weight = static_cast<const W*>(args.weight);
  const float mean = static_cast<float>(sum_of_squares(x, args.hidden) / static_cast<double>(args.hidden));
  float rstd = 1.0f / std::sqrt(mean + args.eps);
  if (args.casting == Casting::none) rstd = round_to<X>(all(rstd))[0];

  Floats scale{};
  const Floats* scale_or_null = weight == nullptr ? nullptr : &scale;
  std::int64_t i = 0;
  for (; i + kLanes <= args.hidden; i += kLanes) {
    if (weight != nullptr) scale = load(weight + i);
    store(y + i, normalise<X, W>(load(x + i), scale_or_null, rstd, args));
  }
  if (const std::int64_t rest = args.hidden - i; rest > 0) {
    if (weight != nullptr) scale = load_part(weight + i, rest);
    store_part(y + i, normalise<X, W>(load_part(x + i, rest), scale_or_null, rstd, args), rest);
  }
}

template <class X, class W>
KB_INLINE void norm_rows(const RmsNormArgs& args, std::int64_t begin, std::int64_t end) {
  for (std::int64_t row = begin; row < end; ++row) {
    const X* x = static_cast<const X*>(args.x) + args.rows.offset(row);
    norm_row<X, W>(args, x, static_cast<X*>(args.y) + row * args.hidden);
  }
}

using Rows = void (*)(const RmsNormArgs&, std::int64_t begin, std::int64_t end);

template <class X, class W>
void portable(const RmsNormArgs& args, std::int64_t begin, std::int64_t end) {
  norm_rows<X, W>(args, begin, end);
}

#ifdef KB_AVX2
template <class X, class W>
KB_AVX2 void avx2(const RmsNormArgs& args, std::int64_t begin, std::int64_t end) {
  norm_rows<X, W>(args, begin, end);
}
#else
#define avx2 portable
#endif

// [x type][weight type], in the order of kb::DType
#define RMS_NORM_ROWS(ISA)                                         \
  {                                                                \
    {ISA<f16, f16>, ISA<f16, bf16>, ISA<f16, f32>},                \
        {ISA<bf16, f16>, ISA<bf16, bf16>, ISA<bf16, f32>},         \
        {ISA<f32, f16>, ISA<f32, bf16>, ISA<f32, f32>},            \
  }
constexpr Rows kPortable[3][3] = RMS_NORM_ROWS(portable);
constexpr Rows kAvx2[3][3] = RMS_NORM_ROWS(avx2);

struct Task {
  const RmsNormArgs* args;
  Rows rows;
};

void run(std::int64_t begin, std::int64_t end, void* context) {
  const Task& task = *static_cast<const Task*>(context);
  task.rows(*task.args, begin, end);
}

}  // namespace

void rms_norm_forward(const RmsNormArgs& args, const kb::Stream&) {
  const int x = static_cast<int>(args.x_type);
  const int weight = static_cast<int>(args.weight_type);
  Task task{&args, has_avx2() ? kAvx2[x][weight] : kPortable[x][weight]};
  kb::parallel_for(args.rows.count, std::max<std::int64_t>(1, kElementsPerTask / args.hidden), run, &task);
}
