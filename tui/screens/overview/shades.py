"""From numbers over iterations to shades: scales of rows, numbers for the lines that there are. Pure functions."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from stepper.element_types import Array

SCALES: Final = ("by itself", "linear", "log")
WAYS: Final = ("mean", "largest", "rms")
"""How several numbers become one where there is not a line each."""


class Scale(NamedTuple):
    """Zero is the ground, `full` the magnitude of the full shade; logarithmic from `low` on, or linear."""

    is_log: bool
    full: float
    low: float
    is_signed: bool


def scale_of(numbers: Sequence[Array], how: str = SCALES[0]) -> Scale:
    """Return the scale of all numbers of a row: its full shade is the 98th percentile of the finite magnitudes.

    It is logarithmic, from the 10th percentile on, where the 98th is more than 50 times the median; numbers from 0 to 1
    never are. `how` may be another choice.
    """
    joined = np.concatenate([np.zeros(0), *(np.ravel(one).astype(np.float64) for one in numbers)])
    joined = joined[np.isfinite(joined)]
    sizes = np.abs(joined[joined != 0])
    if not len(sizes):
        return Scale(False, 1.0, 1.0, False)
    low, middle, full = (float(one) for one in np.percentile(sizes, (10, 50, 98)))
    is_signed = bool((joined < 0).any())
    most = float(sizes.max())
    is_share = not is_signed and most <= 1
    is_log = how == "log" or (how != "linear" and not is_share and full > 50 * middle)
    if is_share and not is_log:
        full = 1.0 if most > 0.5 else most
    return Scale(is_log and full > low, full, low, is_signed)


def shade(number: float, scale: Scale) -> float:
    """Return the shade of a number, -1 to 1; NaN and the infinities are what they are."""
    if not math.isfinite(number) or number == 0:
        return number
    if scale.is_log:
        share = max(0.06, 0.15 + 0.85 * math.log(abs(number) / scale.low) / math.log(scale.full / scale.low))
        return math.copysign(min(share, 1.0), number)
    return max(-1.0, min(number / scale.full, 1.0))


def reduced(numbers: Array, count: int, how: str) -> list[float]:
    """Return a column in at most so many numbers: of neighbours the mean, the largest or the rms; NaN before Inf."""
    if len(numbers) <= count:
        return [float(one) for one in numbers]
    found = []
    for part in np.array_split(numbers, count):
        finite = np.isfinite(part)
        if not finite.all():
            found.append(float("nan") if np.isnan(part).any() else float(part[~finite][0]))
        elif how == "largest":
            found.append(float(part[np.abs(part).argmax()]))
        else:
            found.append(float(part.mean() if how == "mean" else np.sqrt(np.square(part).mean())))
    return found
