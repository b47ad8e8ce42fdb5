// What one call of rms_norm works on: the CPU code's argument and the device code's only kernel parameter.
#pragma once

#include "kb/dtype.h"
#include "kb/rows.h"

/// Where intermediate values are rounded. x̂ is x / sqrt(mean(x²) + eps); sums are fp32 in every mode.
enum class Casting : int {
  llama,  ///< x̂ in fp32, rounded to x's type; then times w
  gemma,  ///< all in fp32, w + offset too; one rounding at the end
  none,   ///< 1/sqrt, x̂ and the product each rounded to x's type, as PyTorch code without casts does
};

struct RmsNormArgs {
  const void* x;       ///< [rows.count, hidden]
  const void* weight;  ///< [hidden], or null: no multiplication
  void* y;             ///< [rows.count, hidden], contiguous, of x's type
  kb::Rows rows;       ///< of x
  long long hidden;
  float eps;
  float offset;  ///< added to every weight
  Casting casting;
  kb::DType x_type;
  kb::DType weight_type;  ///< x's type when there is no weight
};
