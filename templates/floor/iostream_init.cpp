// GLIBCXX_3.4.32: <iostream> of GCC 13 names this function to pull in the object that sets up std::cout and friends.
// Here that object is a counter of our own, as every <iostream> before GCC 13 had one.
#include <ios>

namespace {
std::ios_base::Init set_up;
}

void floor_iostream_init() __asm__("_ZSt21ios_base_library_initv");
void floor_iostream_init() {}
