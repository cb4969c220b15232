"""Damaged files, for hypothesis to find the smallest damage that does harm."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as some
from hypothesis.strategies import SearchStrategy

Flips = list[tuple[int, int]]
"""Places of bytes, and which bit of each is turned over."""


def flips(places: Sequence[int], most: int = 64) -> SearchStrategy[Flips]:
    return some.lists(some.tuples(some.sampled_from(places), some.integers(0, 7)), min_size=1, max_size=most)


def flipped(content: bytes, bits: Flips) -> bytes:
    changed = bytearray(content)
    for place, bit in bits:
        changed[place] ^= 1 << bit
    return bytes(changed)
