#include "kb/driver.h"

#include <dlfcn.h>

#include <cstring>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>

namespace kb {
namespace {

// The part of cuda.h that is used here; CUDA guarantees these signatures and numbers for its driver ABI.
using Result = int;
using Device = int;
using Context = void*;
using Library = void*;
using Kernel = void*;
using Function = void*;
using CUstream = void*;
constexpr int kCaptureModeRelaxed = 2;         // CU_STREAM_CAPTURE_MODE_RELAXED
constexpr int kMaxDynamicSharedSizeBytes = 8;  // CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
constexpr int kSharedBytesWithoutAsking = 48 * 1024;

/// Entry points of libcuda.so.1, which comes with the driver: it is opened at the first launch, not linked.
struct Driver {
  Driver() {
    void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw std::runtime_error(std::string("the CUDA driver cannot be opened: ") + dlerror());
    find(library, "cuGetErrorName", error_name);
    find(library, "cuGetErrorString", error_string);
    find(library, "cuDeviceGet", device_get);
    find(library, "cuDevicePrimaryCtxRetain", primary_context_retain);
    find(library, "cuCtxGetCurrent", context_get_current);
    find(library, "cuCtxSetCurrent", context_set_current);
    find(library, "cuLibraryLoadData", library_load_data);
    find(library, "cuLibraryGetKernel", library_get_kernel);
    find(library, "cuKernelGetFunction", kernel_get_function);
    find(library, "cuKernelSetAttribute", kernel_set_attribute);
    find(library, "cuThreadExchangeStreamCaptureMode", exchange_capture_mode);
    find(library, "cuLaunchKernel", launch_kernel);
  }

  Result (*error_name)(Result, const char**);
  Result (*error_string)(Result, const char**);
  Result (*device_get)(Device*, int ordinal);
  Result (*primary_context_retain)(Context*, Device);
  Result (*context_get_current)(Context*);
  Result (*context_set_current)(Context);
  Result (*library_load_data)(Library*, const void* code, void* jit_options, void** jit_values, unsigned jit_count,
                              void* library_options, void** library_values, unsigned library_count);
  Result (*library_get_kernel)(Kernel*, Library, const char* name);
  Result (*kernel_get_function)(Function*, Kernel);
  Result (*kernel_set_attribute)(int attribute, int value, Kernel, Device);
  Result (*exchange_capture_mode)(int* mode);
  Result (*launch_kernel)(Function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                          unsigned block_y, unsigned block_z, unsigned shared_bytes, CUstream, void** parameters,
                          void** extra);

 private:
  template <class Entry>
  static void find(void* library, const char* name, Entry& entry) {
    entry = reinterpret_cast<Entry>(dlsym(library, name));
    if (entry == nullptr) {
      throw std::runtime_error(std::string("the CUDA driver is older than 12.0: it has no ") + name);
    }
  }
};

const Driver& driver() {
  static const Driver instance;
  return instance;
}

void check(Result result, const char* what) {
  if (result == 0) return;
  const char* name = "unknown CUDA error";
  const char* text = "";
  driver().error_name(result, &name);
  driver().error_string(result, &text);
  throw std::runtime_error(std::string(what) + ": " + text + " (" + name + ")");
}

/// Loading code is forbidden while any stream is captured in global mode; this thread is exempt for its scope.
class RelaxedCapture {
 public:
  RelaxedCapture() { check(driver().exchange_capture_mode(&mode_), "cuThreadExchangeStreamCaptureMode"); }
  ~RelaxedCapture() { driver().exchange_capture_mode(&mode_); }
  RelaxedCapture(const RelaxedCapture&) = delete;
  RelaxedCapture& operator=(const RelaxedCapture&) = delete;

 private:
  int mode_ = kCaptureModeRelaxed;
};

Device device_handle(int ordinal) {
  Device device = 0;
  check(driver().device_get(&device, ordinal), "cuDeviceGet");
  return device;
}

/// A thread that has not used the CUDA runtime yet has no current context, although torch's device guard is satisfied.
void bind_context(int ordinal) {
  Context context = nullptr;
  check(driver().context_get_current(&context), "cuCtxGetCurrent");
  if (context != nullptr) return;
  check(driver().primary_context_retain(&context, device_handle(ordinal)), "cuDevicePrimaryCtxRetain");
  check(driver().context_set_current(context), "cuCtxSetCurrent");
}

/// Libraries are never unloaded: kernels of running graphs may point into them, and the process's end frees them.
Library load_library(const char* image) {
  static std::map<std::string, Library> loaded;
  Library& library = loaded[image];
  if (library == nullptr) {
    const void* code = device_image(image).data;
    check(driver().library_load_data(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0), image);
  }
  return library;
}

}  // namespace

const kb_device_image& device_image(const char* name) {
  for (const kb_device_image* image = kb_device_images; image->name != nullptr; ++image) {
    if (std::strcmp(image->name, name) == 0) return *image;
  }
  throw std::runtime_error(std::string("this library holds no device code named ") + name);
}

void DeviceKernel::prepare(int device) {
  static std::mutex loading;
  const std::lock_guard<std::mutex> lock(loading);
  const RelaxedCapture relaxed;
  Kernel kernel = handle_.load(std::memory_order_relaxed);
  if (kernel == nullptr) check(driver().library_get_kernel(&kernel, load_library(image_), name_), name_);
  Function function = nullptr;  // asked for so that the code is on the device before a capture needs it
  check(driver().kernel_get_function(&function, kernel), name_);
  if (max_dynamic_shared_bytes_ > kSharedBytesWithoutAsking) {
    const Device handle = device_handle(device);
    check(driver().kernel_set_attribute(kMaxDynamicSharedSizeBytes, max_dynamic_shared_bytes_, kernel, handle), name_);
  }
  handle_.store(kernel, std::memory_order_release);
  prepared_.fetch_or(std::uint64_t{1} << (device & 63), std::memory_order_release);
}

void DeviceKernel::enqueue(const Launch& launch, const Stream& stream, void** parameters) {
  bind_context(stream.device);
  if ((prepared_.load(std::memory_order_acquire) >> (stream.device & 63) & 1) == 0) prepare(stream.device);
  check(driver().launch_kernel(handle_.load(std::memory_order_acquire), launch.grid.x, launch.grid.y, launch.grid.z,
                               launch.block.x, launch.block.y, launch.block.z, launch.dynamic_shared_bytes,
                               stream.handle, parameters, nullptr),
        name_);
}

}  // namespace kb
