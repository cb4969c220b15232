"""Loops for the grid and the timeline whose values a few lines of numpy compute as well."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from stepper.debug.debugger import Debugger
from tests.models import Graph, carried, last

SQUARED = ("square", "nothing", "kept")
"""The operations of `squaring`."""


def squaring(iterations: int) -> Debugger:
    """h is squared until it overflows: `square` is Inf first, then `nothing` (their difference) and `kept` are NaN."""
    net = Graph()
    body = net.body()
    h = body.parameter("h", "f32", (2,))
    square = body.apply("Multiply", h, h, name="square")
    nothing = body.apply("Subtract", square, square, name="nothing")
    kept = body.apply("Add", nothing, h, name="kept")
    following, end = body.result(square, "h_next"), body.result(kept, "kept_out")
    start = net.parameter("h0", "f32", (2,))
    outputs = net.loop("squares", body, iterations, True, [carried(start, h, following)], [last(end)])
    net.result(outputs[0], "out")
    return opened(net, np.array([1.5, 1.25], np.float32))


def squaring_in_numpy(iterations: int) -> list[list[str]]:
    """For each operation its letters over the iterations: N, I or nothing."""
    h = np.array([1.5, 1.25], np.float32)
    found: list[list[str]] = [[], [], []]
    with np.errstate(all="ignore"):
        for _ in range(iterations):
            square = h * h
            values = square, square - square, (square - square) + h
            for letters, value in zip(found, values, strict=True):
                letters.append("N" if np.isnan(value).any() else "I" if np.isinf(value).any() else "")
            h = square
    return found


def lengthening(iterations: int) -> Debugger:
    """`range` gives the numbers below the counter h: one more in each iteration, which nothing carries."""
    net = Graph()
    body = net.body()
    h = body.parameter("h", "i64", ())
    zero, one = body.constant(np.int64(0)), body.constant(np.int64(1))
    numbers = body.apply(
        "Range", zero, h, one, name="range", type="i64", dims=(-1,), version="opset4", output_type="i64"
    )
    axis = body.constant(np.array([0], np.int64))
    end = body.result(body.apply("ReduceSum", numbers, axis, name="total", dims=(), keep_dims="false"), "total_out")
    following = body.result(body.apply("Add", h, one, name="count"), "h_next")
    start = net.parameter("h0", "i64", ())
    net.result(net.loop("lengthens", body, iterations, True, [carried(start, h, following)], [last(end)])[0], "out")
    return opened(net, np.int64(1))


def swinging(iterations: int) -> Debugger:
    """A scalar: h becomes sin(h + 1), and c counts."""
    net = Graph()
    body = net.body()
    h, c = (body.parameter(name, "f32", (1,)) for name in ("h", "c"))
    one = body.constant([1.0], np.float32)
    h_next = body.result(body.apply("Sin", body.apply("Add", h, one, name="plus"), name="sine"), "h_next")
    c_next = body.result(body.apply("Add", c, one, name="count"), "c_next")
    outer = [net.parameter(name, "f32", (1,)) for name in ("h0", "c0")]
    entries = [carried(outer[0], h, h_next), carried(outer[1], c, c_next)]
    outputs = net.loop("swing", body, iterations, True, entries, [last(h_next), last(c_next)])
    for index, output in enumerate(outputs):
        net.result(output, f"out_{index}")
    return opened(net, np.array([-7.0], np.float32), np.zeros(1, np.float32))


def swinging_in_numpy(iterations: int) -> np.ndarray[tuple[int], np.dtype[np.float32]]:
    """What h is when each iteration begins."""
    found = np.empty(iterations, np.float32)
    h = np.float32(-7.0)
    for iteration in range(iterations):
        found[iteration] = h
        h = np.sin(h + np.float32(1.0))
    return found


def rising(iterations: int) -> Debugger:
    """h becomes h + 1 from 0 on; `above` says which of its three elements exceed 2, 4 and 6, `any` if one does."""
    net = Graph()
    body = net.body()
    h, flag = body.parameter("h", "f32", (3,)), body.parameter("flag", "boolean", ())
    more = body.apply("Add", h, body.constant(np.ones(3, np.float32)), name="more")
    limits = body.constant(np.array([2.5, 4.5, 6.5], np.float32))
    above = body.apply("Greater", more, limits, name="above", type="boolean")
    axes = body.constant(np.array([0], np.int64))
    some = body.apply("ReduceLogicalOr", above, axes, name="any", dims=(), keep_dims="false")
    both = body.apply("LogicalOr", some, flag, name="both", auto_broadcast="numpy")
    h_next, flag_next = body.result(more, "h_next"), body.result(some, "flag_next")
    end, kept = body.result(both, "both_out"), body.result(above, "above_out")
    outer = net.parameter("h0", "f32", (3,)), net.parameter("flag0", "boolean", ())
    entries = [carried(outer[0], h, h_next), carried(outer[1], flag, flag_next)]
    outputs = net.loop("rises", body, iterations, True, entries, [last(h_next), last(end), last(kept)])
    for index, output in enumerate(outputs):
        net.result(output, f"out_{index}")
    return opened(net, np.zeros(3, np.float32), np.array(False))


def opened(net: Graph, *inputs: object) -> Debugger:
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), dict(enumerate(inputs)))


def counting_in_three() -> Debugger:
    """x counts from 0: deep runs 4 times in mid, which runs twice in outer, which runs 3 times.

    After iteration k of deep, in iteration m of mid and o of outer, `n_add` is 8 o + 4 m + k + 1.
    """
    net = Graph()
    outer = net.body()
    ox = outer.parameter("ox", "f32", ())
    mid = outer.body()
    mx = mid.parameter("mx", "f32", ())
    deep = mid.body()
    nx = deep.parameter("nx", "f32", ())
    after = deep.result(deep.apply("Add", nx, deep.constant(np.float32(1), name="step"), name="n_add"), "nx_next")
    counted = mid.loop("deep", deep, 4, True, [carried(mx, nx, after)], [last(after)])
    scaled = mid.result(mid.apply("Abs", counted[0], name="m_abs"), "mx_next")
    counted = outer.loop("mid", mid, 2, True, [carried(ox, mx, scaled)], [last(scaled)])
    ended = outer.result(outer.apply("Abs", counted[0], name="o_abs"), "ox_next")
    start = net.parameter("x", "f32", ())
    net.result(net.loop("outer", outer, 3, True, [carried(start, ox, ended)], [last(ended)])[0], "out")
    return opened(net, np.float32(0))
