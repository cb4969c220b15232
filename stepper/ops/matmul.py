"""Products of matrices: MatMul, Einsum, GroupedMatMul, Inverse and attention."""

from __future__ import annotations

import ctypes
import math
import re
import sys
from collections.abc import Callable
from functools import lru_cache
from itertools import pairwise
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.registry import kernel

# Products of matrices by the BLAS of numpy: on one thread where they are small, the matrix of weights first.
#
# numpy multiplies integers without it, thirty times slower. Where no sum can be larger than what a float holds exactly,
# as in what is quantised to 8 bits, they are multiplied as floats.

_SMALL = 2**18
"""Multiplications that OpenBLAS does on one thread by itself; for so few it has code of its own for a transposed matrix
on the right.
"""
WORTH_THREADS = 2**30
"""Multiplications that take a core longer than the threads of OpenBLAS spin for the next product, some 20 ms each."""
_FEW_ROWS = range(2, 49)
_EXACT = ((2**24, np.float32), (2**53, np.float64))
"""Up to this each integer is a number of this type, and so is every sum on the way to one, in whatever order."""
_THREAD_COUNTS = (
    ("scipy_openblas_get_num_threads64_", "scipy_openblas_set_num_threads64_"),
    ("openblas_get_num_threads64_", "openblas_set_num_threads64_"),
    ("openblas_get_num_threads", "openblas_set_num_threads"),
    ("MKL_Get_Max_Threads", "MKL_Set_Num_Threads"),
)
"""Functions of OpenBLAS (first as numpy's wheels name them) and MKL that tell and set the number of threads."""


def matrix_product(a: Array, b: Array) -> Array:
    """Return numpy's matrix product of arrays of one type. Raises ValueError for shapes that do not fit."""
    multiplications = a.size * b.shape[-1] if b.ndim > 1 else a.size
    if multiplications <= _SMALL:
        return np.matmul(a, b)  # type: ignore[no-any-return]
    if a.dtype.kind in "iu" and (floating := _exact_type(a, b)) is not None:
        product = matrix_product(a.astype(floating), b.astype(floating))
        return product.astype(np.int64).astype(a.dtype)  # which wraps as sums of integers do
    usual = hold_threads(multiplications)
    try:
        if a.ndim == b.ndim == 2 and len(a) in _FEW_ROWS and b.flags.f_contiguous:
            return np.ascontiguousarray(np.matmul(b.T, a.T).T)  # the same sums in about half the time
        return np.matmul(a, b)  # type: ignore[no-any-return]
    finally:
        if usual > 1:
            give_threads_back(usual)


def _exact_type(a: Array, b: Array) -> type[np.floating[Any]] | None:
    """Return the narrowest float in which the product of integers is exact; None for none."""
    largest = a.shape[-1] * _magnitude(a) * _magnitude(b)
    return next((floating for limit, floating in _EXACT if largest <= limit), None)


def _magnitude(array: Array) -> int:
    return max(int(array.max()), -int(array.min()))


def hold_threads(multiplications: int) -> int:
    """Hold BLAS to one thread for what is not worth more. Return what to give back: its number of threads, or 1."""
    if not _SMALL < multiplications < WORTH_THREADS:
        return 1
    thread_count, limit = _threads()
    usual = thread_count()
    if usual > 1:
        limit(1)
    return usual


def give_threads_back(usual: int) -> None:
    """Let BLAS have the number of threads again that `hold_threads` returned."""
    if usual > 1:
        _threads()[1](usual)


@lru_cache(maxsize=1)
def _threads() -> tuple[Callable[[], int], Callable[[int], object]]:
    """Return how to ask numpy's BLAS for its number of threads and to set it; of an unknown one, that it is one."""
    numpy_core = sys.modules.get("numpy._core._multiarray_umath")
    path = getattr(numpy_core, "__file__", None)
    library = None if path is None else ctypes.PyDLL(path)  # a search goes on in the libraries that it is linked with
    for ask, tell in _THREAD_COUNTS:
        if hasattr(library, ask) and hasattr(library, tell):
            limit = getattr(library, tell)
            limit.argtypes, limit.restype = [ctypes.c_int], None
            return getattr(library, ask), limit
    return lambda: 1, lambda _count: None


