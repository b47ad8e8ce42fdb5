// y = x / sqrt(mean(x², last dimension) + eps) · (weight + offset)
#pragma once

#include "kb/stream.h"
#include "rms_norm_args.h"

/// Implemented by each backend. Arguments have been checked: hidden ≥ 1, pointers valid for their shapes.
void rms_norm_forward(const RmsNormArgs& args, const kb::Stream& stream);
