#pragma once

__device__ inline long long index_of_thread() { return blockIdx.x * 256ll + threadIdx.x; }
