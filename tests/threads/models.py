"""Small models of what went wrong in the threads; each function writes a folder of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tests.models import Graph, Side, Value, backwards, carried, invariant, joined, last, sliced

F = np.float32


def written(net: Graph, folder: Path, name: str = "", **inputs: Any) -> Path:
    """Write a model, and the inputs beside it; the path of the model."""
    place = folder / name
    place.mkdir(exist_ok=True)
    path = net.write(place)
    if inputs:
        np.savez(place / "inputs.npz", **inputs)
    return path


def damaged(path: Path, *changes: tuple[str, str]) -> None:
    """Change the text of a model, in the last place of each."""
    text = path.read_text(encoding="utf-8")
    for right, wrong in changes:
        assert right in text, right
        head, _, tail = text.rpartition(right)
        text = head + wrong + tail
    path.write_text(text, encoding="utf-8")


def counting(
    trips: int | str = 10,
    limit: float = 5.0,
    start: float = 0.0,
    compare: str = "Less",
    begins: bool = True,
    *,
    is_late: bool = False,
) -> Graph:
    """A Loop that adds 1 to a state while it is below a limit; the states are given out.

    `is_late`: the limit is compared with the state from before.
    """
    net = Graph()
    count = net.parameter("trips", "i64", ()) if isinstance(trips, str) else trips
    body = net.body()
    state = body.parameter("state", dims=(1,))
    more = body.apply("Add", state, body.constant([1.0]), name="more")
    going = body.apply(
        compare, state if is_late else more, body.constant([limit], name="limit"), type="boolean", name="below_limit"
    )
    out = body.result(more, "next_state")
    final, states = net.loop(
        "until_limit", body, count, begins, [carried(net.constant([start]), state, out)],
        [last(out), joined(body.result(more))], body.result(going, "going"),
    )  # fmt: skip
    net.result(final, "final")
    net.result(states, "states")
    return net


def summing(count: int = 4, *, resets: bool = False) -> Graph:
    """x[count,2] row by row: hidden = tanh(row + hidden); `resets`: the state is not carried."""
    net = Graph()
    x, body = net.parameter("x", dims=(count, 2)), net.body()
    row, hidden = body.parameter("row", dims=(1, 2)), body.parameter("hidden", dims=(1, 2))
    mixed = body.apply("Add", row, hidden, name="mixed")
    new = body.apply("Tanh", mixed, name="hidden_next")
    out, start = body.result(new, "hidden_out"), net.constant([[0.5, 0.5]], name="hidden_start")
    state = invariant(start, hidden) if resets else carried(start, hidden, out)
    (all_states,) = net.tensor_iterator("recurrent", body, [sliced(x, row), state], [joined(body.result(new))])
    net.result(all_states, "states")
    return net


ROWS = np.array([[1, 2], [3, 4], [5, 6], [7, 8]], F) / 10


def unrolled_once() -> Graph:
    """One step of `summing(1)` without a loop, whose output is the state from before: what the pass lost."""
    net = Graph()
    x = net.parameter("x", dims=(1, 2))
    start = net.constant([[0.5, 0.5]], name="hidden_start")
    net.result(net.apply("Add", start, net.apply("Multiply", x, net.constant([[0.0, 0.0]])), name="kept"), "states")
    return net


def one_step() -> Graph:
    """`summing` as an application calls it for each row: the state goes in and comes out."""
    net = Graph()
    x, state = net.parameter("x", dims=(1, 2)), net.parameter("hidden", dims=(1, 2))
    states, final = _recurrent(net, x, state)
    net.result(states, "states")
    net.result(final, "hidden_next")
    return net


def one_step_with_a_variable() -> Graph:
    """The same after a pass that has put the state into a variable and left the loop as it was: with its constant."""
    net = Graph()
    x, start = net.parameter("x", dims=(1, 2)), net.constant([[0.5, 0.5]], name="hidden_start")
    net.apply("ReadValue", start, version="opset3", variable_id="hidden", name="hidden_read")
    states, final = _recurrent(net, x, start)
    net.result(states, "states")
    net.apply("Assign", final, version="opset3", variable_id="hidden", name="hidden_assign")
    return net


def _recurrent(net: Graph, x: Value, start: Value) -> list[Value]:
    body = net.body()
    row, hidden = body.parameter("row", dims=(1, 2)), body.parameter("hidden", dims=(1, 2))
    new = body.apply("Tanh", body.apply("Add", row, hidden, name="mixed"), name="hidden_next")
    out = body.result(new, "hidden_out")
    entries = [sliced(x, row), carried(start, hidden, out)]
    return net.tensor_iterator("recurrent", body, entries, [joined(body.result(new)), last(out)])


def growing(*, exposed: bool = False) -> Graph:
    """A state to which a piece is joined in each iteration."""
    net = Graph()
    body = net.body()
    piece = net.constant([[1.0, 2.0]])
    state, added = body.parameter("cache", dims=(-1, 2)), body.parameter("piece", dims=(1, 2))
    longer = body.apply("Concat", state, added, dims=(-1, 2), name="longer", axis=0)
    out = body.result(longer, "cache_next")
    total = body.apply("ReduceSum", longer, body.constant([0, 1], np.int64), dims=(), name="total")
    entries = [carried(net.constant([[0.0, 0.0]]), state, out), invariant(piece, added)]
    outputs = [last(body.result(total)), *([last(out)] if exposed else [])]
    for value in net.loop("decode", body, 5, True, entries, outputs):
        net.result(value)
    return net


def endless_growth() -> Graph:
    """The same with a condition that looks at a size that does not grow."""
    net = Graph()
    body = net.body()
    state = body.parameter("cache", dims=(-1, 2))
    frozen = body.parameter("frozen", "i64", (1,))
    longer = body.apply("Concat", state, body.constant([[1.0, 2.0]]), dims=(-1, 2), name="longer", axis=0)
    going = body.apply("Less", frozen, body.constant([8], np.int64), type="boolean", name="still_short")
    out = body.result(longer, "cache_next")
    entries = [carried(net.constant([[0.0, 0.0]]), state, out), invariant(net.constant([1], np.int64), frozen)]
    (final,) = net.loop("decode", body, -1, True, entries, [last(out)], body.result(going, "going"))
    net.result(final, "tokens")
    return net


def cutting(part_size: int = 2) -> Graph:
    """x[2,6] in pieces of 2 along axis 1; the body is declared for pieces of another size."""
    net = Graph()
    x, body = net.parameter("x", dims=(2, 6)), net.body()
    part = body.parameter("part", dims=(2, part_size))
    axis = body.constant([1], np.int64)
    out = body.result(body.apply("ReduceSum", part, axis, dims=(2, 1), name="total", keep_dims="true"))
    (found,) = net.tensor_iterator("pieces", body, [sliced(x, part, 1, stride=2)], [joined(out, 1)])
    net.result(found, "y")
    return net


def numbered() -> Graph:
    """A body whose first Parameter is the iteration number."""
    net = Graph()
    body = net.body()
    number = body.parameter("i", "i64", ())
    piece = body.apply("Unsqueeze", number, body.constant([0], np.int64), dims=(1,), name="piece")
    (found,) = net.loop("count", body, 3, True, [], [joined(body.result(piece))], None, number)
    net.result(found, "numbers")
    return net


def masked(*, nested: bool = False) -> Graph:
    """Attention of a row on itself behind a mask of -Inf, and a division by a sum that is 0 in iteration 2."""
    net = Graph()
    x, body = net.parameter("x", dims=(4, 2)), net.body()
    row = body.parameter("row", dims=(1, 2))
    mask = body.constant([[0.0, -np.inf]], name="mask")
    inner = body.body() if nested else body
    seen = inner.parameter("seen", dims=(1, 2)) if nested else row
    weights = inner.apply("Softmax", inner.apply("Add", seen, _in(inner, mask, nested), name="scores"), axis=1)
    total = inner.apply("ReduceSum", seen, inner.constant([1], np.int64), name="total", dims=(1, 1), keep_dims="true")
    share = inner.apply("Divide", seen, total, name="share")
    mixed = inner.apply("Add", share, weights, name="mixed")
    if nested:
        (value,) = body.loop("inner_scan", inner, 1, True, [invariant(row, seen)], [last(inner.result(mixed))])
    else:
        value = mixed
    (found,) = net.tensor_iterator("outer_scan", body, [sliced(x, row)], [joined(body.result(value))])
    net.result(found, "y")
    return net


def _in(graph: Graph, mask: Value, nested: bool) -> Value:
    return graph.constant([[0.0, -np.inf]], name="inner_mask") if nested else mask


MASKED = np.array([[1, 2], [3, 4], [1, -1], [2, 2]], F)


def dangling() -> Graph:
    """A recurrence whose state has lost its entry in the port map, its input and its back edge."""
    net = Graph()
    x, body = net.parameter("x", dims=(4, 2)), net.body()
    row, hidden = body.parameter("row", dims=(1, 2)), body.parameter("hidden", dims=(1, 2))
    new = body.apply("Tanh", body.apply("Add", row, hidden, name="mixed"), name="hidden_next")
    (found,) = net.tensor_iterator("recurrent", body, [sliced(x, row)], [joined(body.result(new))])
    net.result(found, "states")
    return net


def backward_pieces(*, is_backward: bool) -> Graph:
    """Pieces of a running sum; `is_backward`: they are joined from the end."""
    net = Graph()
    x, body = net.parameter("x", dims=(4, 1)), net.body()
    row, state = body.parameter("row", dims=(1, 1)), body.parameter("sum", dims=(1, 1))
    added = body.apply("Add", row, state, name="added")
    out = body.result(added, "sum_next")
    cut = backwards() if is_backward else {}
    (found,) = net.tensor_iterator(
        "running", body, [sliced(x, row), carried(net.constant([[0.0]]), state, out)],
        [joined(body.result(added), **cut)],
    )  # fmt: skip
    net.result(found, "sums")
    return net


def lagging(*, is_late: bool) -> Graph:
    """Pieces of a running sum; `is_late`: piece k is the sum before row k."""
    net = Graph()
    x, body = net.parameter("x", dims=(4, 1)), net.body()
    row, state = body.parameter("row", dims=(1, 1)), body.parameter("sum", dims=(1, 1))
    added = body.apply("Add", row, state, name="added")
    out = body.result(added, "sum_next")
    piece = body.apply("Multiply", state if is_late else added, body.constant([[2.0]]), name="piece")
    (found,) = net.tensor_iterator(
        "running", body, [sliced(x, row), carried(net.constant([[1.0]]), state, out)], [joined(body.result(piece))]
    )
    net.result(found, "sums")
    return net


SUMMED = np.array([[3], [1], [4], [1.5]], F)


def repeated_pieces() -> Graph:
    """The iteration numbers, joined, of which each piece is the last one."""
    net = Graph()
    body = net.body()
    number = body.parameter("i", "i64", (1,))
    shown = body.apply("Add", number, body.constant([0], np.int64), name="shown")
    piece = body.apply("Maximum", shown, body.constant([3], np.int64), name="shown_late")
    (found,) = net.loop("count", body, 4, True, [], [joined(body.result(piece))], None, number)
    net.result(found, "numbers")
    return net


def choosing() -> Graph:
    """An If in the body of a Loop, whose sides take the state."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(1,))
    is_low = body.apply("Less", state, body.constant([3.0]), type="boolean", name="is_low")

    def side(apply: str, amount: float) -> Side:
        graph = body.body()
        inner = graph.parameter("value", dims=(1,))
        return Side(graph, [(state, inner)], [graph.result(graph.apply(apply, inner, graph.constant([amount])))])

    (value,) = body.branch("low_or_high", is_low, side("Add", 1.0), side("Multiply", 2.0))
    out = body.result(value, "next_state")
    (final,) = net.loop("steps", body, 6, True, [carried(net.constant([0.0]), state, out)], [last(out)])
    net.result(final, "final")
    return net


