"""What each operation computes: numpy kernels, one registry, a file per family."""

from importlib import import_module

from stepper.ops.registry import Kernel, all_kernels, find

_FAMILIES = ("elementwise",)  # fmt: skip - one family a line

for _family in _FAMILIES:
    import_module(f"stepper.ops.{_family}")

__all__ = ["Kernel", "all_kernels", "find"]
