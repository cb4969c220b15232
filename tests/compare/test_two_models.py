"""A fault that was put into one of two twins is found: its place, its iteration, and what it is."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from stepper.compare.comparison import text_lines
from stepper.compare.references import protocol
from stepper.tensors.tolerances import Tolerances
from tests.compare.twins import X, compared, countdown, nested, recurrence
from tests.models import Graph, Side, carried, last
from tests.tables import each_row

FAULTS = {
    "type": ("summed", 1, ["is a Subtract", "Add"]),
    "approximation": ("h_next", 0, ["HardSigmoid", "Sigmoid"]),
    "transposed attribute": ("xW", 0, ["transpose_b", "'true' instead of nothing"]),
    "inserted": ("shifted", 0, ["Clamp 'clipped'", "max=0.1", "min=-0.1", "inserted"]),
    "skipped": ("noted", 0, ["Add 'shifted'", "skipped"]),
    "index": ("looked_up", 0, ["Add 'index' (with 1) is inserted", "Gather 'looked_up'"]),
    "old value": ("h_out", None, ["input 0 of Result 'h_out'", "Parameter 'h'", "old value"]),
    "one weight": ("W", 0, ["one element, [1, 2]", "by 0.001"]),
    "weight in f16": ("W", 0, ["rounded to f16"]),
    "transposed weight": ("W", 0, ["stored transposed"]),
    "another constant": ("W", 0, ["holds the numbers of Const 'U'"]),
    "zero weight": ("W", 0, ["zero throughout"]),
    "NaN": ("W", 0, ["NaN", "[1, 1]"]),
    "initial value": ("h", 0, ["initial value", "Const 'start'", "0.5 throughout instead of 0"]),
    "crossed": ("gain", 0, ["'gain'", "'bias'", "crossed"]),
    "no back edge": ("h", 1, ["no back edge", "Result 'h_out'", "never updated"]),
    "reversed slices": ("x_t", 0, ["stride -1 instead of 1", "reversed"]),
    "reversed output": ("y_out", None, ["output entry", "stride -1 instead of 1", "reversed"]),
    "trip count": ("trip_count", 5, ["value 5 instead of 6", "trip count of Loop 'cell'"]),
}
"""Fault -> the layer to blame, the first iteration where it shows, what the reason says. h is 0 in iteration 0."""


@each_row("fault", FAULTS)
def test_the_fault_is_named_with_its_layer_and_first_iteration(fault: str, tmp_path: Path) -> None:
    layer, iteration, words = FAULTS[fault]
    comparison = compared(tmp_path, recurrence(fault), recurrence(), X)
    verdict = comparison.verdict
    assert verdict is not None and verdict.loop is not None and verdict.layer is not None
    assert (verdict.loop.name, verdict.layer.name, verdict.iteration) == ("cell", layer, iteration), verdict.reason
    for word in words:
        assert word in verdict.reason


@each_row("twin", [recurrence, countdown, nested])
def test_twins_without_a_fault_agree_to_the_last_bit(twin: object, tmp_path: Path) -> None:
    assert callable(twin)
    inputs = {recurrence: X, countdown: np.float32([100]), nested: np.ones((2, 4), np.float32)}[twin]
    comparison = compared(tmp_path, twin(), twin(), inputs)
    assert not comparison.differs and not comparison.file_differences
    assert comparison.observations.compared > 20


@each_row(
    ("fault", "iteration", "runs", "words"),
    [
        ("inverted", 0, (1, 7), ["is a Less where the reference has a Greater", "inverted"]),
        ("old condition", 7, (8, 7), ["'going'", "Parameter 'value'", "old value of the previous iteration"]),
    ],
)
def test_a_wrong_condition_is_named_with_the_iteration_that_should_not_run_or_is_the_last(
    fault: str, iteration: int, runs: tuple[int, int], words: list[str], tmp_path: Path
) -> None:
    comparison = compared(tmp_path, countdown(fault), countdown(), np.float32([100]))
    verdict = comparison.verdict
    assert verdict is not None and verdict.layer is not None
    assert (verdict.layer.name, verdict.iteration) == ("going", iteration)
    for word in words:
        assert word in verdict.reason
    assert any("part of the execution condition" in detail for detail in verdict.details)
    (record,) = comparison.observations.loops.values()
    ((ours, theirs, _count),) = record.runs
    assert theirs is not None and (ours.iterations, theirs.iterations) == runs


@each_row("ours", ["endless", ""])
def test_a_loop_that_never_ends_on_one_side_does_not_keep_the_comparison_from_ending(ours: str, tmp_path: Path) -> None:
    theirs = "" if ours else "endless"
    comparison = compared(tmp_path, countdown(ours), countdown(theirs), np.float32([100]))
    verdict = comparison.verdict
    assert verdict is not None and verdict.layer is not None and verdict.layer.name == "factor"
    assert any("does not end" in detail for detail in verdict.details)


def test_the_place_in_nested_graphs_has_the_iteration_of_each_loop(tmp_path: Path) -> None:
    table = np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 1.0, 1.0, 0.1]], np.float32)  # above 2 first in row 1, at number 2
    comparison = compared(tmp_path, nested("branch"), nested(), table)
    verdict = comparison.verdict
    assert verdict is not None and verdict.layer is not None and verdict.layer.name == "half"
    assert [(step.layer.name, step.role, step.iteration) for step in verdict.path] == [
        ("outer", "body", 1),
        ("inner", "body", 2),
        ("choice", "then_body", None),
    ]


def test_error_made_in_an_operation_is_told_from_error_that_came_in(tmp_path: Path) -> None:
    observations = compared(tmp_path, recurrence("type"), recurrence(), X).observations
    made = {record.layer.name: record.first.origin for record in observations.records.values() if record.first}
    assert made["summed"] == "made here"
    assert {made[name] for name in ("scaled", "shifted", "noted", "h_next")} == {"carried in"}


def test_a_value_within_the_tolerance_is_traced_to_where_it_first_differed_at_all(tmp_path: Path) -> None:
    quiet_at_first = X * np.float32([[1e-3], [1], [1], [1], [1], [1]])  # the changed weight adds 1e-3 x, at most 1e-6
    loose = Tolerances(relative=0.0, absolute=1e-5)
    comparison = compared(tmp_path, recurrence("one weight"), recurrence(), quiet_at_first, tolerances=loose)
    verdict = comparison.verdict
    assert verdict is not None and verdict.iteration == 0
    assert comparison.observations.findings[0].path[-1].iteration == 1
    assert any("tolerance is exceeded first in iteration 1" in detail for detail in verdict.details)


def test_a_run_that_fails_on_our_side_is_a_finding_with_its_iteration(tmp_path: Path) -> None:
    comparison = compared(tmp_path, recurrence(steps=7), recurrence(), X)
    verdict = comparison.verdict
    assert verdict is not None and verdict.layer is not None
    assert (verdict.layer.name, verdict.iteration) == ("trip_count", 6)
    assert "7 instead of 6" in verdict.reason
    assert any("has no slice" in detail for detail in verdict.details)


def two_outputs(first: str, second: str, *, swapped: bool) -> Graph:
    """y = log(x) and s = x + x, whose tensors have these names; the outputs stand in one order or the other."""
    net = Graph()
    x = net.parameter("x", "f32", (3,), names="x")
    y = net.apply("Log", x, name="y", names=first)
    total = net.apply("Add", x, x, name="s", names=second)
    for place, value in enumerate((total, y) if swapped else (y, total)):
        net.result(value, f"Result_{place}")
    return net


def test_outputs_are_held_against_those_whose_tensors_have_the_same_names(tmp_path: Path) -> None:
    ours, given = two_outputs("y", "s", swapped=False), np.full(3, 2, np.float32)
    assert not compared(tmp_path, ours, two_outputs("y", "s", swapped=True), given).differs
    assert compared(tmp_path, ours, two_outputs("s", "y", swapped=True), given).differs, "by their names, not places"


def counted(steps: int | None) -> Graph:
    """x + steps in a loop, doubled; None for no loop, -1 for one without an end."""
    net = Graph()
    x = net.parameter("x", dims=(1,))
    value = x
    if steps is not None:
        body = net.body()
        h = body.parameter("h", dims=(1,))
        result = body.result(body.apply("Add", h, body.constant([1.0]), name="s"))
        (value,) = net.loop("lp", body, steps, True, [carried(x, h, result)], [last(result)])
    net.result(net.apply("Multiply", value, net.constant([2.0]), name="r"), "out")
    return net


def test_a_long_loop_that_the_reference_has_not_is_run_to_its_end(tmp_path: Path) -> None:
    comparison = compared(tmp_path, counted(1500), counted(None), np.float32([1]))
    (output,) = comparison.observations.outputs
    assert comparison.differs and output.measure is not None and output.measure.absolute == 2 * (1 + 1500) - 2 * 1


def test_an_endless_loop_that_the_reference_has_not_is_given_up_and_no_agreement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(protocol, "_MOST_ALONE", 1200)
    comparison = compared(tmp_path, counted(-1), counted(None), np.float32([1]))
    assert (
        comparison.differs and "does not end: it was stopped after 1201 iterations" in comparison.observations.given_up
    )
    assert any("does not end" in line for line in text_lines(comparison))


def test_an_endless_loop_that_the_reference_alone_has_is_given_up(tmp_path: Path) -> None:
    verdict = compared(tmp_path, counted(None), counted(-1), np.float32([1])).verdict
    assert verdict is not None and any("does not end" in text for text in (verdict.reason, *verdict.details))


def chosen(added: float, *, in_loop: bool) -> Graph:
    """x + added, doubled in the branch of an If that is always taken; also in the body of a loop."""
    net = Graph()
    x = net.parameter("x", dims=(1,))
    around, value = net, x
    if in_loop:
        around = net.body()
        value = around.parameter("h", dims=(1,))
    a = around.apply("Add", value, around.constant([added]), name="a")
    sides = []
    for name in ("then", "else"):
        body = around.body()
        p = body.parameter(f"{name}_p", dims=(1,))
        doubled = body.result(body.apply("Multiply", p, body.constant([2.0]), name=f"{name}_t"))
        sides.append(Side(body, [(a, p)], [doubled]))
    (out,) = around.branch("choice", around.constant(True, np.bool_), *sides)
    if in_loop:
        result = around.result(out)
        (out,) = net.loop("steps", around, 3, True, [carried(x, value, result)], [last(result)])
    net.result(out)
    return net


@each_row("in_loop", [False, True])
def test_what_differs_where_it_enters_a_branch_was_carried_in(in_loop: bool, tmp_path: Path) -> None:
    ours, theirs = chosen(1.0, in_loop=in_loop), chosen(1.5, in_loop=in_loop)
    observations = compared(tmp_path, ours, theirs, np.float32([1])).observations
    made = {record.layer.name: record.first.origin for record in observations.records.values() if record.first}
    assert made["a"] == "made here" and made["then_p"] == made["then_t"] == "carried in"
