#pragma once

#include <cstdint>

enum class Element { f32, f16, bf16 };

/// x, y: [rows, hidden], contiguous; weight: [hidden], of the same type.
struct RmsNorm {
  const void* x;
  const void* weight;
  void* y;
  std::int64_t rows;
  std::int64_t hidden;
  float eps;
  Element type;
};

/// Starts the kernel on a stream of the current device; null, or what CUDA says against it.
const char* rms_norm(const RmsNorm& call, void* stream);
