"""Stage 4, compile: Toolchain → BuildResult. Must not import check, package or anything above."""
