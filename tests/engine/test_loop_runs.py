"""The run of a loop has one identity in all of its iterations, and another in each run."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every, LoopRun, loop_run
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from tests.models import Graph, Side, carried, last


def loops_in_branches() -> Graph:
    """A loop of 2 iterations around an If, in both sides of which there is a loop of 2 iterations."""
    net = Graph()
    x, body = net.parameter("x"), net.body()
    state, number = body.parameter("state"), body.parameter("number", "i64")
    sides = []
    for name in ("then", "else"):
        side = body.body()
        given, inner = side.parameter("given"), side.body()
        value = inner.parameter("value")
        out = inner.result(inner.apply("Add", value, inner.constant(1.0), name="more"))
        (final,) = side.loop(name, inner, 2, True, [carried(given, value, out)], [last(out)])
        sides.append(Side(side, [(state, given)], [side.result(final)]))
    is_first = body.apply("Equal", number, body.constant(0, np.int64), type="boolean")
    (chosen,) = body.branch("choice", is_first, *sides)
    out = body.result(chosen)
    (final,) = net.loop("outer", body, 2, True, [carried(x, state, out)], [last(out)], iteration=number)
    net.result(final)
    return net


def test_a_run_is_the_same_in_all_iterations_and_in_branches_that_they_take(tmp_path: Path) -> None:
    model = loops_in_branches().read(tmp_path)
    machine = Machine(compile_model(model), bind_inputs(model, {0: np.float32(0)}))
    seen: dict[LoopRun | None, list[tuple[int, int]]] = {}
    for event in machine.run(Every.ITERATION):
        frame = event.frame
        if (
            frame.activation is not None
            and frame.activation.operation.layer.is_loop
            and frame.activation.iteration >= 0
        ):
            here = (len(machine.stack), frame.activation.iteration)
            if machine.stack and machine.stack[-1] is frame:
                seen.setdefault(loop_run(machine.stack), []).append(here)
    runs = [run for run in seen if run is not None]
    assert [sorted(set(places)) for places in seen.values()] == [[(4, 0), (4, 1)], [(2, 0), (2, 1)], [(4, 0), (4, 1)]]
    outer = next(run for run in runs if not run.around)
    assert all(run.around[0][0] == outer.loop for run in runs if run.around)
    assert [run.around[0][1] for run in runs if run.around] == [0, 1]
    assert loop_run(machine.stack[:1]) is None


def test_in_a_branch_the_run_is_that_of_the_loop_around(tmp_path: Path) -> None:
    model = loops_in_branches().read(tmp_path)
    machine = Machine(compile_model(model), bind_inputs(model, {0: np.float32(0)}))
    for _event in machine.run(Every.OPERATION):
        if len(machine.stack) == 3:
            assert loop_run(machine.stack) == loop_run(machine.stack[:2]) is not None
            return
