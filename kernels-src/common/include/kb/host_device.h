// Marks functions that host and device code share. NVRTC refuses functions without a mark, g++ does not know the mark.
#pragma once

#ifdef __CUDACC__
#define KB_HOST_DEVICE __host__ __device__
#else
#define KB_HOST_DEVICE
#endif
