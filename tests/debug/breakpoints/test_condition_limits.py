"""The limit that a condition sets: what is said in every iteration is what a run to the end counts."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

from stepper.debug.debugger import Debugger
from tests.debug.debugged import sample
from tests.models import Graph, Side, Value, carried, last
from tests.tables import each_row

Condition = Callable[[Graph, Value, Value], Value]


def counting(condition: Condition, start: int, step: int, *, trip_count: int = -1, initial: bool = True) -> Debugger:
    """i grows by `step`; `condition` is given i of the iteration and i of the next."""
    net = Graph()
    body = net.body()
    i = body.parameter("i", "i64", ())
    following = body.apply("Add", i, body.constant(step, np.int64, "by"), name="next")
    keep = body.result(condition(body, i, following), "keep")
    passed = body.result(following, "next_out")
    begin = net.constant(start, np.int64, "begin")
    outputs = net.loop("count", body, trip_count, initial, [carried(begin, i, passed)], [last(passed)], keep)
    net.result(outputs[0], "out")
    with tempfile.TemporaryDirectory() as folder:
        return Debugger(net.read(Path(folder)), {})


def compare(kind: str, bound: int, *, of_next: bool = False, mirrored: bool = False) -> Condition:
    def condition(body: Graph, i: Value, following: Value) -> Value:
        one, other = following if of_next else i, body.constant(bound, np.int64, "bound")
        pair = (other, one) if mirrored else (one, other)
        return body.apply(kind, *pair, name="compared", dims=())

    return condition


def both(body: Graph, i: Value, following: Value) -> Value:
    first = compare("Less", 40)(body, i, following)
    second = body.apply("Greater", body.constant(7, np.int64, "seven"), following, name="second")
    return body.apply("LogicalAnd", first, second, name="both")


def in_a_branch(body: Graph, i: Value, following: Value) -> Value:
    """`next < 5 if i < 30 else False`, as a TorchScript `and` is converted."""
    first = body.apply("Less", i, body.constant(30, np.int64, "thirty"), name="first")
    then, other = body.body(), body.body()
    inner = then.parameter("inner", "i64", ())
    less = then.apply("Less", inner, then.constant(5, np.int64, "five"), name="less")
    no = other.constant(False, np.bool_, "no")
    sides = (
        Side(then, [(following, inner)], [then.result(less, "then_out")]),
        Side(other, [], [other.result(no, "no_out")]),
    )
    (found,) = body.branch("If", first, *sides)
    return found


CASES = [
    (compare("Less", 10), 0, 1, "i < 10"),
    (compare("Less", 10, of_next=True), 0, 3, "i + 3 < 10"),
    (compare("LessEqual", 10), 1, 4, "i <= 10"),
    (compare("Greater", -5), 3, -2, "i > -5"),
    (compare("GreaterEqual", -5, of_next=True), 3, -2, "i - 2 >= -5"),
    (compare("Greater", 10, mirrored=True), 0, 2, "i < 10"),
    (compare("NotEqual", 12), 0, 3, "i != 12"),
    (compare("Less", 0), 5, 1, "i < 0"),
    (both, 0, 1, "i + 1 < 7"),
    (in_a_branch, 0, 1, "i + 1 < 5"),
]


@each_row(("condition", "start", "step", "text"), CASES, ids=[case[-1] for case in CASES])
def test_the_limit_is_where_the_run_ends(condition: Condition, start: int, step: int, text: str) -> None:
    debugger = counting(condition, start, step)
    said = []
    while True:
        debugger.step()
        if debugger.machine.finished:
            break
        view = debugger.view().loop
        if view is not None and view.trip.ended is None and view.level.iteration is not None:
            assert view.trip.by_condition is not None and view.trip.by_condition.text == text
            assert view.level.count == f"{view.level.iteration} of at most {view.trip.limit}"
            said.append((view.trip.limit, view.level.iteration + 1))
    limits = {limit for limit, _ in said}
    assert limits == {max(executed for _, executed in said)}


@each_row(
    ("condition", "step"),
    [
        (compare("NotEqual", 11), 3),  # it steps over 11
        (compare("Less", 10), 0),  # it never grows
        (compare("Less", 10), -1),
        (compare("Equal", 0), 1),
    ],
    ids=("stepped over", "constant", "away", "another comparison"),
)
def test_where_nothing_is_certain_nothing_is_said(condition: Condition, step: int) -> None:
    debugger = counting(condition, 0, step, trip_count=6)
    debugger.step(3)
    view = debugger.view().loop
    assert view is not None and view.trip.by_condition is None and view.trip.limit == 6


def test_the_tighter_of_count_and_condition_counts() -> None:
    for trip_count, expected in ((6, 6), (30, 11)):
        debugger = counting(compare("Less", 10), 0, 1, trip_count=trip_count)
        debugger.step(3)
        view = debugger.view().loop
        assert view is not None and view.trip.limit == expected


def test_the_date_decoder_ends_at_its_twentieth_letter_at_the_latest() -> None:
    debugger = sample("date_normaliser")
    debugger.run_to("`prim::Loop/Loop`@3")
    view = debugger.view().loop
    assert view is not None and view.trip.limit == 20 and "i.11 + 1 < 20" in view.trip.sentence
