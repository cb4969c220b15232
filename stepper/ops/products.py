"""Products of matrices by the BLAS of numpy: on one thread where they are small, the matrix of weights first.

numpy multiplies integers without it, thirty times slower. Where no sum can be larger than what a float holds exactly,
as in what is quantised to 8 bits, they are multiplied as floats.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache
from typing import Any, Final

import numpy as np

from stepper.element_types import Array

_SMALL: Final = 2**18
"""Multiplications that OpenBLAS does on one thread by itself; for so few it has code of its own for a transposed matrix
on the right.
"""
WORTH_THREADS: Final = 2**30
"""Multiplications that take a core longer than the threads of OpenBLAS spin for the next product, some 20 ms each."""
_FEW_ROWS: Final = range(2, 49)
_EXACT: Final = ((2**24, np.float32), (2**53, np.float64))
"""Up to this each integer is a number of this type, and so is every sum on the way to one, in whatever order."""
_THREAD_COUNTS: Final = (
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
