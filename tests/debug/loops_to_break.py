"""Small loops in which something happens at an iteration that is known, for the tests of breakpoints."""

from __future__ import annotations

import numpy as np

from tests.models import Graph, Side, Value, carried, invariant, joined, last, sliced


def walk(count: int = 8) -> Graph:
    """x[count] in a Loop: `total` carried, `sum` = total + item, `double` = 2 * sum; a scan output."""
    net = Graph()
    x, body = net.parameter("x", dims=(count,)), net.body()
    item, total = body.parameter("item", dims=(1,)), body.parameter("total", dims=(1,))
    added = body.apply("Add", total, item, name="sum")
    double = body.apply("Multiply", added, body.constant([2.0]), name="double")
    out, scan = body.result(added, "next_total"), body.result(double, "piece")
    inputs = [sliced(x, item), carried(net.constant([0.0]), total, out)]
    final, pieces = net.loop("walk", body, count, True, inputs, [last(out), joined(scan)])
    net.result(net.apply("Abs", final, name="after"), "final")
    net.result(pieces, "pieces")
    return net


def recurrence(apply: str, constant: float, trips: int = -1, start: float = 1.0) -> Graph:
    """One carried value to which an operation with a constant is applied, in a Loop of so many trips."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(1,))
    following = body.apply(apply, state, body.constant([constant]), name="following")
    out = body.result(following, "next_state")
    (final,) = net.loop("loop", body, trips, True, [carried(net.constant([start]), state, out)], [last(out)])
    net.result(final, "final")
    return net


def modular(factor: int, modulus: int, start: int, trips: int = -1) -> Graph:
    """state -> state * factor mod modulus, in integers: a sequence with a period."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", "i64", (1,))
    product = body.apply("Multiply", state, body.constant([factor], np.int64), name="product")
    out = body.result(body.apply("FloorMod", product, body.constant([modulus], np.int64), name="rest"), "next_state")
    initial = net.constant([start], np.int64)
    (final,) = net.loop("loop", body, trips, True, [carried(initial, state, out)], [last(out)])
    net.result(final, "final")
    return net


def countdown() -> Graph:
    """`number` minus one while it is above 0: ends by its condition, or is never entered."""
    net = Graph()
    number, body = net.parameter("number", "i64", (1,)), net.body()
    state = body.parameter("state", "i64", (1,))
    less = body.apply("Subtract", state, body.constant([1], np.int64), name="less")
    out = body.result(less, "next_state")
    going = body.result(body.apply("Greater", less, body.constant([0], np.int64), type="boolean", name="going"))
    enters = net.apply("Greater", number, net.constant([0], np.int64), type="boolean", name="enters")
    (final,) = net.loop("countdown", body, 100, enters, [carried(number, state, out)], [last(out)], going)
    net.result(final, "final")
    return net


def division(count: int = 6) -> Graph:
    """Each item of x and y divided (`ratio`), the ratio added to 1 (`more`), and made clean again (`clean`)."""
    net = Graph()
    x, y = net.parameter("x", dims=(count, 2)), net.parameter("y", dims=(count, 2))
    body = net.body()
    a, b = body.parameter("a", dims=(1, 2)), body.parameter("b", dims=(1, 2))
    whole = body.apply("Add", a, body.constant([[0.0]]), name="whole")
    ratio = body.apply("Divide", whole, b, name="ratio")
    more = body.apply("Add", ratio, body.constant([[1.0]]), name="more")
    clean = body.apply("Less", more, body.constant([[0.0]]), type="boolean", name="clean")
    out = body.result(clean)
    (scan,) = net.tensor_iterator("divide", body, [sliced(x, a), sliced(y, b)], [joined(out)])
    net.result(scan, "scan")
    return net


