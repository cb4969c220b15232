"""Small models with graphs in graphs; what each computes follows from its docstring."""

from __future__ import annotations

import numpy as np

from tests.models import Graph, Side, carried, invariant, joined, last, sliced


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
