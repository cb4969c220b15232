"""Kernels of the operations, in numpy: one registry, loaded file by file."""
