"""What two values, or two constants, have to do with each other is recognised and named."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from stepper.compare import align
from stepper.compare.observations import is_telling, patterns_of_sequences, patterns_of_values
from stepper.ir.model import Layer
from stepper.tensors.tolerances import Tolerance
from tests.tables import each_row

CLOSE = Tolerance(1e-5, 1e-6)
SERIES = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
SQUARE = np.random.default_rng(1).normal(size=(4, 4)).astype(np.float32)
GATES = np.random.default_rng(2).normal(size=(8, 3)).astype(np.float32)


def layer(type: str) -> Layer:
    return Layer(1, "consumer", type, "opset1", 1, {}, (), (), (), 1)


def swapped(value: Any, first: int, second: int) -> Any:
    changed = value.copy()
    changed[[first, second]] = value[[second, first]]
    return changed


@each_row(
    ("ours", "theirs", "words"),
    [
        (SERIES[::-1], SERIES, "reversed order along axis 0"),
        (SERIES[:, ::-1], SERIES, "reversed order along axis 1"),
        (SERIES.T, SERIES, "axes 0 and 1 are exchanged"),
        (SQUARE.T, SQUARE, "axes 0 and 1 are exchanged"),
        (np.roll(SERIES, 1, 0), SERIES, "lags by one along axis 0"),
        (np.roll(SERIES, -1, 0), SERIES, "is ahead by one along axis 0"),
        (SERIES[:4], SERIES, "1 shorter along axis 0, the first 4 agree (too few iterations)"),
        (
            np.concatenate([SERIES, SERIES[:1]]),
            SERIES,
            "1 longer along axis 0, the first 5 agree (too many iterations)",
        ),
        (SERIES[1:], SERIES, "the last 4 agree (it begins elsewhere)"),
        (SERIES.reshape(3, 5), SERIES, "the same numbers in another shape"),
        (-SERIES, SERIES, "sign flipped"),
        (SERIES * 2, SERIES, "2 times the reference's everywhere"),
        (SERIES + np.float32(0.5), SERIES, "off by +0.5 everywhere"),
        (np.clip(SERIES, -0.5, 0.5), SERIES, "clipped (saturated) at 0.5 from above and at -0.5 from below"),
        (SERIES.astype(np.float16).astype(np.float32), SERIES, "numbers of f16"),
        (SERIES.astype(ml_dtypes.bfloat16).astype(np.float32), SERIES, "numbers of bf16"),
        (SERIES * 0, SERIES, "zero throughout"),
        (np.where(SERIES > 1, np.float32(np.nan), SERIES), SERIES, "NaN (not a number)"),
        (SERIES, np.where(SERIES > 1, np.float32(np.inf), SERIES), "finite where the reference has Inf"),
        (SERIES > 0, SERIES <= 0, "inverted"),
    ],
)
def test_the_pattern_is_named(ours: Any, theirs: Any, words: str) -> None:
    found = patterns_of_sequences(np.ascontiguousarray(ours), theirs, CLOSE)
    assert any(words in text for text in found), found


def test_a_value_of_the_iteration_before_is_recognised() -> None:
    found = patterns_of_values(SERIES[1], SERIES[2], SERIES[1], CLOSE)
    assert "one iteration earlier" in found[0]
    assert not patterns_of_values(SERIES[1] * 0, SERIES[2] * 0 + 1, SERIES[1] * 0, CLOSE)[0].startswith("is what")


@each_row("value", [[np.inf], [np.nan, np.nan], [np.inf, np.nan, -np.inf]])
def test_nan_and_inf_are_not_recognised_in_another_iteration(value: list[float]) -> None:
    same, other = np.array(value, np.float32), np.ones(len(value), np.float32)
    assert not is_telling(same)
    assert not any("earlier" in text for text in patterns_of_values(same, other, same, CLOSE))


def test_what_has_nothing_in_common_is_given_no_name() -> None:
    other = np.random.default_rng(9).normal(size=SERIES.shape).astype(np.float32)
    assert patterns_of_sequences(other, SERIES, CLOSE) == ()


@each_row(
    ("ours", "theirs", "consumer", "words"),
    [
        (np.float32(1e-3), np.float32(1e-5), "Add", "0.001 instead of 1e-05"),
        (SQUARE.T, SQUARE, "MatMul", "transposed"),
        (-SQUARE, SQUARE, "MatMul", "sign of every value flipped"),
        (SQUARE * np.float32(4), SQUARE, "MatMul", "4 times the reference's value"),
        (SQUARE + np.float32(0.5), SQUARE, "MatMul", "+0.5 added to every value"),
        (SQUARE.astype(np.float16).astype(np.float32), SQUARE, "MatMul", "rounded to f16"),
        (SQUARE * 0, SQUARE, "Add", "zero throughout"),
        (swapped(SQUARE, 1, 3), SQUARE, "MatMul", "rows 1 and 3 exchanged"),
        (GATES[[2, 3, 0, 1, 4, 5, 6, 7]], GATES, "LSTMCell", "blocks f and i exchanged (swapped): order i,f,c,o"),
        (GATES[:6][[4, 5, 2, 3, 0, 1]], GATES[:6], "GRUCell", "blocks z and h exchanged (swapped): order h,r,z"),
        (GATES[[4, 5, 6, 7, 0, 1, 2, 3]], GATES, "MatMul", "permuted"),
        (SQUARE[:2], SQUARE, "MatMul", "shape [2,4] instead of [4,4]"),
        (SQUARE.astype(np.float64), SQUARE, "MatMul", "type f64 instead of f32"),
    ],
)
def test_the_difference_of_a_constant_is_named(ours: Any, theirs: Any, consumer: str, words: str) -> None:
    text = align.described(np.asarray(ours), np.asarray(theirs), layer(consumer))
    assert words in text


def test_one_changed_element_is_named_with_its_index() -> None:
    changed = SQUARE.copy()
    changed[2, 1] += np.float32(0.25)
    text = align.described(changed, SQUARE, layer("MatMul"))
    assert "one element, [2, 1]" in text and "by 0.25" in text
