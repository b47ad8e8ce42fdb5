// Uses an instruction that only 9.0a has, and says its own file name.
extern "C" __global__ void trio_hopper(const char** name) {
  asm volatile("wgmma.fence.sync.aligned;");
  *name = __FILE__;
}
