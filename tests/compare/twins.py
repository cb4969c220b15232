"""Twins: a small recurrent model, and the same with one fault put in, so that what a comparison must say is known.

Every function returns a graph that is built anew; the fault is its argument, and without one it is the healthy twin.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import stepper
from stepper.compare.comparison import RunComparison, compare_models
from stepper.element_types import Array
from tests.models import Graph, Side, backwards, carried, invariant, joined, last, sliced

STEPS, UNITS = 6, 3
X = np.random.default_rng(3).uniform(-1, 1, (STEPS, UNITS)).astype(np.float32)
WEIGHTS = np.random.default_rng(4).uniform(-1, 1, (UNITS, UNITS)).astype(np.float32)
OTHER_WEIGHTS = np.random.default_rng(5).uniform(-1, 1, (UNITS, UNITS)).astype(np.float32)
TABLE = np.arange(30, dtype=np.float32).reshape(10, 3)


def one_by_one(
    function: Callable[..., Sequence[Array]], stacked: Sequence[bool] | None
) -> Callable[..., Sequence[Array]]:
    """A function of one iteration's values, as one of many that are stacked on a new first axis."""
    if stacked is None:
        return function

    def compute(*inputs: Any) -> Sequence[Array]:
        count = next(len(value) for value, many in zip(inputs, stacked, strict=True) if many)
        found = [
            function(*[value[index] if many else value for value, many in zip(inputs, stacked, strict=True)])
            for index in range(count)
        ]
        return [np.stack(values) for values in zip(*found, strict=True)]

    return compute


class Begun:
    """A function that computes what was begun when its outputs are asked for."""

    def __init__(self, function: Callable[..., Sequence[Array]]) -> None:
        self._function = function

    def __call__(self, *inputs: Any) -> Sequence[Array]:
        return self._function(*inputs)

    def begin(self, *inputs: Any) -> Callable[[], Sequence[Array]]:
        return partial(self._function, *inputs)


def compared(folder: Path, ours: Graph, theirs: Graph, *inputs: Any, **options: Any) -> RunComparison:
    """Ours beside theirs on inputs by position."""
    (folder / "ours").mkdir(exist_ok=True)
    (folder / "theirs").mkdir(exist_ok=True)
    model = ours.read(folder / "ours")
    bound = stepper.bind_inputs(model, dict(enumerate(inputs)))
    return compare_models(model, theirs.read(folder / "theirs"), bound, **options)


def recurrence(fault: str = "", steps: int = STEPS) -> Graph:
    """h' = sigmoid((x_t W + h U) * gain + bias + row_t), y = h' - h; y joined, h' given out."""
    graph, row = Graph(), (1, UNITS)
    x = graph.parameter("x", "f32", (STEPS, UNITS))
    start = graph.constant(np.full(row, 0.5 if fault == "initial value" else 0.0, np.float32), name="start")
    gain = graph.constant(np.full(row, 1.5, np.float32), name="gain_value")
    bias = graph.constant(np.full(row, 0.25, np.float32), name="bias_value")
    body = graph.body()
    x_t, h = body.parameter("x_t", "f32", row), body.parameter("h", "f32", row)
    gained, biased = body.parameter("gain", "f32", row), body.parameter("bias", "f32", row)
    t = body.parameter("t", "i64", ())
    projected = body.apply("MatMul", x_t, body.constant(_weights(fault), name="W"), name="xW")
    if fault == "transposed attribute":
        weights = body.constant(WEIGHTS, name="W2")
        projected = body.apply("MatMul", x_t, weights, name="xW", transpose_b="true")
    recurrent = body.apply("MatMul", h, body.constant(OTHER_WEIGHTS, name="U"), name="hU")
    summed = body.apply("Subtract" if fault == "type" else "Add", projected, recurrent, name="summed")
    scaled = body.apply("Multiply", summed, gained, name="scaled")
    if fault == "inserted":
        scaled = body.apply("Clamp", scaled, name="clipped", min="-0.1", max="0.1")
    shifted = scaled if fault == "skipped" else body.apply("Add", scaled, biased, name="shifted")
    index = body.apply("Add", t, body.constant(1, np.int64, "one"), name="index") if fault == "index" else t
    axis = body.constant(0, np.int64, "axis")
    looked_up = body.apply("Gather", body.constant(TABLE, name="table"), index, axis, dims=(3,), name="looked_up")
    row_t = body.apply("Multiply", looked_up, body.constant(np.float32(0.01), name="small"), name="row_t")
    noted = body.apply("Add", shifted, row_t, dims=row, name="noted")
    updated = body.apply("HardSigmoid", noted, *_hard(body), name="h_next") if fault == "approximation" else None
    updated = updated or body.apply("Sigmoid", noted, name="h_next")
    given = body.result(h if fault == "old value" else updated, "h_out")
    y = body.result(body.apply("Subtract", updated, h, name="y"), "y_out")
    cut = {**backwards()} if fault == "reversed slices" else {}
    kept = body.result(updated, "h_kept") if fault == "old value" else given
    outputs = [last(given), joined(y, **(backwards() if fault == "reversed output" else {}))]
    first, second = (biased, gained) if fault == "crossed" else (gained, biased)
    entries = [sliced(x, x_t, **cut), invariant(gain, first), invariant(bias, second)]
    entries.append(invariant(start, h) if fault == "no back edge" else carried(start, h, kept))
    count = steps - 1 if fault == "trip count" else steps
    out = graph.loop("cell", body, count, True, entries, outputs, iteration=t)
    for name, value in zip(("last_h", "all_y"), out, strict=True):
        graph.result(value, name)
    return graph


