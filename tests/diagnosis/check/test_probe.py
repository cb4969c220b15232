"""A run that is probed ends at its deadline, also in bodies that are no longer looked at."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import stepper
from stepper.diagnosis.check.probe import Deadline, probe_run
from stepper.engine.machine import Machine
from tests.models import Graph, carried, last

OFTEN, LONG, OVER = 600, 100_000, 20_000


def net_of_two() -> Graph:
    """A loop in a loop: the inner one makes one iteration in the first OFTEN runs, and then LONG ones."""
    net = Graph()
    x, outer = net.parameter("x", dims=(1,)), net.body()
    state, t = outer.parameter("state", dims=(1,)), outer.parameter("t", "i64")
    is_early = outer.apply("Less", t, outer.constant(OFTEN, np.int64), type="boolean")
    count = outer.apply("Select", is_early, outer.constant(1, np.int64), outer.constant(LONG, np.int64), type="i64")
    inner = outer.body()
    h = inner.parameter("h", dims=(1,))
    added = inner.result(inner.apply("Add", h, inner.constant([1.0])))
    (end,) = outer.loop("inner", inner, count, True, [carried(state, h, added)], [last(added)])
    result = outer.result(end)
    (out,) = net.loop("outer", outer, OFTEN + 2, True, [carried(x, state, result)], [last(result)], iteration=t)
    net.result(out)
    return net


def test_the_deadline_holds_in_a_body_that_was_looked_at_often_enough(tmp_path: Path) -> None:
    machine = Machine(stepper.compile_model(net_of_two().read(tmp_path)), [np.zeros(1, np.float32)])

    class OverAtATick(Deadline):
        @property
        def is_over(self) -> bool:
            return machine.tick >= OVER

    probe = probe_run(machine, (), OverAtATick(1.0))
    assert not probe.is_whole and OVER <= machine.tick < 2 * OVER
