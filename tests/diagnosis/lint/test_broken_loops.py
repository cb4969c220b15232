"""Rules that the examples do not try in full, on small loops: what breaks one is named, its sound twin says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stepper.diagnosis.findings import Severity
from stepper.diagnosis.lint.linting import lint
from stepper.diagnosis.texts import sentence
from tests.models import Graph, carried, invariant, joined, last, sliced


def named(net: Graph, folder: Path, rule: str) -> list[str]:
    """The sentences of this rule; of others there is nothing but notes."""
    return [sentence(one) for one in lint(net.write(folder)) if one.rule == rule]


def summing(lost: bool, dims: Sequence[int], steps: int = 5) -> Graph:
    """total += row, of open or known shape; the back edge is there or was lost."""
    net = Graph()
    rows, start, body = net.parameter("rows", dims=(steps, *dims[1:])), net.parameter("start", dims=dims), net.body()
    row, total = body.parameter("row", dims=(1, *dims[1:])), body.parameter("total", dims=dims)
    summed = body.result(body.apply("Add", total, row, name="summed"), "summed_result")
    state = invariant(start, total) if lost else carried(start, total, summed)
    scan = body.result(body.apply("Tanh", total))
    outputs = [joined(scan)] if lost else [joined(scan), last(summed)]
    for out in net.tensor_iterator("loop", body, [sliced(rows, row), state], outputs):
        net.result(out)
    return net


@pytest.mark.parametrize("dims", [(1, 4), (1, -1), (-1, -1)], ids=str)
def test_a_back_edge_that_was_lost_is_named_whatever_of_the_shape_is_open(
    dims: tuple[int, ...], tmp_path: Path
) -> None:
    (said,) = named(summing(True, dims), tmp_path, "result-without-use")
    assert "'summed_result'" in said and "'total'" in said
    assert not named(summing(False, dims), tmp_path, "result-without-use")


def masked_cell(crossed: bool) -> Graph:
    """An LSTM cell that holds its states behind the length of the sequence; its two states may be crossed."""
    net, size = Graph(), 4
    xs, h0, c0 = net.parameter("xs", dims=(5, 1, size)), *(net.parameter(one, dims=(1, size)) for one in "hc")
    body = net.body()
    x, h, c = body.parameter("x", dims=(1, 1, size)), *(body.parameter(f"{one}_in", dims=(1, size)) for one in "hc")
    alive = body.parameter("alive", "boolean", (1, 1))
    weights = [body.constant(np.full((4 * size, size), 0.1, np.float32)) for _ in range(2)]
    squeezed = body.apply("Squeeze", x, body.constant([0], np.int64), dims=(1, size))
    bias = body.constant(np.zeros(4 * size, np.float32))
    hidden = body.apply(
        "LSTMCell", squeezed, h, c, *weights, bias, version="opset4", name="cell", outputs=2, hidden_size=size
    )
    cell = replace(hidden, port=hidden.port + 1)
    held_h = body.result(body.apply("Select", alive, hidden, h, dims=(1, size)), "new_h")
    held_c = body.result(body.apply("Select", alive, cell, c, dims=(1, size)), "new_c")
    to_h, to_c = (held_c, held_h) if crossed else (held_h, held_c)
    entries = [sliced(xs, x), carried(h0, h, to_h), carried(c0, c, to_c)]
    entries.append(invariant(net.parameter("mask", "boolean", (1, 1)), alive))
    for out in net.tensor_iterator("loop", body, entries, [last(held_h), last(held_c)]):
        net.result(out)
    return net


def test_states_of_a_cell_that_are_crossed_behind_a_mask_are_named(tmp_path: Path) -> None:
    said = named(masked_cell(True), tmp_path, "cell-states-crossed")
    assert len(said) == 2 and all("'cell'" in one for one in said)
    assert not named(masked_cell(False), tmp_path, "cell-states-crossed")


@pytest.mark.parametrize("zero", [True, False])
@pytest.mark.parametrize("behind", ["", "Reshape", "Transpose"])
def test_a_product_with_a_matrix_of_zeros_is_named(behind: str, zero: bool, tmp_path: Path) -> None:
    net = Graph()
    rows, body = net.parameter("rows", dims=(5, 4)), net.body()
    row = body.parameter("row", dims=(1, 4))
    matrix = body.constant(np.zeros((4, 4), np.float32) if zero else np.eye(4, dtype=np.float32), name="weights")
    if behind:
        order = body.constant([4, 4] if behind == "Reshape" else [1, 0], np.int64)
        matrix = body.apply(behind, matrix, order)
    scan = body.result(body.apply("MatMul", row, matrix, name="product", dims=(1, 4)))
    net.result(net.tensor_iterator("loop", body, [sliced(rows, row)], [joined(scan)])[0])
    said = named(net, tmp_path, "multiplied-by-zero")
    assert [("'product'" in one, "'weights'" in one) for one in said] == [(True, True)] * zero


X = np.zeros((2, 3, 4), np.float32)
SHAPES = [
    ("Transpose", "opset1", [[0, 2, 1]], [[0, 1, 2]], {}, np.transpose(X, (0, 2, 1)).shape),
    ("ReduceSum", "opset1", [[1]], [[2]], {"keep_dims": "true"}, X.sum(1, keepdims=True).shape),
    ("Unsqueeze", "opset1", [[0]], [[1]], {}, np.expand_dims(X, 0).shape),
    ("Reshape", "opset1", [[2, 12]], [[6, -1]], {"special_zero": "false"}, X.reshape(2, 12).shape),
    ("Gather", "opset8", [[0, 1], [1]], [[0, 1], [2]], {"batch_dims": 0}, X.take([0, 1], 1).shape),
    ("Slice", "opset8", [[1], [3], [1], [2]], [[0], [3], [1], [2]], {}, X[:, :, 1:3].shape),
]


def shaped(
    type: str, version: str, constants: list[list[int]], attributes: dict[str, object], dims: Sequence[int]
) -> Graph:
    """One operation in a body, with these Constants and declared dims."""
    net = Graph()
    xs, body = net.parameter("xs", dims=(5, *X.shape[1:])), net.body()
    x = body.parameter("x", dims=(1, *X.shape[1:]))
    pair = body.apply("Concat", x, x, dims=X.shape, axis=0)
    made = body.apply(
        type, pair, *(body.constant(one, np.int64) for one in constants),
        version=version, name="shaping", dims=dims, **attributes,
    )  # fmt: skip
    flat = body.apply("Reshape", made, body.constant([1, -1], np.int64), dims=(1, -1), special_zero="false")
    net.result(net.tensor_iterator("loop", body, [sliced(xs, x)], [joined(body.result(flat))])[0])
    return net


@pytest.mark.parametrize(
    ("type", "version", "right", "wrong", "attributes", "dims"), SHAPES, ids=[one[0] for one in SHAPES]
)
def test_an_operation_of_another_shape_than_declared_is_named(
    type: str, version: str, right: list[list[int]], wrong: list[list[int]], attributes: dict[str, object],
    dims: tuple[int, ...], tmp_path: Path,
) -> None:  # fmt: skip
    """What comes out is numpy's shape."""
    assert lint(shaped(type, version, right, attributes, dims).write(tmp_path)) == ()
    (said,) = named(shaped(type, version, wrong, attributes, dims), tmp_path, "operation-shape")
    assert "'shaping'" in said and str(list(dims)).replace(" ", "") in said
    beyond = [[9 for _ in one] for one in right]
    (said,) = named(shaped(type, version, beyond, attributes, dims), tmp_path, "operation-cannot-run")
    assert "'shaping'" in said
    open_dims = shaped(type, version, right, attributes, [-1] * len(dims))
    assert not [one for one in lint(open_dims.write(tmp_path)) if one.rule.startswith("operation-")]


