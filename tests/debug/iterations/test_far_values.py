"""Values of iterations far off: taken from a plain run of the engine, and how much of the run is repeated for them."""

from __future__ import annotations

import random

import numpy as np
import pytest

import stepper
from stepper.debug.debugger import Debugger
from stepper.debug.timeline import History
from stepper.engine.frames import EventKind
from stepper.engine.machine import Machine
from stepper.engine.program import Program
from tests.benchmarks.terminal_models import long_loop
from tests.debug.debugged import SAMPLES

RUNS, PASSES, PAIRS = 20_000, "passes", "pairs_of_neighbours"


@pytest.fixture
def moved(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many moves each advance of a machine made; moments are kept by their number, not by the time between them."""
    advance, found = Machine.advance, list[int]()

    def counted(machine: Machine, *arguments: object, **options: object) -> object:
        begin = machine.tick
        try:
            return advance(machine, *arguments, **options)  # type: ignore[arg-type]
        finally:
            found.append(machine.tick - begin)

    monkeypatch.setattr(Machine, "advance", counted)
    monkeypatch.setattr(History, "took", lambda *_: None)
    return found


def named(program: Program, name: str) -> int:
    return program.slot(next(one.id for one in program.graph.layers if one.name == name))


def test_a_value_of_a_long_loop_is_computed_from_the_nearest_moment_that_is_kept(moved: list[int]) -> None:
    debugger = long_loop(RUNS, at=0)
    loop = next(layer for layer in debugger.model.graph.layers if layer.is_loop)
    body = debugger.machine.compiled.programs[-1]
    name = next(one.layer.name for one in body.operations if one.layer.type == "Multiply")
    machine = Machine(debugger.machine.compiled, debugger.inputs)
    expected = [
        event.frame.values[named(body, name)]
        for event in machine.run(stepper.Every.ITERATION)
        if event.kind is EventKind.ITERATION
    ]
    for stand in (debugger.first, debugger.last):
        debugger.last()
        stand()
        whole = debugger.timeline.furthest
        for at in (RUNS - 1, RUNS // 2, 7, RUNS - 2, RUNS // 3):
            moved.clear()
            assert debugger.value(f"`{loop.name}`::`{name}`@{at}").tobytes() == expected[at].tobytes()
            assert sum(moved) < whole / 10
        for at in (RUNS - 1, RUNS // 2, 7):
            stand()
            moved.clear()
            debugger.goto(f"`{loop.name}`::`{name}`@{at}")
            assert debugger.frame.values[named(body, name)].tobytes() == expected[at].tobytes()
            assert debugger.machine.stack[-1].activation.iteration == at
            assert sum(moved) < whole / 10


def sorting() -> Debugger:
    """A bubble sort of 40 numbers: a loop over pairs in a loop of passes."""
    values = np.random.default_rng(3).permutation(40).astype(np.float32)
    return Debugger(stepper.read_model(SAMPLES / "nested_loop" / "model.xml"), {"values": values})


def test_values_of_any_run_of_an_inner_loop_are_those_of_a_plain_run(moved: list[int]) -> None:
    debugger = sorting()
    outer, inner = debugger.machine.compiled.programs[1:]
    if len(outer.path) > len(inner.path):
        outer, inner = inner, outer
    expected, orders = {}, {}
    machine = Machine(debugger.machine.compiled, debugger.inputs)
    for event in machine.run(stepper.Every.ITERATION):
        if event.kind is not EventKind.ITERATION:
            continue
        numbers = tuple(one.activation.iteration for one in machine.stack if one.activation is not None)
        if event.frame.program is inner:
            expected[numbers] = event.frame.values[named(inner, "values_next")]
        else:
            orders[numbers[0]] = event.frame.values[named(outer, "keep_going")]
    debugger.last()
    whole, chosen = debugger.timeline.furthest, random.Random(4)
    for numbers in [*chosen.sample(sorted(expected), 20), max(expected)]:
        chosen.choice([debugger.first, debugger.last])()
        moved.clear()
        debugger.goto(f"{PASSES}@{numbers[0]}::{PAIRS}::values_next@{numbers[1]}")
        stack = debugger.machine.stack
        assert tuple(one.activation.iteration for one in stack if one.activation is not None) == numbers
        assert debugger.frame.values[named(inner, "values_next")].tobytes() == expected[numbers].tobytes()
        assert sum(moved) < whole / 10, numbers
    debugger.first()
    for numbers in [*chosen.sample(sorted(expected), 40), max(expected)]:
        found = debugger.value(f"{PASSES}@{numbers[0]}::{PAIRS}::values_next@{numbers[1]}")
        assert found.tobytes() == expected[numbers].tobytes(), numbers
    for at, order in orders.items():
        moved.clear()
        assert debugger.value(f"{PASSES}::keep_going@{at}").tobytes() == order.tobytes(), at
        assert sum(moved) < whole / 10, (at, sum(moved), whole)
