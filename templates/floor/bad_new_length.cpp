// GLIBCXX_3.4.29. The run time has had the same function under another name since CXXABI_1.3.8.
extern "C" [[noreturn]] void __cxa_throw_bad_array_new_length();
[[noreturn]] void floor_bad_new_length() __asm__("_ZSt28__throw_bad_array_new_lengthv");

void floor_bad_new_length() { __cxa_throw_bad_array_new_length(); }
