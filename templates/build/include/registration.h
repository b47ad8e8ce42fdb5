// Macros with which bindings of the Hub's kernel format register their operators. Their builds find this header by name.
//
// Up to torch 2.10 the registration macros paste the namespace of a definition as it is written and that of an
// implementation as it expands. One macro around each makes both see the expanded name.
#pragma once

#define TORCH_LIBRARY_EXPAND(NAME, LIBRARY) TORCH_LIBRARY(NAME, LIBRARY)
#define TORCH_LIBRARY_FRAGMENT_EXPAND(NAME, LIBRARY) TORCH_LIBRARY_FRAGMENT(NAME, LIBRARY)
#define TORCH_LIBRARY_IMPL_EXPAND(NAME, KEY, LIBRARY) TORCH_LIBRARY_IMPL(NAME, KEY, LIBRARY)

#define STABLE_TORCH_LIBRARY_EXPAND(NAME, LIBRARY) STABLE_TORCH_LIBRARY(NAME, LIBRARY)
#define STABLE_TORCH_LIBRARY_FRAGMENT_EXPAND(NAME, LIBRARY) STABLE_TORCH_LIBRARY_FRAGMENT(NAME, LIBRARY)
#define STABLE_TORCH_LIBRARY_IMPL_EXPAND(NAME, KEY, LIBRARY) STABLE_TORCH_LIBRARY_IMPL(NAME, KEY, LIBRARY)

// The library's identity object has the module's entry point; what is left to do here is to accept the line.
#define REGISTER_EXTENSION(NAME) KB_DECLARE_ENTRY(NAME)
#define KB_DECLARE_ENTRY(NAME) extern "C" void* PyInit_##NAME();