def growing(limit: int = 4, trips: int = 7) -> Graph:
    """A carried tensor one longer in each iteration but the last ones, which cut it off at `limit`."""
    net = Graph()
    x, body = net.parameter("x", dims=(-1,)), net.body()
    tensor = body.parameter("tensor", dims=(-1,))
    longer = body.apply("Concat", tensor, body.constant([1.0]), dims=(-1,), axis=0, name="longer")
    begin, end, step = (body.constant([value], np.int64) for value in (0, limit, 1))
    cut = body.apply("Slice", longer, begin, end, step, dims=(-1,), version="opset8", name="cut")
    out = body.result(body.apply("Negative", cut, dims=(-1,), name="negative"))
    (final,) = net.loop("growing", body, trips, True, [carried(x, tensor, out)], [last(out)])
    net.result(final, "final")
    return net


def nested(rows: int = 3, columns: int = 4) -> Graph:
    """A Loop in a Loop: total = total + a * b over all a < rows and b < columns; `row_total` is what a row adds."""
    net = Graph()
    outer = net.body()
    a, total = outer.parameter("a", "i64", (1,)), outer.parameter("total", "i64", (1,))
    inner = outer.body()
    b, factor = inner.parameter("b", "i64", (1,)), inner.parameter("factor", "i64", (1,))
    part = inner.parameter("part", "i64", (1,))
    product = inner.apply("Multiply", factor, b, name="product")
    summed = inner.result(inner.apply("Add", part, product, name="part_sum"), "next_part")
    zero = outer.constant([0], np.int64)
    entries = [invariant(a, factor), carried(zero, part, summed)]
    (row,) = outer.loop("columns", inner, columns, True, entries, [last(summed)], iteration=b)
    result = outer.result(outer.apply("Add", total, row, name="row_total"), "next_total")
    start = net.constant([0], np.int64)
    (final,) = net.loop("rows", outer, rows, True, [carried(start, total, result)], [last(result)], iteration=a)
    net.result(final, "final")
    return net


def choosing(trips: int = 6) -> Graph:
    """An If in a Loop: even iterations halve (`half`), odd ones triple (`triple`) the carried value."""
    net = Graph()
    body = net.body()
    number, step = body.parameter("number"), body.parameter("step", "i64", (1,))
    rest = body.apply("FloorMod", step, body.constant([2], np.int64), name="rest")
    even = body.apply("Equal", rest, body.constant([0], np.int64), type="boolean", name="even")
    (following,) = body.branch("choice", even, _side(body, number, "half", 0.5), _side(body, number, "triple", 3.0))
    out = body.result(following, "next_number")
    start = net.constant(8.0)
    (final,) = net.loop("loop", body, trips, True, [carried(start, number, out)], [last(out)], iteration=step)
    net.result(final, "final")
    return net


def _side(body: Graph, number: Value, name: str, factor: float) -> Side:
    side = body.body()
    inside = side.parameter(f"{name}_in")
    return Side(
        side, [(number, inside)], [side.result(side.apply("Multiply", inside, side.constant(factor), name=name))]
    )


def clock(*, is_carried: bool) -> Graph:
    """A Loop without trip count that goes on while t + 0.25 < 0.9; n counts its iterations."""
    net = Graph()
    outer = [net.parameter(name, dims=()) for name in ("t0", "n0")]
    body = net.body()
    t, n = (body.parameter(name, dims=()) for name in ("t", "n"))
    t_next = body.apply("Add", t, body.constant(0.25), name="t_next")
    t_out = body.result(t_next, "t_out")
    n_out = body.result(body.apply("Add", n, body.constant(1.0)), "n_out")
    goes_on = body.apply("Less", t_next, body.constant(0.9), name="not_done")
    entry = carried(outer[0], t, t_out) if is_carried else invariant(outer[0], t)
    entries, keep_going = [entry, carried(outer[1], n, n_out)], body.result(goes_on, "goes_on")
    (last_n,) = net.loop("clock", body, -1, True, entries, [last(n_out)], keep_going=keep_going)
    net.result(last_n, "y")
    return net
