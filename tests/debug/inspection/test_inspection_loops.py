"""What a stop shows of a loop: count, condition, every entry of the port map, held against slices of plain numpy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.debug.debugger import Debugger
from stepper.debug.inspection.text import edge_lines
from stepper.debug.inspection.views import InputView, LoopView
from stepper.element_types import Array
from stepper.engine.loops import EndReason
from stepper.engine.rules import Rules
from tests.debug.debugged import SMALL_SAMPLES, at_iteration, opened, recorded, run_named, sample
from tests.models import Graph, backwards, carried, invariant, joined, last, sliced
from tests.tables import each_row


def slice_by_the_specification(whole: Array, axis: int, start: int, stride: int, iteration: int) -> Array:
    """TensorIterator-1: `start` is a boundary between elements, negative ones count from the end; each part is
    |stride| long, the next one begins where this one ends."""
    boundary = start if start >= 0 else whole.shape[axis] + 1 + start
    near, far = boundary + iteration * stride, boundary + (iteration + 1) * stride
    return np.take(whole, range(min(near, far), max(near, far)), axis)


def entry(loop: LoopView, role: str) -> InputView:
    return next(found for found in loop.inputs if found.role == role)


def windows(axis: int, **attributes: int) -> Graph:
    """The sums of the slices of x[4,6] with what came before."""
    net = Graph()
    body = net.body()
    dims = [4, 6]
    dims[axis] = attributes.get("part_size", abs(attributes.get("stride", 1)))
    part, state = body.parameter("part", dims=dims), body.parameter("state", dims=())
    scale = body.parameter("scale", dims=())
    axes = body.constant([0, 1], np.int64)
    total = body.apply("ReduceSum", part, axes, dims=(), keep_dims="false", name="total")
    added = body.apply("Add", body.apply("Multiply", total, scale, name="scaled"), state, name="added")
    result = body.result(added, "added_result")
    x = net.parameter("x", dims=(4, 6))
    inputs = [
        sliced(x, part, axis, **attributes),
        carried(net.constant(0.5), state, result),
        invariant(net.constant(2.0), scale),
    ]
    final, scan = net.tensor_iterator("windows", body, inputs, [last(result), joined(result, **_opposite(attributes))])
    net.result(final)
    net.result(scan)
    return net


def _opposite(attributes: dict[str, int]) -> dict[str, Any]:
    return {} if attributes.get("stride", 1) < 0 else {**backwards()}


X = np.arange(24, dtype=np.float32).reshape(4, 6)
CUTS = {
    "forward": (1, {}),
    "in twos": (1, {"stride": 2}),
    "from the middle": (1, {"start": 2}),
    "up to the middle": (1, {"end": 3}),
    "backward": (1, backwards()),
    "backward in threes": (1, backwards(3)),
    "backward from before the end": (1, {"start": -3, "end": 0, "stride": -1}),
    "along the first axis": (0, {}),
}


@each_row("cut", CUTS)
def test_the_slice_of_every_iteration_is_that_of_the_specification(cut: str, tmp_path: Path) -> None:
    axis, attributes = CUTS[cut]
    debugger = opened(tmp_path, windows(axis, **attributes), X)
    at_iteration(debugger, 0)
    count = debugger.view().loop.trip.maximum  # type: ignore[union-attr]
    assert count is not None
    for iteration in range(count):
        at_iteration(debugger, iteration)
        found = entry(debugger.loop(), "sliced")
        start, stride = attributes.get("start", 0), attributes.get("stride", 1)
        expected = slice_by_the_specification(X, axis, start, stride, iteration)
        assert found.inner.array is not None and np.array_equal(found.inner.array, expected)
        assert found.slice is not None
        assert np.array_equal(np.take(X, range(found.slice.begin, found.slice.end), axis), expected)
        assert (found.slice.extent, found.slice.walk.count, found.slice.axis) == (X.shape[axis], count, axis)
        assert f"iteration {iteration} got elements [{found.slice.begin}, {found.slice.end})" in found.why
        assert f"of {X.shape[axis]} along axis {axis}" in found.why and "(TensorIterator-1, port_map)" in found.why


def test_the_sentence_of_a_slice_names_start_and_stride(tmp_path: Path) -> None:
    debugger = sample("specification_lstm")
    debugger.step(18)
    assert entry(debugger.loop(), "sliced").why == (
        "iteration 3 gets elements [3, 4) of 25 along axis 1: start 0, stride 1 (TensorIterator-1, port_map)"
    )
    debugger = sample("reverse")
    at_iteration(debugger, 2)
    assert entry(debugger.loop(), "sliced").why == (
        "iteration 2 got elements [5, 6) of 8 along axis 1: "
        "start -1 is boundary 8, stride -1, which goes backward (TensorIterator-1, port_map)"
    )


def test_where_openvino_begins_elsewhere_the_sentence_says_so(tmp_path: Path) -> None:
    debugger = opened(tmp_path, windows(1, start=2), X, rules=Rules.OPENVINO)
    at_iteration(debugger, 1)
    found = entry(debugger.loop(), "sliced")
    assert found.inner.array is not None and np.array_equal(found.inner.array, X[:, 1:2])
    assert "OpenVINO only counts by start and end and walks from the beginning" in found.why


def test_a_carried_value_comes_from_outside_first_and_from_the_back_edge_later(tmp_path: Path) -> None:
    debugger = opened(tmp_path, windows(1), X)
    results = recorded(debugger, "windows", ["added"])
    for iteration in (0, 1, 3, 5):
        at_iteration(debugger, iteration)
        loop = debugger.loop()
        merged, edge = entry(loop, "merged"), loop.back_edges[0]
        came_in = 0.5 if iteration == 0 else results[iteration - 1]["added"]
        assert merged.inner.array is not None and merged.inner.array.tolist() == came_in
        assert edge.came_in is not None and edge.came_in.tolist() == came_in
        assert edge.goes_out is not None and edge.goes_out.tolist() == results[iteration]["added"]
        assert edge.change is not None
        assert edge.change == pytest.approx(abs(float(results[iteration]["added"]) - float(came_in)))
    at_iteration(debugger, 0)
    line = debugger.loop().back_edges[0].line
    assert entry(debugger.loop(), "merged").why == (
        "iteration 0 got input 1, the initial value (TensorIterator-1, port_map); "
        f"each later one gets what Result 'added_result' was before (back edge, line {line})"
    )
    at_iteration(debugger, 3)
    assert entry(debugger.loop(), "merged").why == (
        f"iteration 3 got what Result 'added_result' was in iteration 2 (back edge, line {line}); "
        "the first iteration got input 1"
    )


def test_what_comes_in_next_is_what_comes_in_next(tmp_path: Path) -> None:
    debugger = opened(tmp_path, windows(1), X)
    at_iteration(debugger, 2)
    coming = debugger.loop().back_edges[0].comes_next
    assert coming is not None
    debugger.step()
    came = debugger.loop().back_edges[0].came_in
    assert came is not None and coming.tolist() == came.tolist()
    at_iteration(debugger, 5)
    edge = debugger.loop().back_edges[0]
    assert edge.comes_next is None and edge.why.startswith("no further iteration gets")


def test_before_the_first_iteration_what_will_come_is_said(tmp_path: Path) -> None:
    debugger = opened(tmp_path, windows(1), X)
    debugger.step()
    loop = debugger.loop()
    assert loop.level.phase == "before the first iteration" and loop.trip.executed == 0
    found = entry(loop, "sliced")
    assert found.inner.array is None and found.inner.absent == "nothing yet: no iteration has begun"
    assert found.why.startswith("iteration 0 will get elements [0, 1) of 6")
    edge = loop.back_edges[0]
    assert edge.came_in is None and edge.goes_out is None
    assert edge.comes_next is not None and edge.comes_next.tolist() == 0.5


def test_an_invariant_is_the_same_in_every_iteration(tmp_path: Path) -> None:
    debugger = opened(tmp_path, windows(1), X)
    for iteration in (0, 2, 5):
        at_iteration(debugger, iteration)
        found = entry(debugger.loop(), "invariant")
        assert found.inner.array is not None and found.inner.array.tolist() == 2.0
        assert found.why == "every iteration gets all of input 2: no axis, no back edge (TensorIterator-1, port_map)"


@each_row("name", SMALL_SAMPLES)
def test_of_every_sample_loop_every_entry_has_its_value_and_a_sentence(name: str) -> None:
    debugger = sample(name)
    at_iteration(debugger, 0)
    for is_first in (True, False):
        loop = debugger.loop()
        assert loop.trip.sentence and len(loop.inputs) >= 1 and len(loop.outputs) >= 1
        for found in loop.inputs:
            assert found.inner.array is not None and found.why and found.line > 0
        for output in loop.outputs:
            assert output.inner.array is not None and output.why
            assert output.outer is None or output.outer.absent.startswith("not computed yet")
        if is_first and loop.trip.maximum != 1:
            debugger.next_iteration()


# --- Loop -----------------------------------------------------------------------------------------------------------


def test_the_iteration_number_is_named_by_its_purpose() -> None:
    debugger = sample("for_loop")
    at_iteration(debugger, 4)
    found = entry(debugger.loop(), "current iteration")
    assert found.inner.array is not None and found.inner.array.reshape(-1).tolist() == [4]
    assert found.why == 'iteration 4 got the number 4 (Loop-5, purpose="current_iteration")'


def counted(trip_count: int, keep_going: float | None, start: float = 0.0, condition: bool = True) -> Graph:
    """x counted up by 1, as long as it is below `keep_going`."""
    net = Graph()
    body = net.body()
    x = body.parameter("x")
    more = body.apply("Add", x, body.constant(1.0), name="more")
    result = body.result(more, "more_result")
    below = None
    if keep_going is not None:
        less = body.apply("Less", more, body.constant(keep_going), type="boolean", name="less")
        below = body.result(less, "below")
    outputs = [last(result), joined(result)]
    final, scan = net.loop(
        "counted", body, trip_count, condition, [carried(net.constant(start), x, result)], outputs, below
    )
    net.result(final)
    net.result(scan)
    return net


REACHED = "the trip count is reached"
ENDINGS = [
    (counted(5, None), 0, f"ends after 5 iterations, when {REACHED}"),
    (counted(5, 3), 0, f"ends after 5 iterations, when {REACHED}, or earlier when Result 'below' is false"),
    (counted(-1, 3), 0, "ends when Result 'below' is false"),
    (counted(-1, None), 0, "nothing ends it: no trip count, and no condition that may turn"),
    (counted(5, None), 4, "ended after 5 iterations: the trip count, 5, is reached"),
    (counted(5, 3), 2, "ended after 3 iterations: x' = 3, so Less(x', 3) is false in iteration 2"),
    (counted(-1, 3), 2, "ended after 3 iterations: x' = 3, so Less(x', 3) is false in iteration 2"),
]  # fmt: skip


@each_row("graph, iteration, sentence", ENDINGS)
def test_what_ends_a_loop_is_said_in_words(graph: Graph, iteration: int, sentence: str, tmp_path: Path) -> None:
    debugger = opened(tmp_path, graph)
    at_iteration(debugger, iteration)
    trip = debugger.loop().trip
    assert trip.sentence == sentence
    assert trip.executed == iteration + 1
    assert (trip.ended is None) == sentence.startswith(("ends", "nothing"))


def test_a_total_is_known_where_only_the_count_can_end_the_loop(tmp_path: Path) -> None:
    for number, (graph, total) in enumerate(((counted(5, None), 5), (counted(5, 3), None), (counted(-1, None), None))):
        folder = tmp_path / str(number)
        folder.mkdir()
        debugger = opened(folder, graph)
        at_iteration(debugger, 0)
        assert debugger.loop().trip.total == total


def test_the_condition_says_where_it_comes_from(tmp_path: Path) -> None:
    debugger = opened(tmp_path, counted(5, 2))
    debugger.step()
    condition = debugger.loop().condition
    assert condition is not None and condition.value
    assert condition.sentence == "true (input 1, Constant 'condition' = True), so iteration 0 comes"
    debugger.step()
    condition = debugger.loop().condition
    assert condition is not None and condition.upcoming is None
    debugger.step(2)
    condition = debugger.loop().condition
    assert condition is not None and condition.upcoming is True
    debugger.step()
    condition = debugger.loop().condition
    assert condition is not None
    assert condition.sentence == "true (Result 'below' of iteration 0), so iteration 1 comes"
    debugger.next_iteration()
    condition = debugger.loop().condition
    assert condition is not None and not condition.value
    assert condition.sentence == "false (Result 'below' of iteration 1), so there is no further iteration"


def test_a_loop_that_runs_no_iteration_says_why(tmp_path: Path) -> None:
    for number, (graph, reason) in enumerate(
        (
            (counted(0, None, 7.0), EndReason.NO_ITERATIONS),
            (counted(5, None, 7.0, condition=False), EndReason.INITIAL_CONDITION),
        )
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        debugger = opened(folder, graph)
        debugger.step()
        loop = debugger.loop()
        assert loop.trip.ended is reason and loop.trip.total == 0 and loop.level.count == "none"
        assert entry(loop, "merged").why == f"no iteration runs: {reason}"
        value = next(output for output in loop.outputs if output.role == "last value")
        text = "input 2, the initial value of what the back edge carries"
        assert value.why == f"no iteration runs: {reason}, so it is {text}"
        assert loop.scans[0].final_shape == (0,) and loop.scans[0].concatenated().shape == (0,)
        assert loop.back_edges[0].comes_next is None
        debugger.last()
        assert debugger.machine.outputs is not None and debugger.machine.outputs[0].tolist() == 7.0


def test_a_loop_with_fewer_slices_than_iterations_warns_before_it_fails(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    part = body.parameter("part", dims=(1,))
    result = body.result(body.apply("Negative", part))
    (scan,) = net.loop("loop", body, 5, True, [sliced(net.parameter("x", dims=(3,)), part)], [joined(result)])
    net.result(scan)
    debugger = opened(tmp_path, net, np.zeros(3, np.float32))
    at_iteration(debugger, 0)
    trip = debugger.loop().trip
    assert trip.total is None
    assert trip.sentence.endswith("an error if it gets to iteration 3, for there are only 3 slices")


# --- nesting and If -------------------------------------------------------------------------------------------------


def test_of_nested_loops_both_levels_can_be_looked_at(tmp_path: Path) -> None:
    debugger = run_named("iterator in an iterator", tmp_path)
    while (
        debugger.depth < 3 or debugger.stop.place != "model > TensorIterator 'rows' #1 > TensorIterator 'elements' #2"
    ):
        debugger.step()
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    inner, outer = debugger.loop(), debugger.loop(1)
    assert (inner.level.name, outer.level.name) == ("elements", "rows")
    row = entry(outer, "sliced").inner.array
    assert row is not None and np.array_equal(row, x[1:2])
    element = entry(inner, "sliced")
    assert element.inner.array is not None and np.array_equal(element.inner.array, x[1:2, 2:3])
    assert element.outer is not None and element.outer.array is not None and np.array_equal(element.outer.array, row)
    assert element.outer.source == "Parameter 'row'"
    scan = inner.scans[0]
    assert (scan.pieces, scan.shape, scan.final_shape) == (2, (1, 2), (1, 3))
    assert (outer.scans[0].pieces, outer.scans[0].shape, outer.scans[0].final_shape) == (1, (1, 3), (2, 3))


def collatz_side(debugger: Debugger) -> tuple[bool, str, str]:
    view = debugger.view()
    assert view.branch is not None and view.loop is not None
    return view.branch.condition.value, view.branch.side, view.branch.condition.sentence


def test_of_an_if_the_side_and_the_reason_are_shown(tmp_path: Path) -> None:
    debugger = run_named("branch in a loop", tmp_path)
    while debugger.depth < 3:
        debugger.step()
    sentence = "else_body runs, for the condition, Equal 'even', is false (If-8, input 0)"
    assert collatz_side(debugger) == (False, "else_body", sentence)
    branch = debugger.view().branch
    assert branch is not None and branch.inputs[0].inner.array is not None
    assert branch.inputs[0].inner.array.tolist() == 3 and branch.inputs[0].why == "gets all of input 1"
    assert branch.outputs[0].inner.absent == "not computed yet"
    debugger.step(2)
    branch = debugger.view().branch
    assert branch is not None and branch.outputs[0].inner.array is not None
    assert branch.outputs[0].inner.array.tolist() == 10
    debugger.step(2)
    while debugger.depth < 3:
        debugger.step()
    assert collatz_side(debugger)[:2] == (True, "then_body")
    assert debugger.view().levels[2].phase == "then_body, after 0 of 1 operations"


def test_a_difference_that_is_no_number_is_written_as_everywhere(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    state = body.parameter("state", dims=(2,))
    lost = body.result(body.apply("Sqrt", state, dims=(2,), name="root"))
    x = net.parameter("x", dims=(2,))
    net.result(net.loop("loop", body, 3, True, [carried(x, state, lost)], [last(lost)])[0])
    run = opened(tmp_path, net, np.array([-1, 4], np.float32))
    run.break_at("root")
    run.continue_()
    (edge,) = run.loop().back_edges
    assert "largest difference NaN; " in edge_lines(edge)[1]
