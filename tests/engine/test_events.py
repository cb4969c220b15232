"""What a run tells: which moves, in which order, at which ticks; the same however finely it is told."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.engine.frames import EventKind, Every, place
from stepper.engine.rules import Rules
from stepper.errors import StepperError
from tests.engine.subjects import SUBJECTS, Subject, outputs_of, told
from tests.models import Graph, Side, carried, last
from tests.tables import each_row

ALL = pytest.mark.parametrize("subject", SUBJECTS.values(), ids=SUBJECTS)
GRANULARITIES = pytest.mark.parametrize("every", list(Every), ids=lambda every: every.name)


def twice() -> Graph:
    """x doubled twice, then negated."""
    net = Graph()
    x, body = net.parameter("x"), net.body()
    state = body.parameter("state")
    doubled = body.result(body.apply("Add", state, state, name="doubled"))
    (out,) = net.loop("twice", body, 2, True, [carried(x, state, doubled)], [last(doubled)])
    net.result(net.apply("Negative", out, name="negative"))
    return net


def choice() -> Graph:
    """x or its absolute value."""
    net = Graph()
    go, x = net.parameter("go", "boolean"), net.parameter("x")
    sides = []
    for operation in ("Abs", "Negative"):
        side = net.body()
        inside = side.parameter("inside")
        sides.append(Side(side, [(x, inside)], [side.result(side.apply(operation, inside))]))
    net.result(net.branch("choice", go, *sides)[0])
    return net


TWICE = [
    ("ENTERED", 1, "model > Loop 'twice'"),
    ("BEGUN", 2, "model > Loop 'twice' #0"),
    ("OPERATION", 3, "model > Loop 'twice' #0"),
    ("ITERATION", 4, "model > Loop 'twice' #0"),
    ("BEGUN", 5, "model > Loop 'twice' #1"),
    ("OPERATION", 6, "model > Loop 'twice' #1"),
    ("ITERATION", 7, "model > Loop 'twice' #1"),
    ("LEFT", 8, "model"),
    ("OPERATION", 9, "model"),
    ("FINISHED", 10, "model"),
]


@each_row(
    ("every", "kinds"),
    [
        (Every.END, {"FINISHED"}),
        (Every.LOOP, {"FINISHED", "ENTERED", "LEFT"}),
        (Every.ITERATION, {"FINISHED", "ENTERED", "LEFT", "ITERATION"}),
        (Every.OPERATION, {"FINISHED", "ENTERED", "LEFT", "ITERATION", "BEGUN", "OPERATION"}),
    ],
)
def test_a_loop_of_two_iterations_is_told_as_finely_as_asked_for(tmp_path: Path, every: Every, kinds: set[str]) -> None:
    subject = Subject(twice, (np.float32(3),))
    machine = subject.machine(subject.compiled(tmp_path))
    lines = [(kind, tick, where) for kind, tick, where, _ in told(machine, every)]
    assert lines == [line for line in TWICE if line[0] in kinds]
    assert outputs_of(machine) == [("float32", -12.0)]


def test_a_branch_is_entered_and_left_like_a_loop_but_has_no_iterations(tmp_path: Path) -> None:
    subject = Subject(choice, (np.bool_(False), np.float32(3)))
    machine = subject.machine(subject.compiled(tmp_path))
    lines = told(machine, Every.OPERATION)
    assert [(kind, where) for kind, _, where, _ in lines] == [
        ("ENTERED", "model > If 'choice'"),
        ("OPERATION", "model > If 'choice'"),
        ("LEFT", "model"),
        ("FINISHED", "model"),
    ]


REFUSED_BY_OPENVINO = ("iterator in an iterator", "growing")


@each_row(
    ("name", "rules"),
    [(name, rules) for name in SUBJECTS for rules in Rules if rules is Rules.SPEC or name not in REFUSED_BY_OPENVINO],
)
@each_row("keep_values", [True, False])
def test_coarser_telling_leaves_events_out_and_changes_none(
    tmp_path: Path, name: str, rules: Rules, keep_values: bool
) -> None:
    subject = SUBJECTS[name]
    compiled = subject.compiled(tmp_path, rules)
    finest = subject.machine(compiled, keep_values=keep_values)
    lines = told(finest, Every.OPERATION)
    ticks = [tick for _, tick, _, _ in lines]
    assert ticks == sorted(set(ticks)) and ticks[0] == 1
    for every in Every:
        machine = subject.machine(compiled, keep_values=keep_values)
        expected = [line for line in lines if EventKind[line[0]].is_told(every)]
        assert told(machine, every) == expected, every.name
        assert outputs_of(machine) == outputs_of(finest) and machine.states.keys() == finest.states.keys()


@ALL
def test_granularities_may_be_mixed_within_one_run(tmp_path: Path, subject: Subject) -> None:
    compiled = subject.compiled(tmp_path)
    lines = {tick: (kind, where) for kind, tick, where, _ in told(subject.machine(compiled), Every.OPERATION)}
    machine = subject.machine(compiled)
    for turn in range(len(lines)):
        event = machine.advance(list(Every)[-1 - turn % 3])
        assert lines[event.tick] == (event.kind.name, place(machine.stack))
        if machine.finished:
            break
    assert machine.finished


@ALL
@GRANULARITIES
def test_the_generator_may_be_dropped_after_any_event(tmp_path: Path, subject: Subject, every: Every) -> None:
    compiled = subject.compiled(tmp_path)
    whole = subject.machine(compiled)
    lines = told(whole, every)
    machine = subject.machine(compiled)
    found = [(event.kind.name, event.tick) for event in iter(lambda: next(machine.run(every), None), None)]
    assert found == [line[:2] for line in lines]
    assert outputs_of(machine) == outputs_of(whole)


@ALL
def test_a_compiled_model_runs_again_and_gives_the_same(tmp_path: Path, subject: Subject) -> None:
    compiled = subject.compiled(tmp_path)
    first, second = subject.machine(compiled), subject.machine(compiled)
    assert told(first, Every.OPERATION) == told(second, Every.OPERATION)
    assert outputs_of(first) == outputs_of(second)


def test_a_finished_run_tells_nothing_more(tmp_path: Path) -> None:
    subject = SUBJECTS["sums"]
    machine = subject.machine(subject.compiled(tmp_path))
    assert not machine.finished and machine.outputs is None
    told(machine, Every.END)
    assert machine.finished and told(machine, Every.OPERATION) == []
    with pytest.raises(StepperError, match="the run has ended"):
        machine.advance()


def test_the_frame_of_an_event_is_where_it_happened(tmp_path: Path) -> None:
    subject = SUBJECTS["loop in a loop"]
    machine = subject.machine(subject.compiled(tmp_path))
    for event in machine.run(Every.OPERATION):
        depth = len(event.frame.program.path)
        if event.kind in (EventKind.ENTERED, EventKind.BEGUN, EventKind.ITERATION, EventKind.OPERATION):
            assert event.frame is machine.stack[-1] and depth == len(machine.stack) - 1
        elif event.kind is EventKind.LEFT:
            assert event.frame not in machine.stack and depth == len(machine.stack)
