"""What tests of kernels begin with: a kernel with its attributes settled, and a tensor of indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stepper.ops import registry


def kernel(type: str, version: int, **attributes: str) -> Callable[..., Any]:
    """The kernel of this definition version, inputs in, outputs out."""
    found = registry.find(type, version)
    assert found is not None, f"no kernel for {type}-{version}"
    return found.bind(attributes)


def i64(*values: int) -> np.ndarray:
    """A list of integers, as axes, shapes and indices come."""
    return np.array(values, np.int64)
