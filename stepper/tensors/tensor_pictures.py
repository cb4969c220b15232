"""From values to shades: which picture suits a value, the scale of a row, and where on it each number is.

No colours and no characters here: a shade is a number from -1 to 1 (0 is the ground), a height one from 0 to 1. The
screen, notebooks and figures draw the same picture of the same numbers.
"""

from __future__ import annotations

import math
from enum import Enum, StrEnum, auto
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace

from stepper.records import Record

if TYPE_CHECKING:
    from stepper.element_types import Array

FULL = 98.0
"""The percentile of the magnitudes that gets the full shade: few outliers are clipped, and hide nothing else."""
LOW = 10.0
"""The percentile of the magnitudes at which a logarithmic scale begins."""
WIDE = 50.0
"""How many times the median the full shade must be for a logarithmic scale."""
OUTLIER = 4.0
"""Few numbers: the largest is clipped if it is this many times the second largest magnitude."""
_FAINTEST = 0.06
_LOG_BEGIN = 0.15
_SPAN = 1000.0
_FEW = 50
_TOLD = 0.01
"""Share of a scale from which on a number beyond it is counted: nearer ones are hardly told from the end."""
_MOST = 2**14


class Form(Enum):
    """List how a value is drawn over the iterations.

    WORDS: as words; TRUTH: T and F; NUMBERS: whole numbers, or the words for them; BARS: one number a column; PICTURE:
    a column of shades.
    """

    WORDS = auto()
    TRUTH = auto()
    NUMBERS = auto()
    BARS = auto()
    PICTURE = auto()


class ScaleKind(StrEnum):
    """How shades grow with numbers: ROBUST up to the largest that is no outlier, LOG with the logarithm.

    UNIT: shares of one.
    """

    ROBUST = "robust"
    LOG = "log"
    UNIT = "unit"


class Scale(Record):
    """Hold the scale of a row: the ground is zero; magnitudes from `full` on have full shade.

    Logarithmic shades begin at `low`, which is 0 if all numbers are 0. `signed`: some numbers are negative. `share` is
    the share of the numbers within the scale; 0 without a finite number.
    """

    kind: ScaleKind
    full: float
    low: float
    signed: bool
    share: float = 1.0


class BarScale(Record):
    """Hold the scale of bars: `low` is the lowest height, `high` and more the full height.

    `log`: logarithmic. Then `unit` is 0 if both ends are positive; else the scale is symmetric about zero, and linear
    up to magnitudes of about `unit`. `share` is the share of the numbers within the scale; 0 without a finite number.
    """

    low: float
    high: float
    log: bool
    unit: float = 0.0
    share: float = 1.0


def form_of(type: str, size: int, *, is_whole: bool = True) -> Form:
    """Return what suits a value of an element type ("boolean", "i64", "f32", ...) of so many elements.

    `is_whole` False: they are not the elements, but statistics of them.
    """
    if not size:
        return Form.WORDS
    if size > 1:
        return Form.PICTURE
    if not is_whole:
        return Form.BARS
    return Form.TRUTH if type == "boolean" else Form.NUMBERS if type[0] in "iu" else Form.BARS


# --- shades ---------------------------------------------------------------------------------------------------------


def scale_of(numbers: Array) -> Scale:
    """Return the scale for all numbers of a row, of any shape; NaN and infinite ones do not count.

    Shares (none below zero, none above 1) are from 0 to 1 or to their largest if that is less than a half; other
    numbers are logarithmic where the full shade is more than WIDE times their median, else linear, and without
    outliers.
    """
    finite = _finite(numbers)
    every = np.abs(finite[finite != 0])
    if not every.size:
        return Scale(ScaleKind.ROBUST, 1.0, 0.0, signed=False, share=float(finite.size > 0))
    signed, largest = bool((finite < 0).any()), float(every.max())
    magnitudes = np.sort(_some(every))
    median, low = (percentile(magnitudes, part) for part in (50, LOW))
    if not signed and largest <= 1:
        return Scale(ScaleKind.UNIT, 1.0 if largest > 0.5 else largest, low, signed)
    full = _robust(magnitudes)
    kind = ScaleKind.LOG if full > WIDE * median else ScaleKind.ROBUST
    beyond = 0 if largest <= full else int(np.count_nonzero(every > full * (1 + _TOLD)))
    return Scale(kind, full, low, signed, 1 - beyond / finite.size)


