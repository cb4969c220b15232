"""Blocks of iterations that our run makes ahead of a comparison: how many, of what, and that it can go back."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import stepper
from stepper.compare.run.blocks import BlockRun, finite_iterations
from stepper.engine.events import EventKind, Every
from stepper.engine.machine import Machine
from tests.models import Graph, carried, joined, last


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
    np.testing.assert_array_equal(block.stacked[program.parameters[0]], expected)
    np.testing.assert_array_equal(block.stacked[program.operations[0].outputs[0]], expected + 1)
    assert finite_iterations(block).all()


def test_the_run_goes_back_to_the_same_frames(tmp_path: Path) -> None:
    machine = at_its_loop(adding(100, 2), tmp_path, np.float32([0, 5]))
    frames, tick, blocks = list(machine.stack), machine.tick, BlockRun(machine)
    assert blocks.ahead() is not None and machine.tick > tick
    blocks.back()
    assert machine.tick == tick and all(one is other for one, other in zip(machine.stack, frames, strict=True))
    assert blocks.one().kind is EventKind.ITERATION
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
def test_a_run_that_a_limit_ends_stands_before_the_block(limit: int, tmp_path: Path) -> None:
    machine = at_its_loop(adding(100, 2), tmp_path, np.float32([0, 5]), limit=limit)
    tick, blocks = machine.tick, BlockRun(machine)
    assert blocks.ahead() is None and machine.tick == tick
    for _ in range(limit):
        assert blocks.ahead() is None and blocks.one().kind is EventKind.ITERATION
    with pytest.raises(stepper.StepperError, match="iterations"):
        machine.advance(Every.ITERATION)


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
