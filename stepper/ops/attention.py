"""Attention: ScaledDotProductAttention. Source: its page in the operation sets (category Sequence processing)."""

from __future__ import annotations

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.products import matrix_product
from stepper.ops.registry import kernel


@kernel("ScaledDotProductAttention", 13)
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attention_mask: Array | None = None,
    scale: Array | None = None,
    *,
    causal: bool = False,
) -> Array:
    """Return softmax(query · keyᵀ * scale + mask) · value; `causal` hides keys behind a query's own position."""
    if min(query.ndim, key.ndim, value.ndim) < 2:
        shapes = ", ".join(shape_text(x.shape) for x in (query, key, value))
        raise KernelError(f"query, key and value of shapes {shapes}: all have at least rank 2")
    q, k, v = widened(query), widened(key), widened(value)
    factor = 1 / np.sqrt(q.dtype.type(q.shape[-1])) if scale is None else np.asarray(scale, q.dtype).reshape(())
    try:
        weights = matrix_product(q, k.swapaxes(-1, -2)) * factor
        if causal:
            weights = np.where(np.tri(*weights.shape[-2:], dtype=np.bool_), weights, -np.inf).astype(q.dtype)
        elif attention_mask is not None:
            weights = weights + _bias(attention_mask, q)
        return narrowed(matrix_product(_softmax(weights), v), query.dtype)
    except ValueError:
        inputs = (query, key, value) if attention_mask is None else (query, key, value, attention_mask)
        shapes = ", ".join(shape_text(x.shape) for x in inputs)
        raise KernelError(f"query, key, value (and mask) of shapes {shapes} do not fit each other") from None


def _bias(mask: Array, query: Array) -> Array:
    """Return the summand that a mask means: itself, or of a boolean one -inf where a query must not look."""
    if mask.dtype != np.bool_:
        return np.asarray(mask).astype(query.dtype, copy=False)
    return np.asarray(np.where(mask, query.dtype.type(0), query.dtype.type(-np.inf)))


def _softmax(x: Array) -> Array:
    """Softmax over the last axis; a row of only -inf is NaN, an empty one stays empty."""
    if x.shape[-1] == 0:
        return x
    exponentials: Array = np.exp(x - x.max(axis=-1, keepdims=True))
    exponentials /= exponentials.sum(axis=-1, keepdims=True)
    return exponentials
