// CXXABI_1.3.13: exception_ptr's reference counting, reached through its copy constructor and destructor (1.3.3).
extern "C" {
void floor_copy(void* to, const void* from) __asm__("_ZNSt15__exception_ptr13exception_ptrC1ERKS0_");
void floor_destroy(void* self) __asm__("_ZNSt15__exception_ptr13exception_ptrD1Ev");
void floor_addref(void* self) __asm__("_ZNSt15__exception_ptr13exception_ptr9_M_addrefEv");
void floor_release(void* self) __asm__("_ZNSt15__exception_ptr13exception_ptr10_M_releaseEv");
}

// A copy that is never destroyed holds the reference that the caller asked for.
void floor_addref(void* self) {
  void* copy = nullptr;
  floor_copy(&copy, self);
}

void floor_release(void* self) {
  floor_destroy(self);
  *static_cast<void**>(self) = nullptr;
}
