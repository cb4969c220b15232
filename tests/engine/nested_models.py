"""Small models with graphs in graphs; what each computes follows from its docstring."""

from __future__ import annotations

import numpy as np

from tests.models import Graph, Side, Value, carried, invariant, joined, last, sliced


def multiplication_table() -> Graph:
    """table[a, b] = a * b for a < rows, b < columns: a Loop in a Loop."""
    net = Graph()
    rows, columns = net.parameter("rows", "i64"), net.parameter("columns", "i64")
    outer = net.body()
    a, width = outer.parameter("a", "i64", (1,)), outer.parameter("width", "i64")
    inner = outer.body()
    b, factor = inner.parameter("b", "i64", (1,)), inner.parameter("factor", "i64", (1,))
    product = inner.result(inner.apply("Multiply", factor, b, name="product"))
    (row,) = outer.loop("columns", inner, width, True, [invariant(a, factor)], [joined(product)], iteration=b)
    shaped = outer.apply("Unsqueeze", row, outer.constant([0], np.int64), dims=(1, -1), name="row")
    result = outer.result(shaped)
    (table,) = net.loop("rows", outer, rows, True, [invariant(columns, width)], [joined(result)], iteration=a)
    net.result(table, "table")
    return net


def rows_of_rows() -> Graph:
    """The running sums of each row of x[?,?]: a TensorIterator in a TensorIterator."""
    net = Graph()
    x = net.parameter("x", dims=(-1, -1))
    outer = net.body()
    row = outer.parameter("row", dims=(1, -1))
    inner = outer.body()
    item, total = inner.parameter("item", dims=(1, 1)), inner.parameter("total", dims=(1, 1))
    result = inner.result(inner.apply("Add", total, item, name="sum"))
    zero = outer.constant([[0.0]])
    inputs = [sliced(row, item, 1), carried(zero, total, result)]
    (sums,) = outer.tensor_iterator("elements", inner, inputs, [joined(result, 1)])
    (all_sums,) = net.tensor_iterator("rows", outer, [sliced(x, row)], [joined(outer.result(sums))])
    net.result(all_sums, "sums")
    return net


def alternating() -> Graph:
    """The Collatz sequence after `start`, down to 1: an If in a Loop."""
    net = Graph()
    start = net.parameter("start", "i64")
    body = net.body()
    number = body.parameter("number", "i64")
    two, zero, one = (body.constant(value, np.int64) for value in (2, 0, 1))
    even = body.apply("Equal", body.apply("FloorMod", number, two), zero, type="boolean", name="even")
    halved, tripled = body.body(), body.body()
    n = halved.parameter("n", "i64")
    half = halved.result(halved.apply("Divide", n, halved.constant(2, np.int64), name="half"))
    m = tripled.parameter("m", "i64")
    triple = tripled.apply("Multiply", m, tripled.constant(3, np.int64), name="triple")
    upwards = tripled.result(tripled.apply("Add", triple, tripled.constant(1, np.int64), name="upwards"))
    (following,) = body.branch(
        "next", even, Side(halved, [(number, n)], [half]), Side(tripled, [(number, m)], [upwards])
    )
    result = body.result(following)
    keep_going = body.result(body.apply("NotEqual", following, one, type="boolean", name="not_one"))
    (numbers,) = net.loop("until_one", body, -1, True, [carried(start, number, result)], [joined(result)], keep_going)
    net.result(numbers, "numbers")
    return net


def loop_in_branch() -> Graph:
    """x doubled five times where `many` is true, else -x."""
    net = Graph()
    many, x = net.parameter("many", "boolean"), net.parameter("x")
    then, otherwise = net.body(), net.body()
    inside = then.parameter("inside")
    body = then.body()
    state = body.parameter("state")
    doubled = body.result(body.apply("Add", state, state, name="doubled"))
    (out,) = then.loop("doubling", body, 5, True, [carried(inside, state, doubled)], [last(doubled)])
    other = otherwise.parameter("other")
    negative = otherwise.result(otherwise.apply("Negative", other))
    side = Side(then, [(x, inside)], [then.result(out)])
    net.result(net.branch("choice", many, side, Side(otherwise, [(x, other)], [negative]))[0])
    return net


def loops_in_branches() -> Graph:
    """Where `many` is true: in each of `n` rounds x is doubled three times (even rounds) or twice (odd ones); else -x.

    A Loop in an If in a Loop in an If; the two innermost loops have the same id, each in its branch.
    """
    net = Graph()
    many, n, x = net.parameter("many", "boolean"), net.parameter("n", "i64"), net.parameter("x")
    then, otherwise = net.body(), net.body()
    rounds, start = then.parameter("rounds", "i64"), then.parameter("start")
    body = then.body()
    number, state = body.parameter("number", "i64", (1,)), body.parameter("state")
    two, zero = body.constant([2], np.int64), body.constant([0], np.int64)
    even = body.apply("Equal", body.apply("FloorMod", number, two), zero, type="boolean", dims=(1,), name="even")
    sides = [_doubled(body, state, times, f"{times} times") for times in (3, 2)]
    result = body.result(body.branch("round", even, *sides)[0])
    carry = carried(start, state, result)
    (out,) = then.loop("rounds", body, rounds, True, [carry], [last(result)], iteration=number)
    other = otherwise.parameter("other")
    negative = otherwise.result(otherwise.apply("Negative", other))
    first = Side(then, [(n, rounds), (x, start)], [then.result(out)])
    net.result(net.branch("choice", many, first, Side(otherwise, [(x, other)], [negative]))[0])
    return net


def _doubled(around: Graph, value: Value, times: int, name: str) -> Side:
    side = around.body()
    inside = side.parameter("inside")
    body = side.body()
    state = body.parameter("state")
    doubled = body.result(body.apply("Add", state, state, name="doubled"))
    (out,) = side.loop(name, body, times, True, [carried(inside, state, doubled)], [last(doubled)])
    return Side(side, [(value, inside)], [side.result(out)])
