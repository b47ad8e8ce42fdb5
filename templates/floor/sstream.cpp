// GLIBCXX_3.4.26: default constructors of string streams, declared extern in the headers.
#include <sstream>

template std::basic_stringbuf<char>::basic_stringbuf();
template std::basic_istringstream<char>::basic_istringstream();
template std::basic_ostringstream<char>::basic_ostringstream();
template std::basic_stringstream<char>::basic_stringstream();
