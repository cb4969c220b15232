"""Kernels of the operations, in numpy: one registry, a file per family."""

from collections.abc import Mapping
from importlib import import_module

from stepper.ops import registry
from stepper.ops.families import FAMILIES, FAMILY_OF
from stepper.ops.registry import Kernel

__all__ = ["Kernel", "all_kernels", "find"]


def find(type: str, version: int) -> Kernel | None:
    """Return the kernel of the definition `version` (see operation_types.definition) of an operation type."""
    family = FAMILY_OF.get(type)
    if family is not None:
        import_module(f"stepper.ops.{family}")
    return registry.find(type, version)


def all_kernels() -> Mapping[tuple[str, int], Kernel]:
    """Return every (type, definition version) that has a kernel."""
    for family in FAMILIES:
        import_module(f"stepper.ops.{family}")
    return registry.all_kernels()
