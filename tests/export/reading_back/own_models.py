"""Loops that are drawn in ways of their own, each with inputs: models that figures are read back from."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from tests.models import Graph, Side, backwards, carried, invariant, joined, last, sliced

Made = tuple[dict[str, np.ndarray], list[np.ndarray]]
"""Inputs by name, and the outputs that formulas give."""
Maker = Callable[[Path], Made]


def shared_constant(folder: Path) -> Made:
    """Two loops and an operation read one Constant."""
    net = Graph()
    x = net.parameter("x", "f32", (4, 2))
    start = net.constant(np.array([[1, 2]], np.float32), name="start")
    outputs = []
    for name in ("forward", "backward"):
        body = net.body()
        row, sum = body.parameter("row", "f32", (1, 2)), body.parameter("sum", "f32", (1, 2))
        result = body.result(body.apply("Add", row, sum, name="next_sum"), "next_sum_result")
        way = {} if name == "forward" else backwards()
        entries = [sliced(x, row, 0, **way), carried(start, sum, result)]
        outputs += net.tensor_iterator(name, body, entries, [last(result), joined(result, 0, **way)])
    for index, value in enumerate(outputs):
        net.result(value, f"out_{index}")
    net.result(net.apply("Abs", start, name="size_of_start"), "sizes")
    net.write(folder)
    rows, start = np.arange(8, dtype=np.float32).reshape(4, 2) / 3, np.array([[1, 2]], np.float32)
    sums = start + np.cumsum(rows, axis=0, dtype=np.float32)
    backward = start + np.cumsum(rows[::-1], axis=0, dtype=np.float32)[::-1]
    return {"x": rows}, [sums[-1:], sums, backward[:1], backward, start]


def parts_of_two(folder: Path) -> Made:
    """Slices of two rows from a place of their own; one Result is two outputs, one of them joined backward."""
    net = Graph()
    x, h = net.parameter("x", "f32", (10, 3)), net.parameter("h", "f32", (2, 3))
    body = net.body()
    part, state = body.parameter("part", "f32", (2, 3)), body.parameter("state", "f32", (2, 3))
    result = body.result(body.apply("Subtract", part, state, name="difference"), "difference_result")
    cut = {"start": 2, "end": 8, "stride": 2, "part_size": 2}
    back = {"start": -1, "end": 0, "stride": -2, "part_size": 2}
    entries = [sliced(x, part, 0, **cut), carried(h, state, result)]
    outputs = net.tensor_iterator("pairs", body, entries, [joined(result, 0, **back), last(result)])
    for name, value in zip(("backward", "final"), outputs, strict=True):
        net.result(value, name)
    net.write(folder)
    rows, state = np.arange(30, dtype=np.float32).reshape(10, 3), np.ones((2, 3), np.float32)
    made = [state]
    for begin in (2, 4, 6):
        made.append(rows[begin : begin + 2] - made[-1])
    return {"x": rows, "h": state}, [np.concatenate(made[:0:-1]), made[-1]]


def unmarked_number(folder: Path) -> Made:
    """The one Parameter that nothing feeds gets the iteration number; the condition ends the loop before its limit."""
    net = Graph()
    x = net.parameter("x", "f32", (2,))
    body = net.body()
    number, state = body.parameter("number", "i64", ()), body.parameter("state", "f32", (2,))
    real = body.apply("Convert", number, type="f32", dims=(), destination_type="f32", name="real")
    result = body.result(body.apply("Add", state, real, name="grown"), "grown_result")
    small = body.apply("Less", number, body.constant(np.int64(3)), type="boolean", dims=(), name="is_small")
    keep = body.result(small, "keep_result")
    outputs = net.loop("numbers", body, 20, True, [carried(x, state, result)], [last(result)], keep)
    net.result(outputs[0], "sum")
    net.write(folder)
    return {"x": np.array([0.5, -2], np.float32)}, [np.array([6.5, 4], np.float32)]


def faults_inside(folder: Path) -> Made:
    """A value overflows, then is no number; a branch runs one side, then the other; an inner loop runs in each."""
    net = Graph()
    x, n = net.parameter("x", "f32", (3,)), net.parameter("n", "i64", ())
    body = net.body()
    state, limit = body.parameter("state", "f32", (3,)), body.parameter("limit", "i64", ())
    number = body.parameter("number", "i64", ())
    huge = body.apply("Multiply", state, body.constant(np.float32(1e20)), name="huge")
    odd = body.apply("FloorMod", number, body.constant(np.int64(2)), type="i64", dims=(), name="odd")
    is_odd = body.apply("Equal", odd, body.constant(np.int64(1)), type="boolean", dims=(), name="is_odd")
    sides = []
    for operation in ("Subtract", "Add"):
        inside = body.body()
        a = inside.parameter("a", "f32", (3,))
        sides.append(Side(inside, [(huge, a)], [inside.result(inside.apply(operation, a, a, name="twice"), "side")]))
    chosen = body.branch("choose", is_odd, *sides)[0]
    inner = body.body()
    value = inner.parameter("value", "f32", (3,))
    halved = inner.result(inner.apply("Multiply", value, inner.constant(np.float32(0.5)), name="halved"), "half")
    shrunk = body.loop("shrink", inner, number, True, [carried(chosen, value, halved)], [last(halved)])[0]
    result = body.result(shrunk, "state_result")
    keep = body.result(body.apply("Less", number, limit, type="boolean", dims=(), name="below"), "keep_result")
    entries = [carried(x, state, result), invariant(n, limit)]
    outputs = net.loop("outer", body, 8, True, entries, [last(result)], keep, number)
    net.result(outputs[0], "end")
    net.write(folder)
    inputs = {"x": np.array([1, -1, 0], np.float32), "n": np.array(4, np.int64)}
    return inputs, [np.array([np.nan, np.nan, 0], np.float32)]


def never(folder: Path) -> Made:
    """The initial condition is false: the outputs are what was carried in, and nothing."""
    net = Graph()
    x, go = net.parameter("x", "f32", (1, 2)), net.parameter("go", "boolean", ())
    body = net.body()
    state = body.parameter("state", "f32", (1, 2))
    result = body.result(body.apply("Relu", state, name="positive"), "positive_result")
    starts = net.apply("LogicalNot", go, name="starts")
    outputs = net.loop("idle", body, 5, starts, [carried(x, state, result)], [last(result), joined(result, 0)])
    for name, value in zip(("final", "all"), outputs, strict=True):
        net.result(value, name)
    net.write(folder)
    x_value = np.array([[1, -1]], np.float32)
    return {"x": x_value, "go": np.array(True)}, [x_value, np.zeros((0, 2), np.float32)]


def swap(folder: Path) -> Made:
    """Two values change places in each iteration; their Results read the Parameters themselves."""
    net = Graph()
    a, b = net.parameter("a", "f32", (2,)), net.parameter("b", "f32", (2,))
    body = net.body()
    first, second = body.parameter("first", "f32", (2,)), body.parameter("second", "f32", (2,))
    to_second, to_first = body.result(first, "was_first"), body.result(second, "was_second")
    entries = [carried(a, first, to_first), carried(b, second, to_second)]
    for name, value in zip(
        "xy", net.loop("swap", body, 3, True, entries, [last(to_first), last(to_second)]), strict=True
    ):
        net.result(value, name)
    net.write(folder)
    one, other = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
    return {"a": one, "b": other}, [other, one]


MAKERS: dict[str, Maker] = {
    maker.__name__: maker for maker in (shared_constant, parts_of_two, unmarked_number, faults_inside, never, swap)
}
