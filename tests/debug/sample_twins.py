"""What two sample models compute, once more in plain Python, with a value changed on the way if one likes."""

from __future__ import annotations

from collections.abc import Mapping


def collatz(start: int, changed: Mapping[int, int] | None = None) -> tuple[int, int, list[int]]:
    """Steps, peak and numbers of the sample `while_loop`; `changed`: with which number an iteration begins instead."""
    number, peak, numbers = start, start, list[int]()
    while not numbers or number != 1:
        number = (changed or {}).get(len(numbers), number)
        number = 3 * number + 1 if number % 2 else number // 2
        peak = max(peak, number)
        numbers.append(number)
    return len(numbers), peak, numbers


Place = tuple[int, int]
"""A pass, and a pair of neighbours in it."""


def bubble_sort(
    values: list[float], changed: Mapping[Place, list[float]] | None = None
) -> tuple[list[float], list[list[float]], list[int], dict[Place, list[float]]]:
    """The sample `nested_loop`: sorted, the order after each pass, swaps in each pass, and what each pair left behind.

    `changed`: the values with which a pair begins instead.
    """
    values, rows, counts, after = list(values), [], [], {}
    for done in range(len(values) - 1):
        swaps = 0
        for left in range(len(values) - 1 - done):
            values = list((changed or {}).get((done, left), values))
            if values[left] > values[left + 1]:
                values[left], values[left + 1] = values[left + 1], values[left]
                swaps += 1
            after[done, left] = list(values)
        rows.append(list(values))
        counts.append(swaps)
        if not swaps:
            break
    return values, rows, counts, after
