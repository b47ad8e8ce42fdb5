"""Step 3: Plan → Toolchain: device compilers, torch headers, the host compiler and the floor."""
