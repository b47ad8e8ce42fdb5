// GLIBCXX_3.4.31: the out-of-line half of replace(), split off in GCC 13.
#include <string>

#if _GLIBCXX_RELEASE >= 13
template void std::string::_M_replace_cold(char*, std::size_t, const char*, std::size_t, std::size_t);
#endif
