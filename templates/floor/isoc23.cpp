// GLIBC_2.38: C23's number parsers, which differ from the old ones in accepting 0b literals only.
#include <cstdlib>

#define FLOOR_PARSER(type, name)                                                                     \
  extern "C" type floor_##name(const char* text, char** end, int base) __asm__("__isoc23_" #name); \
  extern "C" type floor_old_##name(const char* text, char** end, int base) __asm__(#name);         \
  type floor_##name(const char* text, char** end, int base) { return floor_old_##name(text, end, base); }

FLOOR_PARSER(long, strtol)
FLOOR_PARSER(long long, strtoll)
FLOOR_PARSER(unsigned long, strtoul)
FLOOR_PARSER(unsigned long long, strtoull)
