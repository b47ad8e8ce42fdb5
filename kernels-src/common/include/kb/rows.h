// Where the rows of a strided tensor lie. Host and device code share this header: NVRTC has no standard headers.
#pragma once

#include "kb/host_device.h"

namespace kb {

/// The rows of a tensor's last dimension, which is contiguous. Two levels of strides cover a slice of heads,
/// `qkv.view(batch, seq, heads, dim)[:, :, :n]`, without a copy. Offsets are in elements and 64-bit.
struct Rows {
  long long count;         ///< number of rows
  long long inner;         ///< rows in one step of the outer level; `count` when there is one level only
  long long inner_stride;  ///< between neighbouring rows
  long long outer_stride;  ///< between row i and row i + inner

  KB_HOST_DEVICE long long offset(long long row) const {
    if (inner == count) return row * inner_stride;
    const long long outer = row / inner;
    return outer * outer_stride + (row - outer * inner) * inner_stride;
  }
};

}  // namespace kb