def shades(numbers: Array, scale: Scale) -> Array:
    """Return the shades of numbers, from -1 to 1, in their shape; NaN and infinite numbers stay as they are."""
    wide = np.asarray(numbers, np.float64)
    with np.errstate(all="ignore"):
        share = wide / scale.full
        if scale.kind is ScaleKind.LOG and 0 < scale.low < scale.full:
            part = np.log(np.abs(wide) / scale.low) / np.log(scale.full / scale.low)
            share = np.sign(wide) * np.maximum(_FAINTEST, _LOG_BEGIN + (1 - _LOG_BEGIN) * part)
            share = np.where(wide == 0, 0.0, share)
        return np.where(np.isfinite(wide), np.clip(share, -1, 1), wide)


def letters(numbers: Array) -> Array:
    """Return "N" for NaN, "I" for infinite numbers, and an empty text for others, in the shape of the numbers."""
    wide = np.asarray(numbers, np.float64)
    return np.where(np.isnan(wide), "N", np.where(np.isinf(wide), "I", ""))


def digits(shades: Array) -> Array:
    """Return shades as whole numbers from -9 to 9, for pictures without colours; 0 is less than 0.05.

    NaN and infinite shades become 0; their letters stand for them.
    """
    finite = np.where(np.isfinite(shades), shades, 0.0)
    nearest = np.maximum(np.rint(np.abs(finite) * 9), 1)
    return np.where(np.abs(finite) < 0.05, 0, np.sign(finite) * nearest).astype(np.int8)


# --- bars -----------------------------------------------------------------------------------------------------------


def bar_scale(numbers: Array, *, may_be_log: bool = True) -> BarScale:
    """Return the scale of bars for all numbers of a row, from their least to their largest, without outliers.

    Where it may be it is logarithmic if the largest is far above the median or the least, of numbers that are not all
    positive if the magnitudes are so.
    """
    finite = _finite(numbers)
    if not finite.size:
        return BarScale(0.0, 1.0, log=False, share=0.0)
    low, high = _robust_range(finite)
    if not may_be_log or not _is_wide(finite, low, high):
        found = BarScale(low, high, log=False)
    elif finite.min() > 0:
        least, largest = _robust_range(np.log(finite))
        found = BarScale(_one_of(finite, np.exp(least)), _one_of(finite, np.exp(largest)), log=True)
    else:
        unit = percentile(np.sort(np.abs(finite[finite != 0])), LOW)
        ends = _from_symmetric(np.array(_robust_range(_symmetric(finite, unit))), unit)
        found = BarScale(_one_of(finite, ends[0]), _one_of(finite, ends[1]), log=True, unit=unit)
    low, high = _beside(found, _TOLD)
    return replace(found, share=1 - int(np.count_nonzero((finite < low) | (finite > high))) / finite.size)


def _one_of(finite: Array, end: float) -> float:
    """Return the number nearest to an end that a logarithm and its inverse have rounded."""
    with np.errstate(over="ignore"):
        return float(finite[np.abs(finite - end).argmin()])


def _is_wide(finite: Array, low: float, high: float) -> bool:
    """True if numbers that are not outliers are so different in size that a linear scale shows few of them."""
    if finite.min() > 0:
        return high > WIDE * percentile(np.sort(finite), 50) or high > _SPAN * low
    magnitudes = np.sort(np.abs(finite[finite != 0]))
    return bool(magnitudes.size) and _robust(magnitudes) > WIDE * percentile(magnitudes, 50)


def _symmetric(numbers: Array, unit: float) -> Array:
    """Return signed logarithms: log(1 + magnitude / unit), with the sign of the number."""
    with np.errstate(divide="ignore"):
        found: Array = np.sign(numbers) * np.logaddexp(0, np.log(np.abs(numbers)) - np.log(unit))
    return found


def _from_symmetric(logarithms: Array, unit: float) -> Array:
    """Return the numbers of signed logarithms."""
    sizes = np.abs(logarithms)
    with np.errstate(divide="ignore", over="ignore"):
        found: Array = np.sign(logarithms) * np.exp(np.log(unit) + sizes + np.log(-np.expm1(-sizes)))
    return found


