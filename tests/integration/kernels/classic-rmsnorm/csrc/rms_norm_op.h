#pragma once

#include <torch/csrc/stable/tensor.h>

void rms_norm_op(torch::stable::Tensor& y, const torch::stable::Tensor& x, const torch::stable::Tensor& weight,
                 double eps);
