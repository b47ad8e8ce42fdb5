// GLIBCXX_3.4.29: what C++20 added to string buffers.
#include <sstream>

#if _GLIBCXX_RELEASE >= 11
template std::string std::basic_stringbuf<char>::str() const&;
template std::string std::basic_stringbuf<char>::str() &&;
template std::string_view std::basic_stringbuf<char>::view() const noexcept;
#endif
