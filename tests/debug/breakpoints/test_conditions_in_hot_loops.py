"""Conditions of breakpoints in hot loops: they stop where asking in every iteration stops."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepper.debug.breakpoints import breakpoints
from stepper.debug.debugger import Debugger
from tests.models import Graph, carried, joined, last
from tests.tables import each_row

CONDITIONS = [
    "total[0] > 300",
    "total > 300",
    "300 < total",
    "total[0] > 300 and iter > 60",
    "half[0, 1] == 20.0",
    "half[0] > 20",
    "any(half > 20)",
    "iter == 77",
    "iter > 70 or total < 0",
    "not total < 300",
    "total > prev(total) + 8",
    "shape(half) == [1, 2]",
    "number == 33",
    "number[0] == 33",
    "total[1] > 300",
    "half > 20",
    "isnan(total)",
    "abs(total - 300) < 4",
    "total / (iter - 50) > 1e30",
]


def counting(folder: Path) -> Debugger:
    """`total` grows by 4.5 in each of 200 iterations, from 0; `half` is a row of two that a piece is made of."""
    net = Graph()
    body = net.body()
    number, state = body.parameter("number", "i64"), body.parameter("state", dims=(1,))
    total = body.apply("Add", state, body.constant([4.5]), name="total")
    half = body.apply("Multiply", total, body.constant([[0.5, 0.25]]), name="half", dims=(1, 2))
    result = body.result(total)
    inputs, outputs = [carried(net.constant([0.0]), state, result)], [last(result), joined(body.result(half))]
    for output in net.loop("loop", body, 200, True, inputs, outputs, iteration=number):
        net.result(output)
    return Debugger(net.read(folder), {})


def stops(debugger: Debugger, condition: str) -> list[str]:
    """All stops of a run under this condition, each with its causes."""
    debugger.break_at("half", condition=condition)
    found = []
    while debugger.machine.outputs is None:
        stop = debugger.continue_()
        found.append(f"{debugger.machine.tick} {stop}")
    return found


@each_row("condition", CONDITIONS)
def test_a_condition_stops_where_asking_in_every_iteration_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, condition: str
) -> None:
    with monkeypatch.context() as always_asking:
        always_asking.setattr(breakpoints, "_value_watch", lambda ask, _test: ask)
        expected = stops(counting(tmp_path), condition)
    assert stops(counting(tmp_path), condition) == expected
