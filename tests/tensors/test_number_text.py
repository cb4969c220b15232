"""Numbers as text: each form of what comes as a number, a truth value or the word for what is no number."""

from __future__ import annotations

import math

import numpy as np

from stepper.tensors.number_text import fitted, number_text, short_exponent
from tests.tables import each_row


@each_row(
    ("value", "expected"),
    [
        (True, "true"),
        (np.bool_(False), "false"),
        (12, "12"),
        (0.123456, "0.1235"),
        (1e-7, "1e-07"),
        (math.nan, "NaN"),
        (np.float32(-math.inf), "-Inf"),
        ("Infinity", "Inf"),
        (None, "-"),
    ],
)
def test_a_number_is_written_in_significant_digits(value: object, expected: str) -> None:
    assert number_text(value) == expected


@each_row(
    ("text", "expected"),
    [("1e-07", "1e-7"), ("2.5e+10", "2.5e10"), ("12", "12"), ("true", "true"), ("false", "false"), ("NaN", "NaN")],
)
def test_an_exponent_has_no_sign_and_zeros_and_words_stay(text: str, expected: str) -> None:
    assert short_exponent(text) == expected


@each_row("value", [0.0, 1.5, 99999, 123456789, 1e-9, -1e30, math.inf, -math.inf, math.nan, True])
def test_a_number_fits_its_cells(value: float) -> None:
    assert len(fitted(value)) <= 6
