"""Build time: build.toml → plan → toolchain → compile → check → package → test → publish.

Each step is a subpackage named by its verb; its ``model`` holds the frozen values it hands on.
"""
