"""Kernels of the operations, in numpy: one registry, loaded file by file."""

from collections.abc import Mapping
from importlib import import_module

from stepper.ops import registry
from stepper.ops.families import FILE_OF
from stepper.ops.registry import Kernel

__all__ = ["Kernel", "all_kernels", "find"]


def find(type: str, version: int) -> Kernel | None:
    """Return the kernel of the definition `version` (see operation_types.definition) of an operation type."""
    if type in FILE_OF:
        import_module(f"stepper.ops.{FILE_OF[type]}")
    return registry.find(type, version)


def all_kernels() -> Mapping[tuple[str, int], Kernel]:
    """Return every (type, definition version) that has a kernel."""
    for file in dict.fromkeys(FILE_OF.values()):
        import_module(f"stepper.ops.{file}")
    return registry.all_kernels()