def _robust_range(numbers: Array) -> tuple[float, float]:
    """Return the least and the largest number that are no outliers.

    Three numbers have no outlier. An outlier is OUTLIER times as far from the other end as the number at the percentile
    FULL. With few numbers, the number next to the end replaces the percentile, and only the end may be an outlier. With
    many numbers, both ends are measured without the outliers at the opposite end.
    """
    ordered = np.sort(numbers)
    last, is_many = ordered.size - 1, ordered.size > _FEW
    low, high = float(ordered[0]), float(ordered[last])
    if last < 3:
        return low, high
    inner = int(FULL / 100 * last) if is_many else last - 1
    next_low, next_high = float(ordered[last - inner]), float(ordered[inner])
    foot, head = (next_low, next_high) if is_many else (low, high)
    most = foot / 2 + OUTLIER * (next_high / 2 - foot / 2)  # halved: the distance of the largest would overflow
    least = head / 2 - OUTLIER * (head / 2 - next_low / 2)
    is_high = high / 2 > most and next_high > foot
    is_low = low / 2 < least and next_low < head and (is_many or not is_high)
    return (
        float(ordered[ordered / 2 >= least][0]) if is_low else low,
        float(ordered[ordered / 2 <= most][-1]) if is_high else high,
    )


def share_text(share: float) -> str:
    """Return how many of the numbers are within a scale, where not all are."""
    return "" if share >= 1 else f"{min(math.floor(100 * share), 99)} %"


def heights(numbers: Array, scale: BarScale) -> Array:
    """Return the heights of numbers, from 0 to 1, in their shape; of a constant row a half. NaN and infinite stay."""
    wide = np.asarray(numbers, np.float64)
    with np.errstate(all="ignore"):
        if scale.high <= scale.low:
            part = np.full(wide.shape, 0.5)
        elif scale.unit:
            low, high = _symmetric(np.array([scale.low, scale.high]), scale.unit)
            part = (_symmetric(wide, scale.unit) - low) / (high - low)
        elif scale.log:
            part = np.log(np.maximum(wide, scale.low) / scale.low) / np.log(scale.high / scale.low)
        else:
            part = (wide / 2 - scale.low / 2) / (scale.high / 2 - scale.low / 2)
        return np.where(np.isfinite(wide), np.clip(part, 0, 1), wide)


def _beside(scale: BarScale, share: float) -> tuple[float, float]:
    """Return the numbers that are beyond the two ends of a scale by a share of it."""
    if scale.unit:
        low, high = _symmetric(np.array([scale.low, scale.high]), scale.unit).tolist()
        more = share * (high - low)
        ends = _from_symmetric(np.array([low - more, high + more]), scale.unit)
        return float(ends[0]), float(ends[1])
    if scale.log:
        beside = (scale.high / scale.low) ** share
        return scale.low / beside, scale.high * beside
    more = share * (scale.high / 2 - scale.low / 2) * 2
    return scale.low - more, scale.high + more


# --- robust ---------------------------------------------------------------------------------------------------------


def _some(numbers: Array) -> Array:
    """Return so many of the numbers that their percentiles are those of all, near enough for a shade."""
    if numbers.size <= _MOST:
        return numbers
    places = np.arange(_MOST, dtype=np.uint64) * np.uint64(2654435761) % np.uint64(numbers.size)
    found: Array = numbers[places.astype(np.intp)]
    return found


def percentile(ordered: Array, part: float) -> float:
    """Return a percentile of numbers in their order as numpy does, which takes ten times as long for few."""
    place = part / 100 * (len(ordered) - 1)
    below = int(place)
    low, high = float(ordered[below]), float(ordered[min(below + 1, len(ordered) - 1)])
    share, span = place - below, high - low
    return high - span * (1 - share) if share >= 0.5 else low + span * share


def _finite(numbers: Array) -> Array:
    flat = np.asarray(numbers, np.float64).reshape(-1)
    return flat[np.isfinite(flat)]


def _robust(magnitudes: Array) -> float:
    """Return the magnitude at the percentile FULL; of few numbers the second largest where the largest is far off."""
    if magnitudes.size > _FEW:
        place = int(FULL / 100 * (magnitudes.size - 1))  # between two, an outlier would have its say
        return float(np.partition(magnitudes, place)[place])
    if magnitudes.size < 3:
        return float(magnitudes.max())
    second, largest = np.partition(magnitudes, -2)[-2:].tolist()
    return float(second if largest > OUTLIER * second else largest)
