// Every kernel of rms_norm.cu. The device code defines them and the launch code finds them through this one list, in
// this order: rms_norm_<x type>_<weight type>_<shape>, types in the order of kb::DType.
#pragma once

enum RmsNormShape { wide, wide_long, narrow, narrow_long, kRmsNormShapes };

constexpr int kResidentThreads = 512;   ///< most threads of a row whose x stays in registers
constexpr int kResidentVectors = 4;     ///< 16-byte accesses of x per such thread
constexpr int kResidentScalars = 8;     ///< one-element accesses of x per such thread
constexpr int kLongThreads = 1024;      ///< threads of a row that is read twice

// DO(x, weight, shape, most threads per block)
#define RMS_NORM_SHAPES(DO, X, W)          \
  DO(X, W, wide, kResidentThreads)         \
  DO(X, W, wide_long, kLongThreads)        \
  DO(X, W, narrow, kResidentThreads)       \
  DO(X, W, narrow_long, kLongThreads)

#define RMS_NORM_KERNELS(DO)      \
  RMS_NORM_SHAPES(DO, f16, f16)   \
  RMS_NORM_SHAPES(DO, f16, bf16)  \
  RMS_NORM_SHAPES(DO, f16, f32)   \
  RMS_NORM_SHAPES(DO, bf16, f16)  \
  RMS_NORM_SHAPES(DO, bf16, bf16) \
  RMS_NORM_SHAPES(DO, bf16, f32)  \
  RMS_NORM_SHAPES(DO, f32, f16)   \
  RMS_NORM_SHAPES(DO, f32, bf16)  \
  RMS_NORM_SHAPES(DO, f32, f32)
