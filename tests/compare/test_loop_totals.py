"""Loops of which another runtime tells only how many iterations they ran in all: those in loops, those in branches."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import stepper
from stepper.compare.comparison import RunComparison, compare_with, text_lines
from stepper.compare.references.openvino import OpenVINOReference
from stepper.element_types import Array
from stepper.engine.machine import Machine
from stepper.errors import ExecutionError, KernelError
from stepper.ir.model import Layer, LoopKey, Model
from stepper.openvino.peer import JointOperations
from tests.compare.twins import Begun
from tests.engine.nested_models import loops_in_branches


class Counting:
    """A runtime that computes nothing by itself, and counts what it is told."""

    def __init__(self, outputs: list[Array], iterations: dict[LoopKey, int]) -> None:
        self._outputs, self._iterations = outputs, iterations

    notes: Sequence[str] = ()

    def give_up(self) -> None:
        raise AssertionError("nothing of it goes on by itself")

    def begin(self, _inputs: Any, *, seconds: float | None = None) -> Any:
        assert seconds is None
        return lambda: self._outputs

    def run_anew(self, _inputs: Any, *, seconds: float | None = None) -> Any:
        raise AssertionError("all outputs agree")

    def begin_counting(self, _inputs: Any, *, seconds: float | None = None) -> Any:
        assert seconds is None
        return lambda: self._iterations

    def begin_again(self, *_given: Any) -> Any:
        raise ExecutionError("it runs one way alone")

    def together(self, *_given: Any, **_options: Any) -> JointOperations:
        return JointOperations((), (), (), _refuse)

    def operation(self, _graph: Any, _layer: Any) -> Any:
        return _refuse

    def body(self, _graph: Any) -> Any:
        return Begun(_refuse)

    def iterated_body(self, _graph: Any, _stacked: Any) -> Any:
        return Begun(_refuse)


def _refuse(*_inputs: Any) -> Any:
    raise KernelError("not here")


def keys(model: Model) -> dict[str, LoopKey]:
    """Of the loops by their names."""
    (choice,) = (layer for layer in model.graph.layers if layer.bodies)
    then = choice.bodies[0]
    (rounds,) = (layer for layer in then.graph.layers if layer.is_loop)
    (branch,) = (layer for layer in rounds.bodies[0].graph.layers if layer.bodies)
    found: dict[str, LoopKey] = {"rounds": (choice.id, then.role, rounds.id)}
    for body in branch.bodies:
        loop: Layer = next(layer for layer in body.graph.layers if layer.is_loop)
        found[loop.name] = (choice.id, then.role, rounds.id, branch.id, body.role, loop.id)
    assert found["3 times"][-1] == found["2 times"][-1], "the role of the body tells them apart"
    return found


def compared(folder: Path, counts: dict[str, int], *, many: bool = True) -> RunComparison:
    model = loops_in_branches().read(folder)
    inputs = stepper.bind_inputs(model, {"many": many, "n": 3, "x": np.float32(1)})
    outputs = list(stepper.run(model, dict(enumerate(inputs))).values())
    iterations = {key: counts.get(name, 0) for name, key in keys(model).items()}
    reference = OpenVINOReference(Counting(outputs, iterations), inputs, "the other")
    return compare_with(Machine(stepper.compile_model(model), inputs), reference)


def test_loops_in_branches_are_compared(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {"rounds": 3, "3 times": 6, "2 times": 2})
    assert not comparison.differs
    records = {record.layer.name: record for record in comparison.observations.loops.values()}
    assert (records["3 times"].total, records["2 times"].total) == (6, 2)
    ((ours, theirs, count),) = records["rounds"].runs
    assert theirs is not None and (ours.iterations, theirs.iterations, count) == (3, 3, 1)
    assert (ours.ended, theirs.ended) == ("trip count reached", "trip count reached")


@pytest.mark.parametrize(("name", "count"), [("3 times", 5), ("2 times", 4), ("rounds", 2)])
def test_another_count_is_found(tmp_path: Path, name: str, count: int) -> None:
    comparison = compared(tmp_path, {"rounds": 3, "3 times": 6, "2 times": 2, name: count})
    assert comparison.verdict is not None and comparison.verdict.loop is not None
    assert comparison.verdict.loop.name == name
    assert f"{count} iterations" in comparison.verdict.reason


def test_a_loop_that_ran_on_the_other_side_alone_is_found(tmp_path: Path) -> None:
    assert not compared(tmp_path, {}, many=False).differs
    comparison = compared(tmp_path, {"2 times": 2}, many=False)
    assert comparison.verdict is not None and comparison.verdict.loop is not None
    assert comparison.verdict.loop.name == "2 times"
    assert "    0 in all | 2 in all  <- differs" in text_lines(comparison)


def test_of_a_loop_in_a_branch_that_the_other_did_not_take_no_end_is_told(tmp_path: Path) -> None:
    comparison = compared(tmp_path, {})
    rounds = next(one for one in comparison.observations.loops.values() if one.layer.name == "rounds")
    assert [(theirs.iterations, theirs.ended) for _, theirs, _ in rounds.runs if theirs] == [(0, "")]
