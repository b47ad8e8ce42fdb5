"""Step 4: Toolchain → BuildResult. What the store lacks is compiled by one run of ninja."""
