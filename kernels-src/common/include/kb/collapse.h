// Merges the leading dimensions of a strided tensor into at most two levels of rows.
#pragma once

#include "kb/rows.h"

namespace kb {

/// Fills `rows` from a tensor's sizes and strides. False: its rows are not contiguous or need more than two levels.
template <class Int>
bool collapse_rows(const Int* sizes, const Int* strides, Int dim, Rows& rows) {
  if (sizes[dim - 1] > 1 && strides[dim - 1] != 1) return false;
  long long extent[2] = {1, 1};
  long long stride[2] = {0, 0};
  int levels = 0;
  rows.count = 1;
  for (Int d = dim - 2; d >= 0; --d) {
    rows.count *= sizes[d];
    if (sizes[d] == 1) continue;
    if (levels > 0 && strides[d] == extent[levels - 1] * stride[levels - 1]) {
      extent[levels - 1] *= sizes[d];
      continue;
    }
    if (levels == 2) return false;
    extent[levels] = sizes[d];
    stride[levels] = strides[d];
    ++levels;
  }
  rows.inner = extent[0];
  rows.inner_stride = stride[0];
  rows.outer_stride = stride[1];
  return true;
}

}  // namespace kb
