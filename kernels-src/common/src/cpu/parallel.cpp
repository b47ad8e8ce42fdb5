#include "kb/parallel.h"

#include <stdexcept>

// From torch's C shim, 2.10 and later. Weak: the same object also serves older torch, where it is null.
extern "C" __attribute__((weak)) int torch_parallel_for(std::int64_t begin, std::int64_t end, std::int64_t grain,
                                                        void (*body)(std::int64_t, std::int64_t, void*), void* context);

namespace kb {

void parallel_for(std::int64_t count, std::int64_t grain, void (*body)(std::int64_t, std::int64_t, void*),
                  void* context) {
  if (torch_parallel_for == nullptr || count <= grain) {
    body(0, count, context);
  } else if (torch_parallel_for(0, count, grain, body, context) != 0) {
    throw std::runtime_error("torch could not run the work on its threads");
  }
}

}  // namespace kb
