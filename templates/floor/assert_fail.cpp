// GLIBCXX_3.4.30: where failed library assertions end.
#include <cstdio>
#include <cstdlib>

[[noreturn]] void floor_assert_fail(const char* file, int line, const char* function, const char* condition)
    __asm__("_ZSt21__glibcxx_assert_failPKciS0_S0_");

void floor_assert_fail(const char* file, int line, const char* function, const char* condition) {
  const auto text = [](const char* given) { return given != nullptr ? given : "?"; };
  std::fprintf(stderr, "%s:%d: %s: Assertion '%s' failed.\n", text(file), line, text(function), text(condition));
  std::abort();
}
