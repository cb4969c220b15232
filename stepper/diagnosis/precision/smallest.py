"""The smallest set with which something holds (delta debugging: A. Zeller and R. Hildebrandt, Simplifying and Isolating
Failure-Inducing Input, IEEE Trans. Softw. Eng. 28(2), 2002, algorithm ddmin)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def smallest(
    members: Sequence[T], holds: Callable[[Sequence[T]], bool], go_on: Callable[[], bool]
) -> tuple[tuple[T, ...], bool]:
    """Return a subset with which it holds, and True if it does with none of which one more member is left out.

    It holds with all members, which is not tried. Ends earlier where `go_on` is false, with the least so far.
    """
    kept, parts = tuple(members), 2
    while len(kept) > 1:
        size = -(-len(kept) // parts)
        chunks = [kept[start : start + size] for start in range(0, len(kept), size)]
        for index, chunk in enumerate(chunks):
            rest = tuple(one for other in (*chunks[:index], *chunks[index + 1 :]) for one in other)
            tried = ((chunk, 2), (rest, max(parts - 1, 2))) if len(chunks) > 2 else ((chunk, 2),)
            found = None
            for candidate, wanted in tried:
                if not go_on():
                    return kept, False
                if holds(candidate):
                    found = candidate, wanted
                    break
            if found is not None:
                kept, parts = found
                break
        else:
            if parts >= len(kept):
                return kept, True
            parts = min(len(kept), 2 * parts)
    return kept, True
