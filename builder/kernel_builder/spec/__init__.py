"""Reads kernel folders: build.toml and kernel-builder.toml become a Kernel, or one error that lists every fault."""
