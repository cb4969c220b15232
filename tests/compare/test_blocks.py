"""Blocks of iterations that our run makes ahead of a comparison: how many, of what, and that it can go back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.compare.walk import BlockRun, finite_iterations
from stepper.engine.frames import EventKind, Every
from stepper.engine.machine import Machine
from tests.engine.nested_models import alternating, loops_in_branches
from tests.models import Graph, Side, Value, carried, invariant, joined, last


def at_its_loop(graph: Graph, folder: Path, *values: object, limit: int | None = None) -> Machine:
    """A machine that has just entered its only loop."""
    model = graph.read(folder)
    inputs = stepper.bind_inputs(model, dict(enumerate(values)))
    machine = Machine(stepper.compile_model(model), inputs, max_iterations=limit)
    assert machine.advance(Every.LOOP).kind is EventKind.ENTERED
    return machine


def adding(iterations: int, size: int) -> Graph:
    """A state of so many numbers to which 1 is added in each iteration."""
    graph = Graph()
    start, body = graph.parameter("start", "f32", (size,)), graph.body()
    state = body.parameter("state", "f32", (size,))
    result = body.result(body.apply("Add", state, body.constant(np.float32([1]), name="one"), name="next"), "out")
    outputs = graph.loop("adding", body, iterations, True, [carried(start, state, result)], [last(result)])
    graph.result(outputs[0], "end")
    return graph


def doubling(iterations: int) -> Graph:
    """A state that gets twice as long in each iteration."""
    graph = Graph()
    start, body = graph.parameter("start", "f32", (-1,)), graph.body()
    state = body.parameter("state", "f32", (-1,))
    result = body.result(body.apply("Concat", state, state, axis=0, name="longer", dims=(-1,)), "out")
    outputs = graph.loop("doubling", body, iterations, True, [carried(start, state, result)], [last(result)])
    graph.result(outputs[0], "end")
    return graph


def test_a_block_has_the_values_of_its_iterations(tmp_path: Path) -> None:
    machine = at_its_loop(adding(10, 2), tmp_path, np.float32([0, 5]))
    block = BlockRun(machine).ahead()
    assert block is not None and (block.first, block.count) == (0, 10)
    expected = np.arange(10, dtype=np.float32)[:, None] + np.float32([0, 5])
    program = block.frame.program
    np.testing.assert_array_equal(block.bodies[0].stacked[program.parameters[0]], expected)
    np.testing.assert_array_equal(block.bodies[0].stacked[program.operations[0].outputs[0]], expected + 1)
    assert finite_iterations(block).all()


def test_the_run_goes_back_to_the_same_frames(tmp_path: Path) -> None:
    machine = at_its_loop(adding(100, 2), tmp_path, np.float32([0, 5]))
    frames, tick, blocks = list(machine.stack), machine.tick, BlockRun(machine)
    assert blocks.ahead() is not None and machine.tick > tick
    blocks.back()
    assert machine.tick == tick and all(one is other for one, other in zip(machine.stack, frames, strict=True))
    assert [event.kind for event in blocks.one(machine.stack[-1])] == [EventKind.ITERATION]
    machine.advance(Every.END)
    assert machine.outputs is not None
    np.testing.assert_array_equal(machine.outputs[0], [100, 105])


def test_large_values_make_small_blocks(tmp_path: Path) -> None:
    machine = at_its_loop(adding(1000, 2**20), tmp_path, np.zeros(2**20, np.float32))
    block = BlockRun(machine).ahead()
    assert block is not None and block.count == 3, "two values of 4 MB each, of 32 MB"


def test_what_grows_is_not_run_ahead(tmp_path: Path) -> None:
    machine = at_its_loop(doubling(18), tmp_path, np.float32([1]))
    tick, blocks = machine.tick, BlockRun(machine)
    assert blocks.ahead() is None and machine.tick == tick
    machine.advance(Every.ITERATION)
    assert blocks.ahead() is None, "it is not tried again"


@pytest.mark.parametrize("limit", [3, 30])
@pytest.mark.parametrize("branches", [False, True])
def test_a_block_goes_up_to_the_limit_of_iterations(limit: int, branches: bool, tmp_path: Path) -> None:
    graph, start = (alternating(), np.array(27)) if branches else (adding(100, 2), np.float32([0, 5]))
    machine = at_its_loop(graph, tmp_path, start, limit=limit)
    blocks = BlockRun(machine)
    block = blocks.ahead()
    assert block is not None and block.count == limit and blocks.ahead() is None
    with pytest.raises(stepper.StepperError, match="iterations"):
        machine.advance(Every.ITERATION)


def divided(*, in_a_branch: bool) -> Graph:
    """15 numbers in 3 rows, up to iteration 3; then in as many rows as the iteration has for its number."""
    graph, size = Graph(), (15,)
    start, body = graph.parameter("start", "f32", size), graph.body()
    state, number = body.parameter("state", "f32", size), body.parameter("number", "i64", ())
    count = body.apply("Maximum", number, body.constant(3, np.int64), name="count")

    def summed(within: Graph, value: Value, rows: Value) -> Value:
        first = within.apply("Unsqueeze", rows, within.constant([0], np.int64), dims=(1,), name="first")
        pattern = within.apply("Concat", first, within.constant([-1], np.int64), axis=0, dims=(2,), name="pattern")
        table = within.apply("Reshape", value, pattern, special_zero="false", dims=(-1, -1), name="table")
        axes = within.constant([0, 1], np.int64)
        return within.apply("ReduceSum", table, axes, keep_dims="false", dims=(), name="total")

    if in_a_branch:
        sides = []
        for _ in range(2):
            side = body.body()
            inner, rows = side.parameter("inner", "f32", size), side.parameter("rows", "i64", ())
            sides.append(Side(side, [(state, inner), (count, rows)], [side.result(summed(side, inner, rows), "out")]))
        yes = body.apply("Greater", number, body.constant(-1, np.int64), type="boolean", name="yes")
        (total,) = body.branch("choice", yes, *sides)
    else:
        total = summed(body, state, count)
    kept = body.result(body.apply("Add", state, total, dims=size, name="next"), "kept")
    outputs = graph.loop("dividing", body, 9, True, [carried(start, state, kept)], [last(kept)], iteration=number)
    graph.result(outputs[0], "end")
    return graph


@pytest.mark.parametrize("in_a_branch", [False, True])
def test_a_run_that_an_error_ends_stands_before_the_block(in_a_branch: bool, tmp_path: Path) -> None:
    """15 numbers make no 4 rows."""
    machine = at_its_loop(divided(in_a_branch=in_a_branch), tmp_path, np.ones(15, np.float32))
    tick, blocks = machine.tick, BlockRun(machine)
    assert blocks.ahead() is None and machine.tick == tick
    for _ in range(4):
        assert blocks.ahead() is None
        assert list(blocks.one(machine.stack[-1]))[-1].kind is EventKind.ITERATION
    assert blocks.ahead() is None
    with pytest.raises(stepper.StepperError, match="Reshape"):
        machine.advance(Every.END)


def test_iterations_with_nan_are_told_apart(tmp_path: Path) -> None:
    graph = Graph()
    start, body = graph.parameter("start", "f32", (1,)), graph.body()
    state = body.parameter("state", "f32", (1,))
    less = body.apply("Subtract", state, body.constant(np.float32([1]), name="one"), name="less")
    root = body.result(body.apply("Sqrt", less, name="root"), "root")
    kept = body.result(less, "kept")
    ends = [last(kept), joined(root)]
    graph.result(graph.loop("falling", body, 4, True, [carried(start, state, kept)], ends)[0], "end")
    block = BlockRun(at_its_loop(graph, tmp_path, np.float32([3]))).ahead()
    assert block is not None
    np.testing.assert_array_equal(finite_iterations(block), [True, True, True, False])


def collatz(number: int) -> list[int]:
    """The numbers of the sequence that begins with this one, without its end, which is 1."""
    found = []
    while number != 1:
        found.append(number)
        number = 3 * number + 1 if number % 2 else number // 2
    return found


def test_a_block_has_the_values_of_branches_in_the_iterations_that_took_them(tmp_path: Path) -> None:
    machine = at_its_loop(alternating(), tmp_path, np.array(27))
    frame, blocks = machine.stack[-1], BlockRun(machine)
    block = blocks.ahead()
    numbers = np.array(collatz(27))
    assert block is not None and block.count == len(numbers) == 111 and block.last.kind is EventKind.LEFT
    own, *branches = block.bodies
    np.testing.assert_array_equal(own.rows, np.arange(111))
    np.testing.assert_array_equal(own.stacked[frame.program.parameters[0]], numbers)
    assert [branch.steps[0].role for branch in branches] == ["else_body", "then_body"], "as they were taken first"
    for branch, is_even, following in zip(branches, (False, True), (3 * numbers + 1, numbers // 2), strict=True):
        np.testing.assert_array_equal(branch.rows, np.flatnonzero(numbers % 2 == (not is_even)))
        program = branch.frame.program
        np.testing.assert_array_equal(branch.stacked[program.parameters[0]], numbers[branch.rows])
        np.testing.assert_array_equal(branch.stacked[program.results[0]], following[branch.rows])
    assert finite_iterations(block).all()


def test_the_run_goes_back_behind_branches_and_through_them_again(tmp_path: Path) -> None:
    machine = at_its_loop(alternating(), tmp_path, np.array(6))
    frame, tick, blocks = machine.stack[-1], machine.tick, BlockRun(machine)
    assert blocks.ahead() is not None
    blocks.back()
    assert machine.tick == tick and machine.stack[-1] is frame
    blocks.advance(frame, 3)
    assert frame.activation is not None and frame.activation.iteration == 2
    kinds = [event.kind for event in blocks.one(frame)]
    assert kinds == [EventKind.ENTERED, EventKind.LEFT, EventKind.ITERATION]
    machine.advance(Every.END)
    assert machine.outputs is not None
    np.testing.assert_array_equal(machine.outputs[0], [*collatz(6)[1:], 1])


def growing_in_branches(size: int, *, grows: bool) -> Graph:
    """A state to which a table is added in each iteration in a branch, the same in both; it may be made longer."""
    graph = Graph()
    start, table = graph.parameter("start", "f32", (-1,)), graph.parameter("table", "f32", (size,))
    body = graph.body()
    state, given = body.parameter("state", "f32", (-1,)), body.parameter("given", "f32", (size,))
    number = body.parameter("number", "i64", ())
    even = body.apply("FloorMod", number, body.constant(2, np.int64), name="odd")
    chosen = body.apply("Equal", even, body.constant(0, np.int64), type="boolean", name="is_even")
    sides = []
    for name in ("then", "else"):
        side = body.body()
        inner, rows = side.parameter("inner", "f32", (-1,)), side.parameter("rows", "f32", (size,))
        added = side.apply("Concat" if grows else "Add", inner, rows, name=name, **({"axis": 0} if grows else {}))
        sides.append(Side(side, [(state, inner), (given, rows)], [side.result(added, "out")]))
    result = body.result(body.branch("choice", chosen, *sides)[0], "kept")
    entries = [carried(start, state, result), invariant(table, given)]
    graph.result(graph.loop("adding", body, 1000, True, entries, [last(result)], iteration=number)[0], "end")
    return graph


def test_what_no_iteration_changes_is_not_kept_for_each(tmp_path: Path) -> None:
    size = 2**18
    graph = growing_in_branches(size, grows=False)
    machine = at_its_loop(graph, tmp_path, np.zeros(size, np.float32), np.ones(size, np.float32))
    block = BlockRun(machine).ahead()
    assert block is not None and block.count == 7, "of 32 MB: what comes in and goes out, of the body and of a branch"
    for branch in block.bodies[1:]:
        inner, rows = branch.frame.program.parameters
        assert inner in branch.stacked and rows not in branch.stacked
        table = branch.of(rows)
        assert (
            table is not None
            and table.shape == (len(branch.rows), size)
            and table.base is not None
            and (table == 1).all()
        )


def test_what_grows_in_a_branch_is_not_run_ahead(tmp_path: Path) -> None:
    machine = at_its_loop(growing_in_branches(3, grows=True), tmp_path, np.float32([1]), np.float32([1, 2, 3]))
    tick, blocks = machine.tick, BlockRun(machine)
    assert blocks.ahead() is None and machine.tick == tick
    machine.advance(Every.ITERATION)
    assert blocks.ahead() is None, "it is not tried again"


def test_a_loop_in_a_branch_is_not_run_ahead_with_the_loop_around_it(tmp_path: Path) -> None:
    net = loops_in_branches().read(tmp_path)
    machine = Machine(stepper.compile_model(net), stepper.bind_inputs(net, {0: True, 1: 4, 2: 1.0}))
    counts = []
    blocks = BlockRun(machine)
    while not machine.finished:
        block = blocks.ahead()
        if block is None:
            machine.advance(Every.ITERATION)
            continue
        counts.append(block.count)
    assert counts == [3, 2, 3, 2], "of the innermost loops alone"
