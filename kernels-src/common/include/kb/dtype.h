// Element types that kernels read and write. Host and device code share this header: NVRTC has no standard headers.
#pragma once

#include "kb/host_device.h"

namespace kb {

enum class DType : int { f16, bf16, f32 };

KB_HOST_DEVICE constexpr int size_of(DType type) { return type == DType::f32 ? 4 : 2; }

}  // namespace kb
