"""Products of matrices: MatMul, Einsum, GroupedMatMul, Inverse.

Source: the operation sets' pages of the category Matrix multiplication.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np

from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ops.operands import ensure_allocatable, integers, shape_text
from stepper.ops.precision import narrowed, widened
from stepper.ops.products import give_threads_back, hold_threads, matrix_product
from stepper.ops.registry import kernel


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
