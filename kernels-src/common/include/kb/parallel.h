// Splits CPU work over torch's threads. Implemented in src/cpu/parallel.cpp.
#pragma once

#include <cstdint>

namespace kb {

/// Calls `body(begin, end, context)` on parts of [0, count) of at least `grain` items, on torch's own thread pool,
/// so that torch.set_num_threads holds. `body` must not throw. A torch without that C function (before 2.10) runs
/// everything on the calling thread.
void parallel_for(std::int64_t count, std::int64_t grain, void (*body)(std::int64_t, std::int64_t, void*),
                  void* context);

}  // namespace kb
