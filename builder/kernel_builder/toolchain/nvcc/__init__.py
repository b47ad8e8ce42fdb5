"""CUDA compiler drivers for ``.cu`` sources with host code: locked, installed, or from archives."""
