"""Step 1: build.toml and kernel-builder.toml of a kernel folder → Kernel, or one error that lists every fault."""
