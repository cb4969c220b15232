"""TensorIterator as a whole: slices in, carried values, outputs out, against plain numpy."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from stepper.errors import ExecutionError
from tests.engine.conftest import Run
from tests.models import Entry, Graph, Value, backwards, carried, invariant, joined, last, sliced

BOTH = pytest.mark.parametrize("rules", ["spec", "openvino"])
X = np.arange(24, dtype=np.float32).reshape(2, 3, 4) - 7


def iterator(net: Graph, body: Graph, inputs: list[Entry], outputs: list[Entry]) -> Graph:
    """The net, closed with one Result for each output of the TensorIterator."""
    for index, value in enumerate(net.tensor_iterator("rows", body, inputs, outputs)):
        net.result(value, f"out{index}")
    return net


def running_sums(axis: int, part: int, cut: dict[str, int], out_cut: dict[str, int]) -> Graph:
    """total += slice; outputs: the last total, all totals joined along the sliced axis."""
    net = Graph()
    body = net.body()
    dims = [2, 3, 4]
    dims[axis] = part
    x, piece, total = net.parameter("x", dims=(2, 3, 4)), body.parameter("p", dims=dims), body.parameter("t", dims=dims)
    result = body.result(body.apply("Add", total, piece))
    inputs = [sliced(x, piece, axis, **cut), carried(net.constant(np.zeros(dims)), total, result)]
    return iterator(net, body, inputs, [last(result), joined(result, axis, **out_cut)])


@BOTH
@pytest.mark.parametrize(
    ("axis", "part", "forward", "forward_out"),
    [*product((0, 1, 2), (1,), (True, False), (True, False)), *product((0, 2), (2,), (True, False), (True, False))],
)
def test_slices_come_and_pieces_go_in_the_order_of_their_strides(
    run: Run, rules: str, axis: int, part: int, forward: bool, forward_out: bool
) -> None:
    directions = ({"stride": part}, backwards(part))
    net = running_sums(axis, part, directions[not forward], directions[not forward_out])
    pieces = np.split(X, X.shape[axis] // part, axis)
    totals = np.cumsum(pieces if forward else pieces[::-1], axis=0)
    expected = np.concatenate(list(totals if forward_out else totals[::-1]), axis)
    outputs = run(net, X, rules=rules)
    np.testing.assert_array_equal(outputs["out0"], totals[-1])
    np.testing.assert_array_equal(outputs["out1"], expected)
    assert outputs.loops[0].iterations == len(pieces) and not outputs.notes


@BOTH
def test_sliced_inputs_may_differ_in_axis_and_direction(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    a, b = net.parameter("a", dims=(3, 2)), net.parameter("b", dims=(2, 3))
    row, column = body.parameter("row", dims=(1, 2)), body.parameter("column", dims=(2, 1))
    product_ = body.result(body.apply("MatMul", row, column, dims=(1, 1), transpose_a=False, transpose_b=False))
    iterator(net, body, [sliced(a, row), sliced(b, column, 1, **backwards())], [joined(product_), joined(product_, 1)])
    first, second = np.array([[1, 2], [3, 4], [5, 6]], np.float32), np.array([[1, 0, 2], [3, 1, 0]], np.float32)
    by_row = [[1 * 2 + 2 * 0], [3 * 0 + 4 * 1], [5 * 1 + 6 * 3]]
    out0, out1 = run(net, first, second, rules=rules).values()
    assert out0.tolist() == by_row and out1.tolist() == [[value for (value,) in by_row]]


@BOTH
def test_one_input_may_feed_several_parameters_whole_and_sliced(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    x = net.parameter("x", dims=(3,))
    ahead, back, whole = (body.parameter(name, dims=dims) for name, dims in (("a", (1,)), ("b", (1,)), ("w", (3,))))
    difference = body.apply("Subtract", ahead, back)
    result = body.result(body.apply("Multiply", difference, whole, dims=(3,)))
    iterator(net, body, [sliced(x, ahead), sliced(x, back, **backwards()), invariant(x, whole)], [last(result)])
    (out,) = run(net, np.array([1, 10, 100], np.float32), rules=rules).values()
    assert out.tolist() == [99, 990, 9900]


@BOTH
def test_one_result_may_feed_two_parameters_and_four_outputs(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    x, one, two = net.parameter("x", dims=(3, 1)), net.constant([[1.0]]), net.constant([[2.0]])
    row, left, right = (body.parameter(name, dims=(1, 1)) for name in ("row", "left", "right"))
    result = body.result(body.apply("Add", body.apply("Multiply", left, right), row))
    inputs = [sliced(x, row), carried(one, left, result), carried(two, right, result)]
    iterator(net, body, inputs, [joined(result, 1), last(result), joined(result, 0, **backwards()), joined(result)])
    outputs = run(net, np.array([[1], [1], [3]], np.float32), rules=rules)
    states = [1 * 2 + 1, 3 * 3 + 1, 10 * 10 + 3]
    assert outputs["out0"].tolist() == [states]
    assert outputs["out1"].tolist() == [[103]]
    assert outputs["out2"].ravel().tolist() == states[::-1]
    assert outputs["out3"].ravel().tolist() == states


@BOTH
@pytest.mark.parametrize("first", ["last", "joined"])
def test_last_value_and_concatenation_may_come_in_either_order(run: Run, rules: str, first: str) -> None:
    net = Graph()
    body = net.body()
    x, row = net.parameter("x", dims=(2, 2)), body.parameter("row", dims=(1, 2))
    result = body.result(body.apply("Negative", row))
    entries = [last(result), joined(result)]
    iterator(net, body, [sliced(x, row)], entries if first == "last" else entries[::-1])
    values = [value.tolist() for value in run(net, [[1, 2], [3, 4]], rules=rules).values()]
    assert sorted(values, key=len) == [[[-3, -4]], [[-1, -2], [-3, -4]]]
    assert len(values[0]) == (1 if first == "last" else 2)


@BOTH
def test_pieces_may_be_joined_along_another_axis_than_the_sliced_one(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    x, plane = net.parameter("x", dims=(2, 3, 4)), body.parameter("plane", dims=(1, 3, 4))
    result = body.result(body.apply("Negative", plane))
    moved = body.apply("Transpose", plane, body.constant([1, 2, 0], np.int64), dims=(3, 4, 1))
    iterator(net, body, [sliced(x, plane)], [last(result), joined(body.result(moved), 2)])
    np.testing.assert_array_equal(run(net, X, rules=rules)["out1"], X.transpose(1, 2, 0))


@BOTH
def test_scalar_pieces_are_joined_to_a_vector(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    x, item = net.parameter("x", dims=(3,)), body.parameter("item", dims=(1,))
    scalar = body.result(body.apply("Squeeze", item, body.constant([0], np.int64), dims=()))
    iterator(net, body, [sliced(x, item)], [joined(scalar, **backwards()), joined(scalar), last(scalar)])
    values = [value.tolist() for value in run(net, np.array([4, 5, 6], np.float32), rules=rules).values()]
    assert values == [[6, 5, 4], [4, 5, 6], 6]


def without_slices(cuts: list[tuple[int, int, int]]) -> Graph:
    """state + 1 each iteration; each output is the state, repeated as often as its stride says."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(1,))
    following = body.apply("Add", state, body.constant([1.0]))
    result = body.result(following)

    def repeated(count: int) -> Value:
        return body.result(body.apply("Concat", *[following] * count, dims=(count,), axis=0))

    outputs = [joined(repeated(abs(stride)), start=start, end=end, stride=stride) for start, end, stride in cuts] or [
        last(result)
    ]
    return iterator(net, body, [carried(net.parameter("x", dims=(1,)), state, result)], outputs)