def _matmul_with(b: Array, *, transpose_a: bool = False, transpose_b: bool = False) -> Callable[[Array], Array] | None:
    """Return the product with a constant matrix, of a type that needs no wider one."""
    if transpose_a or b.ndim < 2 or b.dtype.itemsize < 4:
        return None
    dtype, right, multiply = b.dtype, b.swapaxes(-1, -2) if transpose_b else b, matrix_product

    def multiplied(a: Array) -> Array:
        if a.dtype is dtype:
            try:
                return multiply(a, right)
            except ValueError:
                pass
        return product(a, right)

    return multiplied


@kernel("MatMul", 1, settled=_matmul_with)
def matmul(a: Array, b: Array, *, transpose_a: bool = False, transpose_b: bool = False) -> Array:
    """Return a · b of the last two axes, the others broadcast; a vector is a row on the left, a column on the right."""
    if transpose_a and a.ndim > 1:
        a = a.swapaxes(-1, -2)
    if transpose_b and b.ndim > 1:
        b = b.swapaxes(-1, -2)
    return product(a, b)


def product(a: Array, b: Array) -> Array:
    """Return numpy's matrix product, rounded once where the element type is narrower than f32."""
    try:
        if a.dtype.itemsize >= 4:
            return matrix_product(a, b)
        return narrowed(matrix_product(widened(a), widened(b)), a.dtype)
    except ValueError:
        shapes = f"{shape_text(a.shape)} and {shape_text(b.shape)}"
        raise KernelError(f"matrices of shapes {shapes} cannot be multiplied") from None


@kernel("Einsum", 7)
def einsum(*inputs: Array, equation: str) -> Array:
    """Return the sum of products that `equation` names by labels."""
    subscripts = equation.replace(" ", "")
    shape, multiplications = _result_shape(subscripts, inputs)
    ensure_allocatable(shape, inputs[0].dtype)
    dtype = inputs[0].dtype
    usual = hold_threads(multiplications)
    try:
        result = np.einsum(subscripts, *map(widened, inputs), optimize=len(inputs) > 1)
    except ValueError as error:
        shapes = " and ".join(shape_text(x.shape) for x in inputs)
        raise KernelError(f"the equation '{equation}' does not fit inputs of shapes {shapes} ({error})") from None
    finally:
        give_threads_back(usual)
    return narrowed(result, dtype)


def _result_shape(equation: str, inputs: tuple[Array, ...]) -> tuple[list[int], int]:
    """Return the sizes of the result's labels (an ellipsis counted as the product of what it covers, at most), and the
    number of terms of all its sums.
    """
    subscripts, arrow, output = equation.partition("->")
    terms = [re.findall(r"\.\.\.|[A-Za-z]", term) for term in subscripts.split(",")]
    well_formed = re.fullmatch(r"[A-Za-z.,]*", subscripts) and re.fullmatch(r"[A-Za-z.]*", output)
    if not well_formed or len(terms) != len(inputs) or any(term.count("...") > 1 for term in terms):
        raise KernelError(f"the equation '{equation}' is malformed or has not one subscript for each input")
    sizes: dict[str, int] = {"...": 1}
    for term, x in zip(terms, inputs, strict=True):
        covered = x.ndim - len(term) + ("..." in term)
        if covered < 0 or (covered > 0 and "..." not in term):
            raise KernelError(f"the equation '{equation}' does not fit an input of shape {shape_text(x.shape)}")
        position = term.index("...") if "..." in term else len(term)
        for label, size in zip(term[:position], x.shape, strict=False):
            sizes[label] = max(sizes.get(label, 1), size)
        for label, size in zip(reversed(term[position + 1 :]), reversed(x.shape), strict=False):
            sizes[label] = max(sizes.get(label, 1), size)
        sizes["..."] *= int(np.prod(x.shape[position : position + covered], dtype=np.int64)) or 1
    all_labels = [label for term in terms for label in term]
    kept = re.findall(r"\.\.\.|[A-Za-z]", output) if arrow else [x for x in sizes if all_labels.count(x) == 1]
    return [sizes.get(label, 1) for label in kept], math.prod(sizes.values())


