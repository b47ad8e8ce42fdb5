// Chooses and launches the kernel of one rms_norm call.
#include <algorithm>
#include <cstdint>

#include "kb/driver.h"
#include "rms_norm.h"
#include "rms_norm_table.h"

namespace {

#define RMS_NORM_FIND(X, W, SHAPE, THREADS) kb::DeviceKernel{"rms_norm", "rms_norm_" #X "_" #W "_" #SHAPE},
kb::DeviceKernel kernels[] = {RMS_NORM_KERNELS(RMS_NORM_FIND)};
static_assert(sizeof(kernels) / sizeof(kernels[0]) == 3 * 3 * kRmsNormShapes);

constexpr long long kMostBlocks = 2147483647;  // of gridDim.x; more rows are a loop in the kernel
constexpr int kBlockOfSmallRows = 128;         // threads of a block that holds several rows

bool aligned(const void* pointer, long long bytes) { return reinterpret_cast<std::uintptr_t>(pointer) % bytes == 0; }

/// 16-byte accesses need every row of x and y, and the weight, to start at a multiple of the access.
bool fits_wide(const RmsNormArgs& args) {
  const long long n = 16 / kb::size_of(args.x_type);
  const long long weight_access = std::min<long long>(16, n * kb::size_of(args.weight_type));
  return args.hidden % n == 0 && args.rows.inner_stride % n == 0 && args.rows.outer_stride % n == 0 &&
         aligned(args.x, 16) && aligned(args.y, 16) && aligned(args.weight, weight_access);
}

int power_of_two_above(long long value) {
  int power = 1;
  while (power < value) power *= 2;
  return power;
}

/// Threads per row × rows per block for rows that stay in registers.
kb::Extent resident_block(long long accesses, int accesses_per_thread) {
  const long long threads = (accesses + accesses_per_thread - 1) / accesses_per_thread;
  if (threads > 32) return {static_cast<unsigned>((threads + 31) / 32 * 32), 1, 1};
  const int lanes = power_of_two_above(threads);
  return {static_cast<unsigned>(lanes), static_cast<unsigned>(kBlockOfSmallRows / lanes), 1};
}

}  // namespace

void rms_norm_forward(const RmsNormArgs& args, const kb::Stream& stream) {
  const bool is_wide = fits_wide(args);
  const long long accesses = is_wide ? args.hidden * kb::size_of(args.x_type) / 16 : args.hidden;
  const int per_thread = is_wide ? kResidentVectors : kResidentScalars;
  const bool is_resident = accesses <= static_cast<long long>(per_thread) * kResidentThreads;

  const int shape = is_wide ? (is_resident ? wide : wide_long) : (is_resident ? narrow : narrow_long);
  kb::Launch launch;
  launch.block = is_resident ? resident_block(accesses, per_thread) : kb::Extent{kLongThreads, 1, 1};
  const long long blocks = (args.rows.count + launch.block.y - 1) / launch.block.y;
  launch.grid.x = static_cast<unsigned>(std::min(blocks, kMostBlocks));

  const int pair = static_cast<int>(args.x_type) * 3 + static_cast<int>(args.weight_type);
  kernels[pair * kRmsNormShapes + shape].launch(launch, stream, args);
}
