"""The samples whose shapes change: a Loop in a Loop with fewer iterations each time, and a tensor that grows."""

from __future__ import annotations

import numpy as np
import openvino as ov
import openvino.opset13 as ops
from building import Body, constant, loop, model, parameter, row
from sample import Array, Sample


def nested_loop() -> Sample:
    """Bubble sort: each pass compares one pair fewer than the one before, and a pass without a swap is the last."""
    values = parameter("values", [-1])
    length = ops.squeeze(ops.shape_of(values, name="shape"), constant("axis", 0, np.int64), name="length")
    most_passes = ops.subtract(length, constant("one", 1, np.int64), name="most_passes")
    passes_done, pairs = parameter("passes_done", [], np.int64), parameter("pairs", [], np.int64)
    order = parameter("order", [-1])
    pairs_left = ops.subtract(pairs, passes_done, name="pairs_left")
    order_next, swaps = one_pass(order, pairs_left)
    body = Body(carried=[(order, values, order_next)], invariant=[(pairs, most_passes)], iteration=passes_done)
    body.keep_going = ops.greater(swaps, constant("zero", 0, np.int64), name="keep_going")
    body.last, body.concatenated = [order_next], [row(order_next, "order_row"), swaps]
    ordered, order_by_pass, swaps_by_pass = loop("passes", most_passes, constant("true", True, np.bool_), body)
    numbers = np.array([5, 1, 4, 2, 8], np.float32)
    rows, counts = bubble_sort(numbers)
    np.testing.assert_array_equal(rows[-1], np.sort(numbers))
    outputs = {"sorted": ordered, "order_by_pass": order_by_pass, "swaps_by_pass": swaps_by_pass}
    return Sample(
        model("nested_loop", [values], outputs),
        {"values": numbers},
        {"sorted": rows[-1], "order_by_pass": rows, "swaps_by_pass": counts},
    )


def one_pass(order: ov.Node, pairs: ov.Node) -> list[ov.Output]:
    """The inner Loop: neighbours that are in the wrong order change places; returns the new order and the swaps."""
    position, swaps = parameter("position", [], np.int64), parameter("swaps", [], np.int64)
    values = parameter("values", [-1])
    axis = constant("axis", 0, np.int64)
    pair = ops.add(position, constant("pair_offsets", [0, 1], np.int64), name="pair")
    neighbours = ops.gather(values, pair, axis, name="neighbours")
    smaller = ops.reduce_min(neighbours, axis, keep_dims=True, name="smaller")
    larger = ops.reduce_max(neighbours, axis, keep_dims=True, name="larger")
    in_order = ops.concat([smaller, larger], 0, name="in_order")
    values_next = ops.scatter_update(values, pair, in_order, axis, name="values_next")
    left = ops.gather(values, position, axis, name="left")
    swapped = ops.not_equal(left, ops.squeeze(smaller, axis, name="new_left"), name="swapped")
    swaps_next = ops.add(swaps, ops.convert(swapped, "i64", name="swapped_count"), name="swaps_next")
    none_yet = constant("none_yet", 0, np.int64)
    body = Body(carried=[(values, order, values_next), (swaps, none_yet, swaps_next)], iteration=position)
    body.keep_going = constant("keep_going", True, np.bool_)
    body.last = [values_next, swaps_next]
    outputs = loop("pairs_of_neighbours", pairs, constant("true", True, np.bool_), body)
    for output, name in zip(outputs, ("order_next", "swaps_in_pass"), strict=True):
        output.set_names({name})
    return outputs


def bubble_sort(values: Array) -> tuple[Array, Array]:
    """The order after each pass, one row each, and how often neighbours were swapped in each."""
    order, rows, swaps = values.tolist(), [], []
    for last in range(len(order) - 1, 0, -1):
        swaps.append(0)
        for position in range(last):
            if order[position] > order[position + 1]:
                order[position : position + 2] = order[position + 1], order[position]
                swaps[-1] += 1
        rows.append(list(order))
        if not swaps[-1]:
            break
    return np.array(rows, values.dtype), np.array(swaps)


def growing_tensor() -> Sample:
    """Fibonacci: the sum of the last two numbers is appended, so the carried tensor is longer in each iteration."""
    start, count = parameter("start", [-1], np.int64), parameter("count", [], np.int64)
    sequence = parameter("sequence", [-1], np.int64)
    axis = constant("axis", 0, np.int64)
    last_two = ops.gather(sequence, constant("last_two_places", [-2, -1], np.int64), axis, name="last_two")
    number = ops.reduce_sum(last_two, axis, keep_dims=True, name="sum")
    sequence_next = ops.concat([sequence, number], 0, name="sequence_next")
    previous = ops.gather(sequence, constant("last_place", [-1], np.int64), axis, name="previous")
    numerator, denominator = (
        ops.convert(number, "f32", name="sum_f32"),
        ops.convert(previous, "f32", name="previous_f32"),
    )
    ratio = ops.divide(numerator, denominator, name="ratio")
    body = Body(carried=[(sequence, start, sequence_next)], last=[sequence_next], concatenated=[ratio])
    body.keep_going = constant("keep_going", True, np.bool_)
    numbers, ratios = loop("append", count, constant("true", True, np.bool_), body)
    values = {"start": np.array([0, 1]), "count": np.array(12)}
    formula = fibonacci(14)
    golden = (formula[2:] / formula[1:-1]).astype(np.float32)
    return Sample(
        model("growing_tensor", [start, count], {"sequence": numbers, "golden_ratio": ratios}),
        values,
        {"sequence": formula, "golden_ratio": golden},
    )


def fibonacci(count: int) -> Array:
    """The first Fibonacci numbers, from 0 on, by Binet's formula."""
    golden = (1 + 5**0.5) / 2
    return np.asarray(np.rint(golden ** np.arange(count) / 5**0.5).astype(np.int64))
