"""What the tests of the machine run: models of every shape, each with inputs; and how a run is written down."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from stepper.engine.compiler import compile_model
from stepper.engine.frames import Event, Every, Frame, place
from stepper.engine.inputs import bind_inputs
from stepper.engine.loops import Scan
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel
from stepper.engine.rules import Rules
from tests.engine.nested_models import alternating, loop_in_branch, multiplication_table, rows_of_rows
from tests.models import Graph, Side, carried, joined, last, sliced


@dataclass(frozen=True)
class Subject:
    """A model and inputs for it, by position."""

    graph: Callable[[], Graph]
    inputs: tuple[Any, ...]

    def compiled(self, folder: Path, rules: Rules = Rules.SPEC) -> CompiledModel:
        return compile_model(self.graph().read(folder), rules)

    def machine(self, compiled: CompiledModel, **options: Any) -> Machine:
        return Machine(compiled, bind_inputs(compiled.model, dict(enumerate(self.inputs))), **options)


def sums() -> Graph:
    """Two operations around a Loop over slices with a scan output that is joined backwards."""
    net = Graph()
    x = net.apply("Negative", net.parameter("x", dims=(5,)), name="before")
    body = net.body()
    item, total = body.parameter("item", dims=(1,)), body.parameter("total", dims=(1,))
    added = body.apply("Add", total, item, name="added")
    result = body.result(body.apply("Multiply", added, body.constant(2.0), name="doubled"))
    inputs = [sliced(x, item), carried(net.constant([0.0]), total, result)]
    final, scan = net.loop("sums", body, 5, True, inputs, [last(result), joined(result, stride=-1, start=-1, end=0)])
    net.result(net.apply("Abs", final, name="after"), "final")
    net.result(scan, "scan")
    return net


def growing() -> Graph:
    """A tensor one longer each iteration, its pieces joined too."""
    net = Graph()
    x, body = net.parameter("x", dims=(-1,)), net.body()
    tensor = body.parameter("tensor", dims=(-1,))
    longer = body.result(body.apply("Concat", tensor, body.constant([1.0]), dims=(-1,), axis=0, name="longer"))
    final, scan = net.loop("growing", body, 4, True, [carried(x, tensor, longer)], [last(longer), joined(longer)])
    net.result(final, "final")
    net.result(scan, "scan")
    return net


def counting() -> Graph:
    """A variable that a Loop's body counts up."""
    net = Graph()
    body = net.body()
    before = body.apply("ReadValue", body.constant([0.0]), version="opset3", variable_id="count", name="before")
    after = body.apply("Add", before, body.constant([1.0]), name="after")
    body.apply("Assign", after, version="opset3", variable_id="count", name="assign")
    (scan,) = net.loop("counting", body, 3, True, [], [joined(body.result(before))])
    net.result(scan, "scan")
    return net


def never() -> Graph:
    """A Loop without iterations between two operations."""
    net = Graph()
    x, body = net.apply("Abs", net.parameter("x"), name="before"), net.body()
    state = body.parameter("state")
    result = body.result(body.apply("Negative", state))
    (final,) = net.loop("never", body, 0, True, [carried(x, state, result)], [last(result)])
    net.result(net.apply("Negative", final, name="after"))
    return net


def endless() -> Graph:
    """Counts up for ever."""
    net = Graph()
    body = net.body()
    count = body.parameter("count", "i64")
    result = body.result(body.apply("Add", count, body.constant(1, np.int64), name="plus one"))
    net.result(
        net.loop("endless", body, -1, True, [carried(net.constant(0, np.int64), count, result)], [last(result)])[0]
    )
    return net


def endless_with_branch() -> Graph:
    """Counts up for ever, in an If in a Loop."""
    net = Graph()
    body = net.body()
    count = body.parameter("count", "i64")
    sides = []
    for _ in range(2):
        side = body.body()
        inside = side.parameter("inside", "i64")
        sides.append(
            Side(side, [(count, inside)], [side.result(side.apply("Add", inside, side.constant(1, np.int64)))])
        )
    (following,) = body.branch("choice", body.constant(True, np.bool_), *sides)
    result = body.result(following)
    net.result(
        net.loop("endless", body, -1, True, [carried(net.constant(0, np.int64), count, result)], [last(result)])[0]
    )
    return net


SUBJECTS = {
    "sums": Subject(sums, (np.array([1, 2, 3, 4, 5], np.float32),)),
    "growing": Subject(growing, (np.array([9], np.float32),)),
    "counting": Subject(counting, ()),
    "never": Subject(never, (np.float32(-4),)),
    "loop in a loop": Subject(multiplication_table, (np.int64(3), np.int64(2))),
    "iterator in an iterator": Subject(rows_of_rows, (np.arange(6, dtype=np.float32).reshape(2, 3),)),
    "branch in a loop": Subject(alternating, (np.int64(3),)),
    "loop in a branch": Subject(loop_in_branch, (np.bool_(True), np.float32(3))),
}

Line = tuple[str, int, str, int]


def line(machine: Machine, event: Event) -> Line:
    """An event as plain data: what, when, where, and how far the frame has come."""
    return event.kind.name, event.tick, place(machine.stack), event.frame.pc


def told(machine: Machine, every: Every) -> list[Line]:
    return [line(machine, event) for event in machine.run(every)]


def written(frames: Iterable[Frame]) -> list[Any]:
    """Everything that frames hold, as plain data to compare."""
    return [
        (
            frame.pc,
            frame.phase,
            [None if value is None else np.array(value).tolist() for value in frame.values],
            frame.activation
            and (
                frame.activation.iteration,
                frame.activation.condition,
                frame.activation.ended,
                [pieces(scan) for scan in frame.activation.scans],
            ),
        )
        for frame in frames
    ]


def pieces(scan: Scan) -> list[Any]:
    return [scan.piece(iteration).tolist() for iteration in range(scan.length)]


def outputs_of(machine: Machine) -> list[Any]:
    assert machine.outputs is not None
    return [(output.dtype.name, output.tolist()) for output in machine.outputs]
