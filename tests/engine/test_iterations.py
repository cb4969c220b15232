"""Iterations that nobody watches: state, ticks, outputs and failures are those of a walk operation by operation."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.engine import EventKind, Every, Machine, Rules, compile_model
from stepper.engine.frames import place
from stepper.engine.inputs import bind_inputs
from stepper.errors import ExecutionError, StepperError
from tests.engine.straight_loops import StraightLoop, straight_loop
from tests.engine.subjects import outputs_of, written
from tests.models import Graph, carried, joined

SEEDS = range(120)
COARSE = [Every.END, Every.LOOP, Every.ITERATION]


class Pausing(Machine):
    """A machine that is asked to pause each time that it has looked so many times whether it was."""

    looks, patience = 0, 10**9

    @property
    def pause_requested(self) -> bool:
        self.looks += 1
        return self.looks > self.patience

    @pause_requested.setter
    def pause_requested(self, _wanted: bool) -> None:
        self.looks = 0


def machine_of(loop: StraightLoop, folder: Path, rules: Rules = Rules.SPEC, kind: type[Machine] = Machine) -> Machine:
    compiled = loop.subject.compiled(folder, rules)
    return kind(compiled, bind_inputs(compiled.model, dict(enumerate(loop.subject.inputs))), **loop.options)


def state(machine: Machine) -> str:
    """All that can be seen of a machine; as text, in which NaN is like NaN."""
    codes = [frame.activation is not None and frame.activation.code is not None for frame in machine.stack]
    return repr((machine.tick, place(machine.stack), codes, written(machine.stack)))


def walked(machine: Machine, every: Every, ticks: tuple[int, ...] = ()) -> dict[int, str]:
    """The states at these ticks (or the first that can be stopped at after one)."""
    found = {}
    for tick in ticks:
        while machine.tick < tick:
            machine.advance(every, until=tick)
        found[tick] = state(machine)
    return found


def finished(machine: Machine, every: Every) -> Any:
    """How a run ends: its outputs or its failure, the notes, and the state in which it leaves the machine."""
    try:
        for _event in machine.run(every):
            pass
        end = repr(outputs_of(machine))
    except StepperError as error:
        end = f"{type(error).__name__}: {error}"
    return end, state(machine), [str(note) for note in machine.notes]


def told(machine: Machine, every: Every) -> list[Any]:
    """The events of a run, up to its end or its failure."""
    events: list[Any] = []
    try:
        events.extend((event.kind, event.tick, place(machine.stack)) for event in machine.run(every))
    except StepperError as error:
        events.append(str(error))
    return events


@pytest.mark.parametrize("rules", list(Rules))
@pytest.mark.parametrize("seed", SEEDS)
def test_a_run_ends_and_tells_its_events_as_one_that_stops_at_each_operation(
    tmp_path: Path, seed: int, rules: Rules
) -> None:
    loop = straight_loop(seed)
    machine = machine_of(loop, tmp_path, rules)
    start = machine.snapshot()
    expected = finished(machine, Every.OPERATION)
    machine.restore(start)
    events = told(machine, Every.OPERATION)
    for every in COARSE:
        machine.restore(start)
        assert finished(machine, every) == expected
        machine.restore(start)
        assert told(machine, every) == [event for event in events if type(event) is str or event[0].is_told(every)]


@pytest.mark.parametrize("seed", SEEDS)
def test_at_any_tick_the_state_is_that_of_a_walk_by_operations(tmp_path: Path, seed: int) -> None:
    loop = straight_loop(seed)
    machine = machine_of(loop, tmp_path)
    start = machine.snapshot()
    finished(machine, Every.OPERATION)
    random_of = random.Random(seed)
    last = machine.tick - 1
    ticks = tuple(sorted({random_of.randint(1, max(last, 1)) for _ in range(6)}))
    machine.restore(start)
    expected = walked(machine, Every.OPERATION, ticks)
    for every in COARSE:
        machine.restore(start)
        assert walked(machine, every, ticks) == expected


@pytest.mark.parametrize("seed", SEEDS)
def test_a_pause_leaves_the_state_of_a_walk_by_operations(tmp_path: Path, seed: int) -> None:
    loop = straight_loop(seed)
    machine = machine_of(loop, tmp_path, kind=Pausing)
    assert isinstance(machine, Pausing)
    start = machine.snapshot()
    expected = finished(machine, Every.OPERATION)
    machine.restore(start)
    machine.patience = random.Random(seed).choice([3, 10, 100])
    paused = {}
    for every in (Every.END, Every.LOOP):
        try:
            while not machine.finished:
                if machine.advance(every).kind is EventKind.PAUSED:
                    paused[machine.tick] = state(machine)
        except StepperError:
            pass
        assert finished(machine, every) == expected
        machine.restore(start)
    machine.patience = 10**9
    assert walked(machine, Every.OPERATION, tuple(sorted(paused))) == paused


@pytest.mark.parametrize("every", COARSE)
def test_openvino_looks_at_every_iteration_for_a_shape_that_may_not_change(tmp_path: Path, every: Every) -> None:
    net = Graph()
    body = net.body()
    number, state = body.parameter("number", "i64"), body.parameter("state", dims=(1,))
    longer = body.apply("Greater", number, body.constant(4, np.int64), type="boolean")
    count = body.apply("Convert", longer, type="i64", destination_type="i64")
    shape = body.apply("Add", count, body.constant([1]), dims=(1,))
    value = body.apply("Broadcast", state, shape, dims=(2,), version="opset3", mode="numpy")
    inputs, outputs = [carried(net.constant([1.0]), state, body.result(value))], [joined(body.result(value))]
    net.result(net.loop("loop", body, 9, True, inputs, outputs, iteration=number)[0])
    machine = Machine(compile_model(net.read(tmp_path), Rules.OPENVINO), [])
    with pytest.raises(ExecutionError, match=r"'loop' #5: .* changes its shape from \[1\] to \[2\]"):
        list(machine.run(every))


def test_the_seeds_have_what_matters(tmp_path: Path) -> None:
    """Without loops of each of these ends the tests above would say nothing."""
    ends = [finished(machine_of(straight_loop(seed), tmp_path), Every.END)[0] for seed in SEEDS]
    for text, least in {
        "needs more than 7": 5,
        "the body's condition has shape [2]": 5,
        "has no slice": 2,
        "> Reshape 'fails'": 5,
        "nan": 1,
    }.items():
        assert sum(text in end for end in ends) >= least, text
    assert sum(end.startswith("[") for end in ends) >= 40
