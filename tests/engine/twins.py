"""What loops mean, once more, in plain Python from the text of the specification: shares nothing with the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np


def chunks(extent: int, start: int, end: int, stride: int) -> list[list[int]] | None:
    """The element numbers that each iteration gets, by the specification; None where the numbers make no sense.

    `start` and `end` name boundaries between elements, negative ones counted from behind the last.
    """
    boundaries = list(range(extent + 1))
    if not (-len(boundaries) <= start < len(boundaries) and -len(boundaries) <= end < len(boundaries)):
        return None
    here, goal = boundaries[start], boundaries[end]
    if extent == 0:
        return []
    found = []
    while here != goal:
        there = here + stride
        if not (0 <= there <= extent) or (stride > 0) != (goal > here) or abs(goal - here) < abs(stride):
            return None
        found.append(list(range(min(here, there), max(here, there))))
        here = there
    return found or None


def chunks_of_whole_axis(extent: int, stride: int, count: int) -> list[list[int]]:
    """What OpenVINO's plugin takes instead: the axis cut from its first element on, forwards or backwards."""
    size = abs(stride)
    pieces = [list(range(begin, begin + size)) for begin in range(0, extent - size + 1, size)]
    return (pieces if stride > 0 else pieces[::-1])[:count]


def iterated(
    body: Callable[..., tuple[Any, ...]], state: tuple[Any, ...], iterations: Sequence[tuple[Any, ...]]
) -> list[tuple[Any, ...]]:
    """The states after each iteration: each from the one before and what the iteration brings."""
    states = []
    for brought in iterations:
        state = body(*state, *brought)
        states.append(state)
    return states


def deep(value: Any) -> Any:
    """A copy of a value of a frame that shares nothing with it."""
    return None if value is None else np.array(value)