def _hard(body: Graph) -> list[Any]:
    return [body.constant(np.float32(0.2), name="alpha"), body.constant(np.float32(0.5), name="beta")]


def _weights(fault: str) -> Any:
    changed = WEIGHTS.copy()
    if fault == "one weight":
        changed[1, 2] += 1e-3
    return {
        "weight in f16": WEIGHTS.astype(np.float16).astype(np.float32),
        "transposed weight": np.ascontiguousarray(WEIGHTS.T),
        "another constant": OTHER_WEIGHTS,
        "zero weight": np.zeros_like(WEIGHTS),
        "NaN": np.where(np.arange(9).reshape(3, 3) == 4, np.float32(np.nan), WEIGHTS),
    }.get(fault, changed)


def countdown(fault: str = "") -> Graph:
    """While value > 1: value * 0.5, as a Loop without a trip count."""
    graph, one = Graph(), (1,)
    start = graph.parameter("start", "f32", one)
    body = graph.body()
    value = body.parameter("value", "f32", one)
    factor = 1.0 if fault == "endless" else 0.5
    halved = body.apply("Multiply", value, body.constant(np.float32([factor]), name="factor"), name="halved")
    tested = value if fault == "old condition" else halved
    comparison = "Less" if fault == "inverted" else "Greater"
    limit = body.constant(np.float32([1]), name="limit")
    going = body.result(body.apply(comparison, tested, limit, type="boolean", name="going"), "going_out")
    result = body.result(halved, "value_out")
    for name, out in zip(
        ("end", "all"),
        graph.loop("halving", body, -1, True, [carried(start, value, result)], [last(result), joined(result)], going),
        strict=True,
    ):
        graph.result(out, name)
    return graph


def nested(fault: str = "") -> Graph:
    """Two rows, in each a running sum over its numbers; an If in the inner body halves what is above a limit."""
    graph = Graph()
    table = graph.parameter("table", "f32", (2, 4))
    zero = graph.constant(np.zeros((1, 1), np.float32), name="zero")
    outer = graph.body()
    row, begin = outer.parameter("row", "f32", (1, 4)), outer.parameter("begin", "f32", (1, 1))
    inner = outer.body()
    number, total = inner.parameter("number", "f32", (1, 1)), inner.parameter("total", "f32", (1, 1))
    added = inner.apply("Add", number, total, name="added")
    flat = inner.apply("Reshape", added, inner.constant([1], np.int64, "flat"), special_zero="false", dims=(1,))
    limit = inner.constant(np.float32([2.0]), name="limit")
    high = inner.apply("Greater", flat, limit, type="boolean", name="high")
    then, otherwise = inner.body(), inner.body()
    taken = then.parameter("taken", "f32", (1, 1))
    half = then.constant(np.float32(0.25 if fault == "branch" else 0.5), name="half")
    halved = then.result(then.apply("Multiply", taken, half, name="halved"), "halved_out")
    kept = otherwise.parameter("kept", "f32", (1, 1))
    same = otherwise.result(kept, "same_out")
    chosen = inner.branch(
        "choice", high, Side(then, [(added, taken)], [halved]), Side(otherwise, [(added, kept)], [same])
    )
    result = inner.result(chosen[0], "total_out")
    sums = outer.tensor_iterator(
        "inner", inner, [sliced(row, number, axis=1), carried(begin, total, result)], [last(result)]
    )
    out = outer.result(sums[0], "sum_out")
    found = graph.tensor_iterator("outer", outer, [sliced(table, row), invariant(zero, begin)], [joined(out)])
    graph.result(found[0], "sums")
    return graph