@kernel("GroupedMatMul", 17)
def grouped_matmul(a: Array, b: Array, offsets: Array | None = None) -> Array:
    """Return one product for each group: rows of `a` up to each offset, whole matrices, or parts of the inner axis.

    The text has the weights as [G,K,N], the release that first implements it as [G,N,K]: told apart by their shape,
    the latter where both fit.
    """
    if b.ndim == 3 and a.ndim > 0:
        b = b.swapaxes(1, 2) if b.shape[2] == a.shape[-1] else b
    if a.ndim == 3 and b.ndim == 3:
        return product(a, b)
    if offsets is None or a.ndim != 2 or b.ndim not in (2, 3):
        raise KernelError(f"no grouping of inputs of shapes {shape_text(a.shape)} and {shape_text(b.shape)}")
    return _products_of_rows(a, b, offsets) if b.ndim == 3 else _products_of_columns(a, b, offsets)


def _products_of_rows(tokens: Array, weights: Array, offsets: Array) -> Array:
    bounds = _bounds(offsets, tokens.shape[0])
    if len(bounds) != len(weights):
        raise KernelError(f"{len(bounds)} offsets for {len(weights)} groups of weights")
    result = np.zeros((tokens.shape[0], weights.shape[2]), tokens.dtype)
    for (start, end), matrix in zip(bounds, weights, strict=True):
        result[start:end] = product(tokens[start:end], matrix)
    return result


def _products_of_columns(a: Array, b: Array, offsets: Array) -> Array:
    bounds = _bounds(offsets, a.shape[1])
    ensure_allocatable((len(bounds), a.shape[0], b.shape[1]), a.dtype)
    result = np.zeros((len(bounds), a.shape[0], b.shape[1]), a.dtype)
    for group, (start, end) in enumerate(bounds):
        result[group] = product(a[:, start:end], b[start:end])
    return result


def _bounds(offsets: Array, total: int) -> list[tuple[int, int]]:
    """Return the start and the end of each group."""
    ends = [0, *integers(offsets)]
    if any(start > end for start, end in pairwise(ends)) or ends[-1] > total:
        raise KernelError(f"offsets {ends[1:]} do not ascend to at most {total}")
    return list(pairwise(ends))


@kernel("Inverse", 14)
def inverse(x: Array, *, adjoint: bool = False) -> Array:
    """Return the inverse of each matrix, transposed if `adjoint`; a singular matrix, gives NaN."""
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise KernelError(f"shape {shape_text(x.shape)} is not one of square matrices")
    wide: Any = widened(x)
    try:
        result = np.linalg.inv(wide)
    except np.linalg.LinAlgError:
        matrices = wide.reshape(-1, *x.shape[-2:])
        result = np.stack([_inverse_or_nan(matrix) for matrix in matrices]).reshape(x.shape)
    return narrowed(result.swapaxes(-1, -2) if adjoint else result, x.dtype)


def _inverse_or_nan(matrix: Array) -> Array:
    try:
        return np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        return np.full_like(matrix, np.nan)


# Attention: ScaledDotProductAttention. Source: its page in the operation sets (category Sequence processing).


@kernel("ScaledDotProductAttention", 13)
def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attention_mask: Array | None = None,
    scale: Array | None = None,
    sink: Array | None = None,
    *,
    causal: bool = False,
) -> Array:
    """Return softmax(query · keyᵀ * scale + mask) · value; `causal` hides keys behind a query's own position.

    `sink` [..., 1], which OpenVINO takes since 2025.4 and no page has, is the score of one key more in each row, of
    value 0.
    """
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
        if sink is not None:
            beside = np.broadcast_to(widened(sink), (*weights.shape[:-1], 1))
            weights = _softmax(np.concatenate((weights, beside), axis=-1))[..., :-1]
        else:
            weights = _softmax(weights)
        return narrowed(matrix_product(weights, v), query.dtype)
    except ValueError:
        shapes = ", ".join(shape_text(x.shape) for x in (query, key, value, attention_mask, sink) if x is not None)
        raise KernelError(f"query, key, value (mask and sink) of shapes {shapes} do not fit each other") from None


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
