"""Where the specification and OpenVINO part: what each rule book gives, and that a run says so, once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.engine.run import Outputs
from stepper.errors import StepperError, UsageError
from tests.engine.conftest import Run
from tests.engine.nested_models import multiplication_table, rows_of_rows
from tests.models import Graph, Value, backwards, carried, invariant, joined, last, sliced

BOTH = pytest.mark.parametrize("rules", ["spec", "openvino"])
X = np.array([1, 2, 3, 4, 5, 6], np.float32)


def noted(outputs: Outputs, part: str) -> int:
    """How many notes speak of it; that none comes twice, and each has a place."""
    notes = outputs.notes
    assert len(set(notes)) == len(notes) and all(note.place for note in notes)
    return sum(part in note.text for note in notes)


def iterated(attributes: dict[str, int], seed: str = "TensorIterator", count: int = 0, part: int = 1) -> Graph:
    """The sums of each slice of x[?]."""
    net = Graph()
    x, body = net.parameter("x", dims=(-1,)), net.body()
    piece = body.parameter("piece", dims=(part,))
    total = body.apply("ReduceSum", piece, body.constant([0]), dims=(1,), keep_dims="true")
    entries = [sliced(x, piece, **attributes)], [joined(body.result(total))]
    values = net.loop("l", body, count, True, *entries) if seed == "Loop" else net.tensor_iterator("l", body, *entries)
    net.result(values[0])
    return net


@pytest.mark.parametrize(
    ("attributes", "spec", "openvino"),
    [
        ({"start": 2}, [3, 4, 5, 6], [1, 2, 3, 4]),
        ({"start": 1, "end": 4}, [2, 3, 4], [1, 2, 3]),
        ({"start": -3}, [5, 6], [1, 2]),
        ({"start": 2, "stride": 2}, [7, 11], [3, 7]),
        ({"start": -3, "end": 0, "stride": -1}, [4, 3, 2, 1], [6, 5, 4, 3]),
        ({"start": 4, "end": 2, "stride": -1}, [4, 3], [6, 5]),
    ],
)
def test_the_first_slice_begins_at_start_or_at_the_edge(
    run: Run, attributes: dict[str, int], spec: list[float], openvino: list[float]
) -> None:
    part = abs(attributes.get("stride", 1))
    for rules, expected in (("spec", spec), ("openvino", openvino)):
        outputs = run(iterated(attributes, part=part), X, rules=rules)
        assert outputs["result"].tolist() == expected
        assert noted(outputs, f"has start {attributes['start']}: the specification begins there") == 1


@BOTH
@pytest.mark.parametrize(
    "attributes", [{}, {"end": 4}, {"end": -3}, backwards(), {"start": -1, "end": 2, "stride": -1}]
)
def test_a_slicing_from_the_edge_is_the_same_in_both_books(run: Run, rules: str, attributes: dict[str, int]) -> None:
    outputs = run(iterated(attributes), X, rules=rules)
    assert not outputs.notes
    forward = attributes.get("stride", 1) > 0
    edge = X.tolist() if forward else X.tolist()[::-1]
    assert outputs["result"].tolist() == edge[: len(outputs["result"])]


@pytest.mark.parametrize("attributes", [{"end": 3}, {"start": 2}])
def test_in_openvino_a_loop_looks_at_neither_start_nor_end(run: Run, attributes: dict[str, int]) -> None:
    outputs = run(iterated(attributes, "Loop", 6), X, rules="openvino")
    assert outputs["result"].tolist() == X.tolist() and len(outputs.notes) == 1
    with pytest.raises(StepperError, match="has no slice"):
        run(iterated(attributes, "Loop", 6), X)
    few = run(iterated(attributes, "Loop", 3), X)
    assert few["result"].tolist() == X[attributes.get("start", 0) :].tolist()[:3] and len(few.notes) == 1


def test_a_negative_axis_of_an_input_is_counted_from_the_end_or_refused(run: Run) -> None:
    outputs = run(iterated({"axis": -1}), X)
    assert outputs["result"].tolist() == X.tolist()
    assert noted(outputs, "has axis -1, which OpenVINO refuses") == 1
    with pytest.raises(StepperError, match=r"axis -1 of a sliced input is negative, which OpenVINO refuses"):
        run(iterated({"axis": -1}), X, rules="openvino")


@pytest.mark.parametrize("seed", ["TensorIterator", "Loop"])
def test_a_negative_axis_of_an_output_is_counted_from_the_end_or_refused(run: Run, seed: str) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(3, 2)), net.body()
    row = body.parameter("row", dims=(1, 2))
    entries = [sliced(x, row)], [joined(body.result(row), -2)]
    values = net.loop("l", body, 3, True, *entries) if seed == "Loop" else net.tensor_iterator("l", body, *entries)
    net.result(values[0])
    outputs = run(net, X.reshape(3, 2))
    assert outputs["result"].tolist() == X.reshape(3, 2).tolist()
    assert noted(outputs, "has axis -2, which OpenVINO refuses") == 1
    with pytest.raises(StepperError, match=r"has axis -2, which OpenVINO refuses"):
        run(net, X.reshape(3, 2), rules="openvino")


def test_a_part_size_that_is_not_the_stride_is_refused_or_ignored(run: Run) -> None:
    net = iterated({"stride": 2, "part_size": 1}, part=2)
    with pytest.raises(StepperError, match="part_size is 1, but the stride is 2: they must agree"):
        run(net, X)
    outputs = run(net, X, rules="openvino")
    assert outputs["result"].tolist() == [3, 7, 11]
    assert noted(outputs, "part_size is 1, but the stride is 2") == 1


def halving(trip_count: int, scan: bool) -> Graph:
    """state /= 2 while it is above 1."""
    net = Graph()
    x, body = net.parameter("x", dims=(1,)), net.body()
    state = body.parameter("state", dims=(1,))
    half = body.apply("Multiply", state, body.constant([0.5]))
    result = body.result(half)
    above = body.result(body.apply("Greater", half, body.constant([1.0]), type="boolean"))
    outputs = [last(result), *([joined(result)] if scan else [])]
    for index, value in enumerate(net.loop("l", body, trip_count, True, [carried(x, state, result)], outputs, above)):
        net.result(value, f"out{index}")
    return net


@pytest.mark.parametrize("scan", [True, False])
def test_a_trip_count_below_minus_1_is_unlimited_but_openvino_cannot_reserve_scans(run: Run, scan: bool) -> None:
    outputs = run(halving(-5, scan), [8.0])
    assert outputs["out0"].tolist() == [1]
    assert noted(outputs, "the trip count is -5: as any negative one it means unlimited") == 1
    assert noted(outputs, "OpenVINO refuses it") == scan
    if scan:
        with pytest.raises(StepperError, match="the trip count is -5, which OpenVINO refuses"):
            run(halving(-5, scan), [8.0], rules="openvino")
    else:
        assert run(halving(-5, scan), [8.0], rules="openvino")["out0"].tolist() == [1]


@BOTH
def test_a_trip_count_of_minus_1_is_unlimited_and_needs_no_note(run: Run, rules: str) -> None:
    outputs = run(halving(-1, True), [8.0], rules=rules)
    assert outputs["out1"].tolist() == [4, 2, 1] and not outputs.notes


def growing(seed: str, *, given_out: bool) -> Graph:
    """A tensor one longer each iteration, declared as if it stayed one long."""
    net = Graph()
    x, body = net.parameter("x", dims=(1,)), net.body()
    tensor, unused = body.parameter("tensor", dims=(1,)), body.parameter("unused", dims=(1,))
    longer = body.apply("Concat", tensor, body.constant([7.0]), dims=(2,), axis=0)
    total = body.result(body.apply("ReduceSum", longer, body.constant([0]), dims=(1,), keep_dims="true"))
    result = body.result(longer)
    inputs = [carried(x, tensor, result)]
    outputs = [joined(total), *([last(result)] if given_out else [])]
    if seed == "Loop":
        values = net.loop("l", body, 3, True, [*inputs, invariant(x, unused)], outputs)
    else:
        values = net.tensor_iterator("l", body, [sliced(net.constant([0.0] * 3), unused), *inputs], outputs)
    for index, value in enumerate(values):
        net.result(value, f"out{index}")
    return net


@pytest.mark.parametrize(("seed", "given_out"), [("Loop", False), ("TensorIterator", False), ("TensorIterator", True)])
def test_a_growing_tensor_that_no_loop_gives_out_is_allowed_or_refused(run: Run, seed: str, given_out: bool) -> None:
    outputs = run(growing(seed, given_out=given_out), [1.0])
    assert outputs["out0"].tolist() == [8, 15, 22]
    assert noted(outputs, "changes its shape from [3] to [4]") == 1
    with pytest.raises(
        StepperError, match=r"changes its shape from \[1\] to \[2\] and is not a last-value output of a Loop"
    ):
        run(growing(seed, given_out=given_out), [1.0], rules="openvino")


@BOTH
def test_a_growing_tensor_that_a_loop_gives_out_is_the_same_in_both_books(run: Run, rules: str) -> None:
    outputs = run(growing("Loop", given_out=True), [1.0], rules=rules)
    assert outputs["out1"].tolist() == [1, 7, 7, 7] and not outputs.notes


def test_a_tensor_iterator_in_a_tensor_iterator_is_allowed_or_refused(run: Run) -> None:
    outputs = run(rows_of_rows(), X.reshape(2, 3))
    assert outputs["sums"].tolist() == [[1, 3, 6], [4, 9, 15]]
    assert noted(outputs, "has a TensorIterator in its body") == 1
    with pytest.raises(StepperError, match=r"has a TensorIterator in its body .*, which OpenVINO refuses"):
        run(rows_of_rows(), X.reshape(2, 3), rules="openvino")


def test_an_empty_axis_gives_a_tensor_iterator_no_iteration_or_is_refused(run: Run) -> None:
    outputs = run(iterated({}), X[:0])
    assert outputs["result"].shape == (0,) and noted(outputs, "no elements, which OpenVINO refuses") == 1
    with pytest.raises(StepperError, match=r"shape \[0\]: "):
        run(iterated({}), X[:0], rules="openvino")


def never(condition: bool | Value, dims: tuple[int, ...], net: Graph, scan: bool = False, count: int = 3) -> Graph:
    x, body = net.parameter("x", dims=dims), net.body()
    state = body.parameter("state", dims=dims)
    result = body.result(body.apply("Negative", state))
    outputs = [last(result), *([joined(result)] if scan else [])]
    for value in net.loop("l", body, count, condition, [carried(x, state, result)], outputs):
        net.result(value)
    return net


@pytest.mark.parametrize("count", [3, 0, -1])
def test_a_condition_that_is_a_false_constant_empties_last_values_in_openvino(run: Run, count: int) -> None:
    """OpenVINO 2026.4: [0,3] of a state [2,3] whatever the trip count; a scalar or concatenated output is refused."""
    x = np.ones((2, 3), np.float32)
    outputs = run(never(False, (2, 3), Graph(), count=count), x)
    assert outputs["result"].tolist() == x.tolist()
    assert noted(outputs, "the condition is a Constant that is false") == 1
    assert run(never(False, (2, 3), Graph(), count=count), x, rules="openvino")["result"].shape == (0, 3)
    for graph in (never(False, (), Graph(), count=count), never(False, (2, 3), Graph(), scan=True, count=count)):
        value = np.ones((2, 3), np.float32) if "<dim>3" in graph.text("net") else np.float32(1)
        with pytest.raises(StepperError, match="its condition is a Constant that is false, and OpenVINO then refuses"):
            run(graph, value, rules="openvino")


@BOTH
def test_a_condition_that_is_false_only_at_run_time_is_the_same_in_both_books(run: Run, rules: str) -> None:
    net = Graph()
    go = net.parameter("go", "boolean")
    outputs = run(never(go, (2, 3), net), np.bool_(False), np.ones((2, 3), np.float32), rules=rules)
    assert outputs["result"].tolist() == np.ones((2, 3)).tolist() and not outputs.notes


def test_a_piece_longer_than_the_stride_is_joined_or_refused(run: Run) -> None:
    net = Graph()
    x, body = net.parameter("x", dims=(2,)), net.body()
    inside = body.parameter("inside", dims=(2,))
    net.result(
        net.loop("l", body, 2, True, [invariant(x, inside)], [joined(body.result(body.apply("Abs", inside)))])[0]
    )
    outputs = run(net, X[:2])
    assert outputs["result"].tolist() == [1, 2, 1, 2]
    assert noted(outputs, "a piece is 2 long along axis 0, OpenVINO expects the stride, 1") == 1
    with pytest.raises(StepperError, match="a piece is 2 long along axis 0, OpenVINO expects the stride, 1"):
        run(net, X[:2], rules="openvino")


@BOTH
def test_a_note_of_an_inner_loop_comes_once_however_often_that_loop_runs(run: Run, rules: str) -> None:
    net = Graph()
    outer = net.body()
    x, inside = net.parameter("x"), outer.parameter("inside")
    inner = outer.body()
    state = inner.parameter("state")
    result, fresh = inner.result(state), inner.result(inner.apply("Negative", state))
    never_run = outer.constant(0, np.int64)
    inputs = [carried(inside, state, result)]
    value, _fresh = outer.loop("inner", inner, never_run, True, inputs, [last(result), last(fresh)])
    net.result(net.loop("outer", outer, 20, True, [invariant(x, inside)], [last(outer.result(value))])[0])
    outputs = run(net, np.float32(1), rules=rules)
    assert [note.place for note in outputs.notes] == ["model > Loop 'outer' > Loop 'inner'"]


@BOTH
def test_a_model_without_differences_has_no_notes(run: Run, rules: str) -> None:
    assert not run(multiplication_table(), np.int64(2), np.int64(2), rules=rules).notes


@pytest.mark.parametrize("rules", ["specification", "", "SPEC"])
def test_another_rule_book_does_not_exist(tmp_path: Path, rules: Any) -> None:
    with pytest.raises(UsageError, match=f"there is no rule book '{rules}'; choose spec or openvino"):
        stepper.run(multiplication_table().read(tmp_path), {}, rules=rules)
