// Argument checks that end as Python's ValueError.
#pragma once

#include <stdexcept>
#include <string>

namespace kb::detail {

inline std::string piece(const char* text) { return text; }
inline std::string piece(const std::string& text) { return text; }
template <class Number>
std::string piece(Number number) {
  return std::to_string(number);
}

template <class... Pieces>
[[noreturn]] void fail(const Pieces&... pieces) {
  std::string text;
  ((text += piece(pieces)), ...);
  throw std::invalid_argument(text);
}

}  // namespace kb::detail

/// Throws std::invalid_argument with the pieces as its text, which torch.ops raises as ValueError.
#define KB_CHECK(condition, ...) \
  do {                           \
    if (!(condition)) ::kb::detail::fail(__VA_ARGS__); \
  } while (false)
