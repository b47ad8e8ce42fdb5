// The few things a binding needs of torch, over its stable ABI (KB_STABLE_ABI=1) or over ATen (0): one binding source
// serves both. Ops are registered when the library is loaded, under names that only the final link knows.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#if KB_STABLE_ABI
#include <torch/csrc/stable/library.h>
#include <torch/csrc/stable/ops.h>
#include <torch/csrc/stable/tensor.h>
#else
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>
#endif

#include "kb/dtype.h"

extern "C" {
extern const char kb_namespace[];     // the op namespace of this build
extern const char kb_dispatch_key[];  // "CPU" or "CUDA"
}

namespace kb {

#if KB_STABLE_ABI
using Tensor = torch::stable::Tensor;
using Library = torch::stable::detail::StableLibrary;
using ScalarType = torch::headeronly::ScalarType;
#define KB_OP(function) TORCH_BOX(&function)
#else
using Tensor = at::Tensor;
using Library = torch::Library;
using ScalarType = at::ScalarType;
#define KB_OP(function) TORCH_FN(function)
#endif

/// Null for types that are none of ours.
inline std::optional<DType> dtype_of(const Tensor& tensor) {
  switch (tensor.scalar_type()) {
    case ScalarType::Half: return DType::f16;
    case ScalarType::BFloat16: return DType::bf16;
    case ScalarType::Float: return DType::f32;
    default: return std::nullopt;
  }
}

/// Ordinal of the tensor's device; -1 on the CPU.
inline int device_index(const Tensor& tensor) {
#if KB_STABLE_ABI
  return tensor.get_device_index();
#else
  return tensor.device().index();
#endif
}

inline bool same_device(const Tensor& a, const Tensor& b) {
#if KB_STABLE_ABI
  // Not Tensor::device(): its conversions name device types that torch 2.7 does not have.
  std::int32_t type_a = 0;
  std::int32_t type_b = 0;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(a.get(), &type_a));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(b.get(), &type_b));
  return type_a == type_b && a.get_device_index() == b.get_device_index();
#else
  return a.device() == b.device();
#endif
}

/// Uninitialised, contiguous, with the shape, type and device of `like`.
inline Tensor empty_contiguous(const Tensor& like) {
#if KB_STABLE_ABI
  // Not stable::empty_like: that one keeps the strides of `like`, and takes the long way through the dispatcher.
  std::array<std::int64_t, 64> strides{};  // 64 is torch's limit of dimensions
  const std::int64_t dim = like.dim();
  const auto sizes = like.sizes();
  std::int64_t stride = 1;
  for (std::int64_t d = dim - 1; d >= 0; --d) {
    strides[d] = stride;
    stride *= sizes[d] > 1 ? sizes[d] : 1;
  }
  std::int32_t dtype = 0;
  std::int32_t device_type = 0;
  AtenTensorHandle result = nullptr;
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_dtype(like.get(), &dtype));
  TORCH_ERROR_CODE_CHECK(aoti_torch_get_device_type(like.get(), &device_type));
  TORCH_ERROR_CODE_CHECK(aoti_torch_empty_strided(dim, sizes.data(), strides.data(), dtype, device_type,
                                                  like.get_device_index(), &result));
  return Tensor(result);
#else
  return at::empty(like.sizes(), like.options());
#endif
}

inline bool is_contiguous(const Tensor& tensor) {
#if KB_STABLE_ABI
  // Not Tensor::is_contiguous(): torch 2.7 has no C function for it.
  const auto sizes = tensor.sizes();
  const auto strides = tensor.strides();
  std::int64_t stride = 1;
  for (std::int64_t d = tensor.dim() - 1; d >= 0; --d) {
    if (sizes[d] == 0) return true;
    if (sizes[d] > 1 && strides[d] != stride) return false;
    stride *= sizes[d];
  }
  return true;
#else
  return tensor.is_contiguous();
#endif
}

/// The tensor itself if it is contiguous, else a contiguous copy.
inline Tensor contiguous(const Tensor& tensor) {
#if KB_STABLE_ABI
  // stable::contiguous came with 2.10; this is what it does, for older torches too.
  if (is_contiguous(tensor)) return tensor;
  Tensor copy = empty_contiguous(tensor);
  torch::stable::copy_(copy, tensor);
  return copy;
#else
  return tensor.contiguous();
#endif
}

/// Runs `fill` on this library's registry when the library is loaded; torch keeps what was registered.
class Registration {
 public:
#if KB_STABLE_ABI
  explicit Registration(void (*fill)(Library&))
      : library_(Library::Kind::DEF, kb_namespace, nullptr, "kb/torch.h", 0) {
    fill(library_);
  }
  Registration(void (*fill)(Library&), const char* dispatch_key)
      : library_(Library::Kind::IMPL, kb_namespace, dispatch_key, "kb/torch.h", 0) {
    fill(library_);
  }
#else
  explicit Registration(void (*fill)(Library&)) : library_(Library::DEF, kb_namespace, std::nullopt, "kb/torch.h", 0) {
    fill(library_);
  }
  Registration(void (*fill)(Library&), const char* dispatch_key)
      : library_(Library::IMPL, kb_namespace, c10::parseDispatchKey(dispatch_key), "kb/torch.h", 0) {
    fill(library_);
  }
#endif

 private:
  Library library_;
};

}  // namespace kb

/// Once per library: `KB_LIBRARY(m) { m.def("<schema>"); }`
#define KB_LIBRARY(m)                                                \
  static void kb_define_ops(::kb::Library& m);                       \
  static const ::kb::Registration kb_defined_ops(&kb_define_ops);    \
  static void kb_define_ops(::kb::Library& m)

/// Once per library, for the backend it is linked with: `KB_LIBRARY_IMPL(m) { m.impl("<op>", KB_OP(function)); }`
#define KB_LIBRARY_IMPL(m)                                                                \
  static void kb_implement_ops(::kb::Library& m);                                         \
  static const ::kb::Registration kb_implemented_ops(&kb_implement_ops, kb_dispatch_key); \
  static void kb_implement_ops(::kb::Library& m)
