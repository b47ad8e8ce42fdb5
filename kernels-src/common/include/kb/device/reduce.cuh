// Sums over the threads that share a row. Every thread of the warp (or block) must call them.
#pragma once

namespace kb {

/// Sum over groups of `width` neighbouring lanes; `width` is a power of two up to 32.
__device__ __forceinline__ float lanes_sum(float value, int width) {
  for (int step = width / 2; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
  return value;
}

/// Sum over a one-dimensional block of whole warps; `partial` is shared memory.
__device__ __forceinline__ float block_sum(float value, float (&partial)[32]) {
  const int lane = threadIdx.x % 32;
  const int warp = threadIdx.x / 32;
  value = lanes_sum(value, 32);
  __syncthreads();  // the sums of the previous call have been read
  if (lane == 0) partial[warp] = value;
  __syncthreads();
  return lanes_sum(lane < int(blockDim.x) / 32 ? partial[lane] : 0.0f, 32);
}

/// Sum over the threads of one row: `blockDim.x` lanes of a warp, or the whole block.
__device__ __forceinline__ float row_sum(float value, float (&partial)[32]) {
  return blockDim.x <= 32 ? lanes_sum(value, int(blockDim.x)) : block_sum(value, partial);
}

}  // namespace kb