def flipping() -> Graph:
    """x -> 1 - x until it is 2: it never is."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(1,))
    other = body.apply("Subtract", body.constant([1.0]), state, name="other")
    going = body.apply("NotEqual", other, body.constant([2.0]), type="boolean", name="is_not_two")
    out = body.result(other, "next_state")
    start = carried(net.constant([0.0]), state, out)
    (final,) = net.loop("until_two", body, -1, True, [start], [last(out)], body.result(going, "going"))
    net.result(final, "final")
    return net


def whole_number_condition() -> Graph:
    """A condition that is an i64, as an exporter wrote it."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", "i64", (1,))
    less = body.apply("Subtract", state, body.constant([1], np.int64), name="less")
    out = body.result(less, "next_state")
    (final,) = net.loop("while", body, 9, True, [carried(net.constant([5], np.int64), state, out)], [last(out)], out)
    net.result(final, "final")
    return net


def wide_condition(dims: tuple[int, ...]) -> Graph:
    """A condition of this shape."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=dims)
    more = body.apply("Add", state, body.constant(np.ones(dims, F)), name="more")
    going = body.apply("Less", more, body.constant(np.full(dims, 5, F)), type="boolean", name="all_below")
    out = body.result(more, "next_state")
    start = carried(net.constant(np.zeros(dims, F)), state, out)
    (final,) = net.loop("Loop.0", body, 9, True, [start], [last(out)], body.result(going, "going"))
    net.result(final, "final")
    return net


def rank_changing() -> Graph:
    """A state that begins with shape {} and is handed over with {1}."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=())
    more = body.apply("Add", state, body.constant([1.0]), dims=(1,), name="more")
    out = body.result(more, "next_state")
    (final,) = net.loop("Loop.0", body, 4, True, [carried(net.constant(0.0), state, out)], [last(out)])
    net.result(final, "final")
    return net


