// Launches embedded device code through the CUDA driver, without the CUDA runtime. Implemented in src/cuda/driver.cpp.
#pragma once

#include <atomic>
#include <cstdint>

#include "kb/stream.h"

extern "C" {
/// Device code linked into this library; the build defines the table, a null name ends it.
struct kb_device_image {
  const char* name;
  const void* data;  ///< a fatbin
  std::uint64_t size;
};
extern const kb_device_image kb_device_images[];
}

namespace kb {

/// The image that kernel-builder.toml calls `[device.<name>]`. Throws std::runtime_error when there is none.
const kb_device_image& device_image(const char* name);

struct Extent {
  unsigned x = 1;
  unsigned y = 1;
  unsigned z = 1;
};

struct Launch {
  Extent grid;
  Extent block;
  unsigned dynamic_shared_bytes = 0;
};

/// One `extern "C" __global__` function of a device image, found at its first launch and kept for the process's life.
/// Constant-initialised, so kernels can stand in static tables. Launching is thread-safe and may be captured into a
/// CUDA graph from the first call on. Errors are std::runtime_error with the driver's text.
class DeviceKernel {
 public:
  constexpr DeviceKernel(const char* image, const char* name, int max_dynamic_shared_bytes = 0)
      : image_(image), name_(name), max_dynamic_shared_bytes_(max_dynamic_shared_bytes) {}

  /// Enqueues the kernel; the parameters are copied before this returns.
  template <class... Parameters>
  void launch(const Launch& launch, const Stream& stream, const Parameters&... parameters) {
    const void* pointers[] = {&parameters...};
    enqueue(launch, stream, const_cast<void**>(pointers));
  }

 private:
  void enqueue(const Launch& launch, const Stream& stream, void** parameters);
  void prepare(int device);

  const char* image_;
  const char* name_;
  int max_dynamic_shared_bytes_;
  std::atomic<void*> handle_{nullptr};
  std::atomic<std::uint64_t> prepared_{0};  ///< bit d: loaded on device d
};

}  // namespace kb
