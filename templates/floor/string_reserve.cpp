// GLIBCXX_3.4.29: reserve() without an argument became a function of its own.
#include <string>

#if _GLIBCXX_RELEASE >= 11
template void std::string::reserve();
#endif
