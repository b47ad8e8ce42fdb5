#include "kb/stream.h"

#include <cstdint>
#include <stdexcept>

// From torch's C shim (libtorch_cuda), the same since 2.7. Zero means success; torch logs the reason of a failure.
extern "C" {
int aoti_torch_create_cuda_guard(std::int32_t device, void** guard);
int aoti_torch_delete_cuda_guard(void* guard);
int aoti_torch_get_current_cuda_stream(std::int32_t device, void** stream);
}

namespace kb {

Stream current_stream(int device) {
  Stream stream{nullptr, device};
  if (aoti_torch_get_current_cuda_stream(device, &stream.handle) != 0) {
    throw std::runtime_error("torch could not give the current CUDA stream");
  }
  return stream;
}

DeviceGuard::DeviceGuard(int device) {
  if (aoti_torch_create_cuda_guard(device, &handle_) != 0) {
    throw std::runtime_error("torch could not make the CUDA device current");
  }
}

DeviceGuard::~DeviceGuard() { aoti_torch_delete_cuda_guard(handle_); }

}  // namespace kb
