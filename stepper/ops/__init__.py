"""What each operation computes: numpy kernels, one registry, a file per family."""

from importlib import import_module

from stepper.ops.registry import Kernel, all_kernels, find

_FAMILIES = (
    "variables",
    "elementwise",
    "comparison",
    "bitwise",
    "unary",
    "error_function",
    "activation",
    "reduction",
    "normalization",
    "convert",
    "quantize",
    "random_numbers",
    "matmul",
    "attention",
    "recurrent",
    "sequences",
    "convolution",
    "deformable",
    "interpolation",
    "pooling",
    "nms",
    "multiclass_nms",
    "roi",
    "position_sensitive_roi",
    "signal",
    "color",
    "ctc",
    "proposals",
    "prior_boxes",
    "detection",
    "detectron",
    "shape",
    "slicing",
    "movement",
    "gather_scatter",
    "space",
    "sorting",
    "segments",
    "strings",
)  # fmt: skip - one family a line

for _family in _FAMILIES:
    import_module(f"stepper.ops.{_family}")

__all__ = ["Kernel", "all_kernels", "find"]
