"""Models whose runs have something to tell: where NaN begins, loops that fail, never begin or end, other shapes."""

from __future__ import annotations

import numpy as np

from stepper.debug.debugger import Debugger
from tests.models import Graph, Side, carried, joined, last, sliced
from tests.tui.time_models import opened


def fading() -> Debugger:
    """root is sqrt((k - 2.5) * (k - 3.5)), NaN in iteration 3 alone; stays is sqrt(2.5 - k), NaN from 3 on."""
    net = Graph()
    body = net.body()
    k = body.parameter("k", "f32", ())

    def number(value: float) -> object:
        return body.constant(np.float32(value))

    below, above = (body.apply("Subtract", k, number(one), dims=()) for one in (2.5, 3.5))
    root = body.apply("Sqrt", body.apply("Multiply", below, above, dims=()), name="root", dims=())
    stays = body.apply("Sqrt", body.apply("Subtract", number(2.5), k, dims=()), name="stays", dims=())
    total = body.apply("Add", root, stays, name="total", dims=())
    row = body.apply("Unsqueeze", total, body.constant([0], np.int64), name="row", dims=(1,))
    after = body.result(body.apply("Add", k, number(1), name="k_next", dims=()), "k_out")
    inputs, outputs = [carried(net.parameter("k0", "f32", ()), k, after)], [joined(body.result(row, "row_out"))]
    net.result(net.loop("fades", body, 9, True, inputs, outputs)[0], "rows")
    return opened(net, np.float32(0))


def without_loops() -> Debugger:
    """out is log(exp(x) - 100), of 1, 200 and 2: NaN, Inf, NaN; the Inf is born in the Exp, the NaN in the Log."""
    net = Graph()
    x = net.parameter("x", dims=(3,))
    minus = net.apply("Subtract", net.apply("Exp", x, name="exp"), net.constant(np.float32([100] * 3)), name="minus")
    net.result(net.apply("Log", minus, name="log"), "out")
    return opened(net, np.float32([1, 200, 2]))


def gathering(value: float) -> Debugger:
    """Iteration k adds element k of a table, whose element 2 is not finite in the file, to h."""
    net = Graph()
    body = net.body()
    h, k = body.parameter("h", dims=(1,)), body.parameter("k", "i64", (1,))
    table, axis = body.constant(np.float32([1, 2, value, 4])), body.constant(np.int64(0))
    picked = body.apply("Gather", table, k, axis, name="picked", dims=(1,))
    added = body.apply("Multiply", body.apply("Add", h, picked, name="added"), body.constant([2.0]), name="twice")
    after = body.result(added, "h_next")
    up = body.result(body.apply("Add", k, body.constant([1], np.int64), name="up", type="i64"), "k_next")
    inputs = [carried(net.parameter("h0", dims=(1,)), h, after), carried(net.constant(np.int64([0])), k, up)]
    net.result(net.loop("sums", body, 4, True, inputs, [last(after)])[0], "end")
    return opened(net, np.zeros(1, np.float32))


def looping(count: int, condition: list[bool]) -> Debugger:
    """Each iteration joins x to a list that begins as [9]; the body's condition has the elements that are given."""
    net = Graph()
    body = net.body()
    x, held = body.parameter("x", dims=(1,)), body.parameter("held", dims=(-1,))
    up = body.apply("Add", x, body.constant([1.0]), name="up")
    longer = body.apply("Concat", held, up, name="longer", dims=(-1,), axis=0)
    after, list_after = body.result(up, "x_next"), body.result(longer, "list_next")
    inputs = [
        carried(net.parameter("x0", dims=(1,)), x, after),
        carried(net.constant(np.float32([9])), held, list_after),
    ]
    verdict = np.array(condition if len(condition) > 1 else condition[0])
    goes_on = body.result(body.constant(verdict, np.bool_, "verdict"), "verdict_result")
    outputs = [last(after), last(list_after)]
    for place, output in enumerate(net.loop("ups", body, count, True, inputs, outputs, goes_on)):
        net.result(output, f"end_{place}")
    return opened(net, np.zeros(1, np.float32))


def refusing() -> Debugger:
    """A loop over slices that begin at 9 of six."""
    net = Graph()
    body = net.body()
    x, part = body.parameter("x", dims=(1,)), body.parameter("part", dims=(1,))
    out = body.result(body.apply("Add", x, part, name="up"), "x_next")
    slices = sliced(net.parameter("parts", dims=(-1,)), part, start=9, end=-1)
    (end,) = net.tensor_iterator("ups", body, [carried(net.parameter("x0", dims=(1,)), x, out), slices], [last(out)])
    net.result(end, "end")
    return opened(net, np.zeros(6, np.float32), np.zeros(1, np.float32))


