// The device and stream that an op works on. Implemented once per backend, in src/<backend>/stream.cpp.
#pragma once

namespace kb {

/// A queue of device work: a CUstream of one CUDA device, or nothing on the CPU.
struct Stream {
  void* handle = nullptr;
  int device = -1;
};

/// The stream that torch has current on this device. Throws std::runtime_error.
Stream current_stream(int device);

/// Makes a device current for the life of the guard.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device);
  ~DeviceGuard();
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  void* handle_ = nullptr;
};

}  // namespace kb