@BOTH
@pytest.mark.parametrize(
    ("cuts", "expected"),
    [
        ([], [[1]]),
        ([(0, -1, 1)], [[1]]),
        ([(0, 5, 1)], [[1, 2, 3, 4, 5]]),
        ([(0, 6, 2)], [[1, 1, 2, 2, 3, 3]]),
        ([(6, 0, -3)], [[2, 2, 2, 1, 1, 1]]),
        ([(0, 5, 1), (0, -1, 1)], [[1, 2, 3, 4, 5], [1, 2, 3, 4, 5]]),
        ([(0, 4, 2), (0, 2, 1)], [[1, 1, 2, 2], [1, 2]]),
    ],
)
def test_without_slices_it_runs_as_often_as_openvino_did(
    run: Run, rules: str, cuts: list[tuple[int, int, int]], expected: list[list[float]]
) -> None:
    assert [value.tolist() for value in run(without_slices(cuts), [0.0], rules=rules).values()] == expected


@BOTH
@pytest.mark.parametrize(
    "cuts", [[(0, -1, 1), (0, 5, 1)], [(0, 5, 1), (0, 3, 1)], [(0, 5, 2)], [(2, 5, 1)], [(0, -1, 2)]]
)
def test_without_slices_what_openvino_refused_is_refused(
    run: Run, rules: str, cuts: list[tuple[int, int, int]]
) -> None:
    with pytest.raises(ExecutionError, match=r"^model > TensorIterator 'rows': "):
        run(without_slices(cuts), [0.0], rules=rules)


@BOTH
def test_sliced_inputs_of_different_count_are_refused_with_both_counts(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    a, b = net.parameter("a", dims=(-1,)), net.parameter("b", dims=(-1,))
    p, q = body.parameter("p", dims=(1,)), body.parameter("q", dims=(1,))
    iterator(net, body, [sliced(a, p), sliced(b, q)], [last(body.result(body.apply("Add", p, q)))])
    with pytest.raises(ExecutionError, match=r"'rows': .*number of slices: input 0 gives 4, input 1 gives 3"):
        run(net, np.zeros(4, np.float32), np.zeros(3, np.float32), rules=rules)
    assert run(net, np.ones(3, np.float32), np.ones(3, np.float32), rules=rules)["out0"].tolist() == [2]


@BOTH
def test_a_slicing_that_does_not_fit_names_input_line_and_shape(run: Run, rules: str) -> None:
    net = Graph()
    body = net.body()
    x, part = net.parameter("x", dims=(-1, 2)), body.parameter("part", dims=(2, 2))
    iterator(net, body, [sliced(x, part, stride=2)], [last(body.result(part))])
    with pytest.raises(ExecutionError, match=r"input 0 \(line \d+\), shape \[5,2\]: the length 5 is not divisible"):
        run(net, np.zeros((5, 2), np.float32), rules=rules)


def test_a_parameter_of_another_type_than_what_it_gets_is_refused_by_the_specification(run: Run) -> None:
    net = Graph()
    body = net.body()
    x, item = net.parameter("x", "i32", (3,)), body.parameter("item", "f32", (1,))
    iterator(net, body, [sliced(x, item)], [last(body.result(item))])
    with pytest.raises(ExecutionError, match=r"layer 0 'item' \(Parameter\) is declared f32 and gets i32"):
        run(net, np.zeros(3, np.int32))
