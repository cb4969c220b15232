"""Iterations that nobody watches: state, ticks, outputs and failures are those of a walk operation by operation."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from stepper.engine.compiler import compile_model
from stepper.engine.frames import EventKind, Every, Frame, place
from stepper.engine.inputs import bind_inputs
from stepper.engine.machine import Machine
from stepper.engine.rules import Rules
from stepper.errors import ExecutionError, StepperError
from stepper.ops.operands import LARGEST_TENSOR
from tests.engine.straight_loops import StraightLoop, straight_loop
from tests.engine.subjects import outputs_of, written
from tests.models import Graph, carried, joined, last
from tests.tables import each_row

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


@each_row("rules", list(Rules))
@each_row("seed", SEEDS, quick=30)
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


@each_row("seed", SEEDS, quick=30)
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


@each_row("seed", SEEDS, quick=30)
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


class Looking:
    """A watcher of iterations that keeps what it sees, and may stop or fail after some."""

    stops: Mapping[int, tuple[int, ...]] = {}
    watches_iterations = True

    def __init__(self, machine: Machine, stop: int | None = None, fail: int | None = None) -> None:
        self.machine, self.stop, self.fail, self.seen = machine, stop, fail, list[str]()

    def iteration_watch(self, _frame: Frame) -> Callable[[Frame], bool]:
        """The same for every loop."""
        return self.after_iteration

    def after_operation(self, _frame: Frame, _index: int) -> bool:
        """Nothing was named."""
        raise AssertionError

    def after_iteration(self, _frame: Frame) -> bool:
        """Keep the state."""
        self.seen.append(state(self.machine))
        if len(self.seen) == self.fail:
            raise LookupError("not found")
        return len(self.seen) == self.stop


@each_row("seed", SEEDS[:20])
def test_a_watcher_sees_each_iteration_as_a_walk_by_operations_leaves_it(tmp_path: Path, seed: int) -> None:
    machine = machine_of(straight_loop(seed), tmp_path)
    start, seen = machine.snapshot(), list[list[str]]()
    for every in (Every.OPERATION, Every.LOOP):
        machine.restore(start)
        machine.watcher = watcher = Looking(machine)
        finished(machine, every)
        seen.append(watcher.seen)
    assert seen[0] == seen[1]
    for end in {len(seen[0]) // 2, len(seen[0]) - 1} - {0, -1}:
        machine.restore(start)
        machine.watcher = Looking(machine, stop=end)
        assert machine.advance(Every.LOOP).kind in (EventKind.STOPPED, EventKind.ENTERED)
        if machine.advance(Every.LOOP).kind is EventKind.STOPPED:
            assert state(machine) == seen[0][end - 1]
        machine.restore(start)
        machine.watcher = Looking(machine, fail=end)
        with pytest.raises(LookupError, match="not found"):
            list(machine.run(Every.LOOP))
        assert state(machine) == seen[0][end - 1]


def _root(folder: Path) -> Machine:
    net = Graph()
    body = net.body()
    number, state = body.parameter("number", "i64"), body.parameter("state", dims=(1,))
    grown = body.apply("Add", state, body.constant([1.0]))
    root = body.apply("Unsqueeze", body.apply("Sqrt", grown), body.constant([0]), dims=(1, 1))
    inputs, outputs = [carried(net.constant([1.0]), state, body.result(grown))], [joined(body.result(root))]
    net.result(net.loop("loop", body, 3000, True, inputs, outputs, iteration=number)[0])
    return Machine(compile_model(net.read(folder)), [])


class Interrupting(Machine):
    """A machine whose user presses Ctrl+C when it has looked so many times whether to pause."""

    looks, patience = 0, 2000

    @property
    def pause_requested(self) -> bool:
        self.looks += 1
        if self.looks == self.patience:
            raise KeyboardInterrupt
        return False

    @pause_requested.setter
    def pause_requested(self, _wanted: bool) -> None:
        self.looks = 0


def test_an_interrupt_leaves_a_state_from_which_the_run_goes_on(tmp_path: Path) -> None:
    plain = _root(tmp_path)
    expected = finished(plain, Every.OPERATION)
    machine = Interrupting(plain.compiled, [])
    with pytest.raises(KeyboardInterrupt):
        list(machine.run(Every.END))
    assert machine.stack[-1].activation is not None and machine.stack[-1].activation.iteration > 1900
    assert finished(machine, Every.END) == expected


@each_row("order", [1, -1])
@each_row("kilobytes", [0.5, 1.7, 3, 6])
def test_a_scan_output_above_the_limit_ends_a_run_in_the_same_iteration(
    tmp_path: Path, kilobytes: float, order: int
) -> None:
    """Pieces that are collected, of two outputs, one of which is larger."""
    token = LARGEST_TENSOR.set(int(kilobytes * 1000))
    try:
        net = Graph()
        body = net.body()
        state = body.parameter("state", dims=(1,))
        grown = body.apply("Add", state, body.constant([1.0]))
        small = body.apply("Unsqueeze", body.apply("Sqrt", grown), body.constant([0]), dims=(1, 1))
        large = body.apply("Multiply", grown, body.constant([[1.0, 2.0, 3.0]]), dims=(1, 3))
        outputs = [joined(body.result(value)) for value in (small, large)][::order]
        outputs.append(last(body.result(grown)))
        inputs = [carried(net.constant([1.0]), state, body.result(grown))]
        for value in net.loop("loop", body, 3000, True, inputs, outputs):
            net.result(value)
        machine = Machine(compile_model(net.read(tmp_path)), [])
        start = machine.snapshot()
        expected = finished(machine, Every.OPERATION)
        assert expected[0].startswith("LimitReached")
        for every in COARSE:
            machine.restore(start)
            assert finished(machine, every) == expected
    finally:
        LARGEST_TENSOR.reset(token)


def _swapping(folder: Path) -> Machine:
    net = Graph()
    body = net.body()
    one, other = body.parameter("one", dims=(1,)), body.parameter("other", dims=(1,))
    body.result(body.apply("Add", one, other))
    inputs = [
        carried(net.constant([1.0]), one, body.result(other)),
        carried(net.constant([2.0]), other, body.result(one)),
    ]
    net.result(net.loop("loop", body, 3000, True, inputs, [last(body.result(other))])[0])
    return Machine(compile_model(net.read(folder)), [])


@each_row("make", [_root, _swapping])
def test_the_state_inside_of_a_long_run_is_that_of_a_walk_by_operations(
    tmp_path: Path, make: Callable[[Path], Machine]
) -> None:
    """States that change places, and an iteration number that no operation reads."""
    machine = make(tmp_path)
    start = machine.snapshot()
    ticks = tuple(range(8000, 8006))
    expected = walked(machine, Every.OPERATION, ticks)
    for tick in ticks:
        machine.restore(start)
        assert walked(machine, Every.LOOP, (tick,)) == {tick: expected[tick]}


@each_row("every", COARSE)
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
