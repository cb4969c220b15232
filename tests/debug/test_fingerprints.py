"""What comes back is compared with what was: large values by pieces that are spread over them."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from stepper.debug.moments import _spread, _update


def digest(array: np.ndarray) -> bytes:
    found = hashlib.blake2b()
    _update(found, array)
    return found.digest()


@pytest.mark.parametrize("shape", [(1 << 19,), (1 << 10, 1 << 9), (2, 1 << 18)])
@pytest.mark.parametrize("transposed", [False, True])
def test_a_large_value_that_is_another_throughout_has_another_fingerprint(
    shape: tuple[int, ...], transposed: bool
) -> None:
    one = np.random.default_rng(0).normal(size=shape).astype(np.float32)
    one = one.T if transposed else one
    assert digest(one) == digest(one.copy(order="K")) and digest(one) != digest(one + np.float32(1))
    assert sum(piece.size for piece in _spread(one)) < one.size // 4


def test_of_a_value_of_up_to_a_megabyte_every_element_counts() -> None:
    one = np.zeros(1 << 18, np.float32)
    for place in (0, 1234, one.size - 1):
        other = one.copy()
        other[place] = 1
        assert digest(other) != digest(one)
