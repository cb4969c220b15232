"""Of births of NaN and Inf it is known which come from one another: as they were put into the models."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from stepper.debug.causes.cause import Link
from stepper.debug.causes.run_walk import EarlierFrames, ValueSpot
from stepper.debug.debugger import Debugger
from stepper.debug.overview import runs
from stepper.debug.overview.overview_facts import RowKind
from stepper.debug.timeline import Timeline
from tests.debug.debugged import opened, sample
from tests.models import Graph, carried, joined, last


def related(debugger: Debugger) -> list[tuple[str, str]]:
    """The operation of each birth in time, and that of the one from which it comes."""
    found = debugger.run_overview().births
    names = {one.tick: one.cause.location.operation.name for one in found if one.cause.location.operation is not None}
    return [(names[one.tick], "" if one.after is None else names[one.after]) for one in found]


def test_a_nan_of_an_inf_comes_from_its_birth_an_iteration_before() -> None:
    assert related(sample("rwkv_overflow")) == [("exp_key", ""), ("wkv", "exp_key")]


def test_what_a_pause_has_interrupted_is_found_out_later(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses, birth_of = iter([True]), runs.birth_of

    def paused_once(frames: EarlierFrames, timeline: Timeline, spot: ValueSpot) -> Link | None:
        if next(pauses, False):
            timeline.machine.request_pause()
        return birth_of(frames, timeline, spot)

    monkeypatch.setattr(runs, "birth_of", paused_once)
    debugger = sample("rwkv_overflow")
    assert not debugger.run_overview().looked_through
    assert related(debugger) == [("exp_key", ""), ("wkv", "exp_key")]


def test_of_one_tensor_another_element_that_is_infinite_is_no_origin(tmp_path: Path) -> None:
    net = Graph()
    x = net.parameter("x", dims=(3,))
    minus = net.apply("Subtract", net.apply("Exp", x, name="exp"), net.constant(np.float32([100] * 3)), name="minus")
    log = net.apply("Log", minus, name="log")  # NaN of exp(1) - 100, beside the Inf of exp(200)
    net.result(net.apply("Subtract", minus, minus, name="difference"), "zero")
    net.result(log, "out")
    found = related(opened(tmp_path, net, np.float32([1, 200, 2])))
    assert sorted(found) == [("difference", "exp"), ("exp", ""), ("log", "")]


def test_births_of_their_own_in_a_loop_and_one_that_comes_from_the_first_of_them(tmp_path: Path) -> None:
    net = Graph()
    body = net.body()
    k, held = body.parameter("k", "f32", (1,)), body.parameter("held", "f32", (1,))
    one = body.constant(np.float32([1]))
    root = body.apply("Sqrt", body.apply("Subtract", body.constant(np.float32([1.5])), k), name="root")  # NaN from 2 on
    inverse = body.apply("Divide", one, body.apply("Subtract", k, body.constant(np.float32([1]))), name="inverse")
    cancelled = body.apply("Subtract", held, held, name="cancelled")  # NaN in 2, of the Inf that was handed on in 1
    after = body.result(body.apply("Add", k, one), "k_next")
    hands_on = body.result(inverse, "held_next")
    outputs = [joined(body.result(root, "roots")), joined(body.result(cancelled, "zeros")), last(hands_on)]
    begin = [
        carried(net.parameter("k0", "f32", (1,)), k, after),
        carried(net.constant(np.float32([0])), held, hands_on),
    ]
    for place, output in enumerate(net.loop("mixed", body, 4, True, begin, outputs)):
        net.result(output, f"out_{place}")
    found = related(opened(tmp_path, net, np.float32([0])))
    assert sorted(found) == [("cancelled", "inverse"), ("inverse", ""), ("root", "")]


def test_a_birth_has_a_row_in_its_own_loop_whatever_lines_the_file_has(tmp_path: Path) -> None:
    net = Graph()
    for name in "AB":  # bodies with the same ids
        x, body = net.parameter(f"x{name}", dims=(1,)), net.body()
        p = body.parameter("p", dims=(1,))
        root = body.apply("Sqrt", p, name=f"root{name}")
        following = body.result(body.apply("Multiply", root, body.constant([1.0])), "next")
        net.result(net.loop(name, body, 3, True, [carried(x, p, following)], [last(following)])[0])
    path = net.write(tmp_path)
    path.write_text(re.sub(r"\n\s*", " ", path.read_text()))
    overview = Debugger(path, {0: np.float32([-1]), 1: np.float32([1])}).run_overview()
    rows = [(one.layer.name, row) for one in overview.loops for row in one.rows]
    assert [(loop, row.inner.name) for loop, row in rows if row.kind is RowKind.BIRTH] == [("A", "rootA")]
