#include "step.h"

#include "kb/driver.h"

namespace {
kb::DeviceKernel plus{"plus", "trio_plus"};
kb::DeviceKernel times{"times", "trio_times"};
}  // namespace

void step(const float* x, float* y, long long n, const kb::Stream& stream) {
  if (n == 0) return;
  kb::Launch launch;
  launch.grid.x = static_cast<unsigned>((n + 255) / 256);
  launch.block.x = 256;
  plus.launch(launch, stream, x, y, n);
  times.launch(launch, stream, y, n);
}
