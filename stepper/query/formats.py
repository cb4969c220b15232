"""Formats of a displayed value: `x` hexadecimal, `e3` and `f2` so many digits, `b` booleans, `s` statistics."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final

import numpy as np

from stepper.errors import UsageError
from stepper.query.expression_values import described
from stepper.tensors.number_text import number_text
from stepper.tensors.statistics import recorded_statistics

_FORMAT: Final = re.compile(r"(?P<letter>[xbs])|(?P<number>[ef])(?P<digits>[0-9]{0,2})")
_MOST: Final = 64
_DIGITS: Final = 6
MEANINGS: Final = "x (hexadecimal), e3 or f3 (so many digits), b (true or false), s (statistics)"


def ensure_format(text: str) -> str:
    """Return the text of a format, empty for none. UsageError for one that is not known."""
    if text and _FORMAT.fullmatch(text) is None:
        raise UsageError(f"there is no format '{text[:20]}'; there are {MEANINGS}")
    return text


def formatted(value: Any, format: str) -> str:
    """Return a value in a format, in one line. UsageError where the format is for other values."""
    array, match = np.asarray(value), _FORMAT.fullmatch(format)
    assert match is not None, "it was looked at when it was set"
    if array.dtype.kind not in "biuf" and array.dtype.kind != "V":
        raise UsageError(f"/{format} is for numbers, this is {described(value)}")
    if match["letter"] == "s":
        shown = [f"{name} {number_text(number, 6)}" for name, number in recorded_statistics(array).items()]
        return f"{described(array)}  {'  '.join(shown)}"
    return _elements(array, _one(match["letter"] or match["number"], match["digits"] or "", array))


def _one(letter: str, digits: str, array: Any) -> Callable[[Any], str]:
    if letter == "x":
        if array.dtype.kind not in "iu":
            raise UsageError(f"/x is for integers, this is {described(array)}")
        return lambda one: f"{'-' if int(one) < 0 else ''}0x{abs(int(one)):x}"
    if letter == "b":
        return lambda one: "true" if one else "false"
    return lambda one: f"{float(one):.{digits or _DIGITS}{letter}}"


def _elements(array: Any, one: Callable[[Any], str]) -> str:
    if not array.ndim:
        return one(array[()])
    shown = np.array2string(array.astype(object), separator=", ", threshold=_MOST, formatter={"all": one})
    return f"{described(array)} {' '.join(shown.split())}"