def halving(trips: int, condition: bool | None) -> Graph:
    """x /= 2 until it is small, at most so often; or a condition that is a constant."""
    net = Graph()
    body = net.body()
    x = body.parameter("x", dims=(1,))
    half = body.apply("Multiply", x, body.constant([0.5]), name="half")
    if condition is None:
        going = body.apply("Greater", half, body.constant([0.01]), type="boolean", name="large")
    else:
        going = body.constant([condition], np.bool_, name="always")
    out = body.result(half)
    entries = [carried(net.constant([1.0]), x, out)]
    net.result(net.loop("halving", body, trips, True, entries, [last(out)], body.result(going, "going"))[0])
    return net


@pytest.mark.parametrize("trips", [-1, 2**63 - 1])
def test_a_trip_count_that_stands_for_no_limit(trips: int, tmp_path: Path) -> None:
    """ONNX writes the largest number; with a condition that is always true nothing ends the loop."""
    (said,) = named(halving(trips, True), tmp_path, "loop-never-ends")
    assert "Result 'going'" in said
    assert [
        len(named(halving(trips, None), tmp_path, rule)) for rule in ("loop-never-ends", "trip-count-without-limit")
    ] == [0, trips > 0]


@pytest.mark.parametrize(("first", "severity"), [(0.0, Severity.NOTE), ([1.0, 2.0], Severity.ERROR), ([0.0], None)])
def test_a_state_whose_rank_changes_is_a_note_where_it_is_one_element(
    first: object, severity: Severity | None, tmp_path: Path
) -> None:
    """The state becomes [1], or [1,2]."""
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=np.shape(first))
    one = np.ones((1, 2) if np.size(first) == 2 else (1,), np.float32)
    out = body.result(body.apply("Add", state, body.constant(one), dims=one.shape))
    entries = [carried(net.constant(first), state, out)]
    net.result(net.loop("loop", body, 4, True, entries, [last(out)])[0])
    found = [one.severity for one in lint(net.write(tmp_path)) if one.rule == "carried-rank"]
    assert found == ([] if severity is None else [severity])
