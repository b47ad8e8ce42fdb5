// CXXABI_1.3.15: GCC 14 calls it where an exception would leave a noexcept function.
#include <exception>

extern "C" void* __cxa_begin_catch(void*) noexcept;
extern "C" [[noreturn]] void floor_call_terminate(void* exception) __asm__("__cxa_call_terminate");

void floor_call_terminate(void* exception) {
  if (exception != nullptr) __cxa_begin_catch(exception);
  std::terminate();
}