def unread_input() -> Graph:
    """A recurrence whose body takes the slices of x and reads them nowhere."""
    net = Graph()
    x, body = net.parameter("x", dims=(4, 2)), net.body()
    row, hidden = body.parameter("row", dims=(1, 2)), body.parameter("hidden", dims=(1, 2))
    new = body.apply("Tanh", body.apply("Add", hidden, body.constant([[0.1, 0.2]])), name="hidden_next")
    out = body.result(new, "hidden_out")
    state = carried(net.constant([[0.5, 0.5]]), hidden, out)
    (found,) = net.tensor_iterator("lstm", body, [sliced(x, row), state], [joined(body.result(new))])
    net.result(found, "y")
    return net


def squares() -> Graph:
    """The length of each row of x[4,3]."""
    net = Graph()
    x, body = net.parameter("x", dims=(4, 2)), net.body()
    row = body.parameter("row", dims=(1, 2))
    square = body.apply("Multiply", row, row, name="squares")
    total = body.apply("ReduceSum", square, body.constant([1], np.int64), dims=(1, 1), name="total", keep_dims="true")
    root = body.apply("Sqrt", total, name="length")
    (found,) = net.tensor_iterator("rows", body, [sliced(x, row)], [joined(body.result(root))])
    net.result(found, "lengths")
    return net
