// GLIBC_2.30.
#include <sys/syscall.h>
#include <unistd.h>

extern "C" int floor_gettid() __asm__("gettid");
int floor_gettid() { return static_cast<int>(syscall(SYS_gettid)); }