def lengthening_twice() -> Debugger:
    """An inner loop joins three numbers at once to a list, which the outer one carries."""
    net = Graph()
    body = net.body()
    held, inner = body.parameter("held", dims=(-1,)), body.body()
    part = inner.parameter("held", dims=(-1,))
    more = inner.constant(np.float32([1, 2, 3]))
    known = inner.apply("Relu", part, name="known", dims=(-1,))
    longer = inner.apply("Concat", known, more, name="longer", dims=(-1,), axis=0)
    out = inner.result(longer, "list_next")
    (given,) = body.loop("inner", inner, 2, True, [carried(held, part, out)], [last(out)])
    handed = body.result(given, "held_next")
    (end,) = net.loop("outer", body, 2, True, [carried(net.parameter("x", dims=(-1,)), held, handed)], [last(handed)])
    net.result(end, "end")
    return opened(net, np.zeros(2, np.float32))


def emptying() -> Debugger:
    """x is 2.5 - k - [0, 1, 2] after iteration k; `places` are those above 0: 3, 2, 1, 0 and 0 of them."""
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(3,))
    following = body.apply("Add", x, body.constant([-1.0]), name="following")
    positive = body.apply("Greater", following, body.constant([0.0]), type="boolean", name="positive")
    attributes = {"type": "i64", "dims": (1, -1), "output_type": "i64"}
    places = body.apply("NonZero", positive, name="places", version="opset3", **attributes)
    out, found = body.result(following, "x_next"), body.result(places, "places_out")
    outputs = [last(out), last(found)]
    for number, end in enumerate(
        net.loop("looks", body, 5, True, [carried(net.parameter("x0", dims=(3,)), x, out)], outputs)
    ):
        net.result(end, f"end_{number}")
    return opened(net, np.array([3.5, 2.5, 1.5], np.float32))


def choosing(count: int) -> Debugger:
    """Ifs one after another: if the sum of x is above 6 twice it, else one more; four times 1 goes 1, 2, 4, 8, ..."""
    net = Graph()
    value = net.parameter("x", dims=(1, 4))
    for number in range(count):
        total = net.apply(
            "ReduceSum", value, net.constant([0, 1], np.int64), name=f"sum_{number}", keep_dims="false", dims=()
        )
        above = net.apply(
            "Greater", total, net.constant(np.float32(6)), type="boolean", dims=(), name=f"above_{number}"
        )
        then, other = net.body(), net.body()
        a, b = then.parameter("a", dims=(1, 4)), other.parameter("b", dims=(1, 4))
        doubled = then.result(then.apply("Multiply", a, then.constant([[2.0]]), name="double"), "doubled")
        added = other.result(other.apply("Add", b, other.constant([[1.0]]), name="plus"), "added")
        sides = Side(then, [(value, a)], [doubled]), Side(other, [(value, b)], [added])
        (value,) = net.branch(f"choose_{number}", above, *sides)
    net.result(value, "y")
    return opened(net, np.ones((1, 4), np.float32))


def failing_loop() -> Debugger:
    """A Loop that fails in iteration 1, in the middle of the body: what is tiled twice no longer has the shape."""
    net = Graph()
    body = net.body()
    h, i = body.parameter("h", "f32", (2,)), body.parameter("i", "i64", (1,))
    one = body.constant(np.array([1], np.int64))
    wide = body.apply("Tile", h, body.apply("Add", i, one), name="tiled", dims=(-1,))
    two = body.constant(np.array([2], np.int64))
    cut = body.apply("Reshape", wide, two, name="cut", dims=(2,), special_zero="false")
    following = body.result(cut, "h_out")
    counted = body.result(body.apply("Add", i, one, name="count"), "i_out")
    outer_h, outer_i = net.parameter("h0", "f32", (2,)), net.parameter("i0", "i64", (1,))
    entries = [carried(outer_h, h, following), carried(outer_i, i, counted)]
    net.result(net.loop("walk", body, 5, True, entries, [last(following)])[0], "out")
    return opened(net, np.ones(2, np.float32), np.array([0], np.int64))


def never(dims: tuple[int, ...], kind: str) -> Debugger:
    """A trip count of 0, a carried value, its last value and all of them."""
    number = np.int64 if kind == "i64" else np.float32
    net = Graph()
    body = net.body()
    x = body.parameter("x", kind, dims)
    out = body.result(body.apply("Add", x, body.constant(np.ones(dims, number)), name="up"), "x_next")
    start = net.parameter("x0", kind, dims)
    outputs = net.loop("never", body, 0, True, [carried(start, x, out)], [last(out), joined(out)])
    for name, output in zip("ab", outputs, strict=True):
        net.result(output, name)
    return opened(net, np.ones(dims, number))
