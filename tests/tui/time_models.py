"""Loops whose values a few lines of numpy or Python compute as well."""

from __future__ import annotations

import tempfile
from pathlib import Path

import numpy as np

from stepper.debug.debugger import Debugger
from tests.debug.debugged import SAMPLES
from tests.models import Graph, carried, last


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


def sorting() -> list[list[list[float]]]:
    """What bubble sort does to the order of the sample: pass by pass, pair by pair."""
    values = [5.0, 1.0, 4.0, 2.0, 8.0]
    course = []
    for done in range(3):
        steps = []
        for left in range(4 - done):
            values[left : left + 2] = sorted(values[left : left + 2])
            steps.append(list(values))
        course.append(steps)
    return course


def collatz() -> list[int]:
    """The numbers after the start until 1, as many as the loop of the sample made."""
    number = int(np.load(SAMPLES / "while_loop" / "inputs.npz")["start"].item())
    course = []
    while number != 1:
        number = 3 * number + 1 if number % 2 else number // 2
        course.append(number)
    return course
