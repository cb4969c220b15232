"""Results of a loop body and the outputs of the loop that they feed: last values and concatenations."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import openvino.opset13 as ops

from stepper.diagnosis.hunt.generator.adaptation import reshaped, touched
from stepper.diagnosis.hunt.generator.port_maps import CarriedState, PortMapDraft, SliceChoice, slicing_along
from stepper.diagnosis.hunt.generator.values import ALL_TYPES, Value

LONGEST_PART = 3
"""Length of the longest part that a TensorIterator concatenates."""


@dataclass(frozen=True)
class MappedOutput:
    """An output of the loop: a body Result, as its last value or concatenated along an axis."""

    result: Any
    value: Value
    slicing: SliceChoice | None

    def connect(self, node: Any) -> None:
        """Make this an output of the loop's node."""
        port = self.result.output(0)
        if self.slicing is None:
            node.get_iter_value(port, -1)
            return
        cut = self.slicing
        node.get_concatenated_slices(port, cut.start, cut.stride, cut.part_size, cut.end, cut.axis)


@dataclass
class BodyResults:
    """The Results of one body while they are being chosen; those of the back edges come first."""

    port_map: PortMapDraft
    results: list[Any] = field(default_factory=list)
    outputs: list[MappedOutput] = field(default_factory=list)
    unmapped: list[Any] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Make the Results that the back edges carry."""
        for state in self.port_map.carried:
            if state.shared_with is None:
                assert state.following is not None
                state.result = self.result(state.following)
        for state in self.port_map.carried:
            if state.shared_with is not None:
                state.result = state.shared_with.result

    def result(self, value: Value) -> Any:
        """A new Result of this value."""
        if value in self.port_map.body.unused:
            self.port_map.body.unused.remove(value)
        self.results.append(ops.result(value.output))
        return self.results[-1]

    def expose(self, result: Any, value: Value, slicing: SliceChoice | None = None) -> None:
        """Make the Result an output of the loop."""
        if any(output.result is result for output in self.outputs):
            self.port_map.note("one Result feeds several outputs")
        self.outputs.append(MappedOutput(result, value, slicing))
        self.port_map.note("last value" if slicing is None else f"concatenated stride {slicing.stride}")
        if slicing is not None and not value.rank:
            self.port_map.note("scalars concatenated")

    def expose_either_way(self, result: Any, value: Value) -> None:
        """An output from the Result, concatenated if its shape allows that and chance wills it."""
        slicing = random_concatenation(self.port_map, value)
        concatenate = slicing is not None and self.port_map.outer.chance(0.5)
        self.expose(result, value, slicing if concatenate else None)

    def expose_alone(self, value: Value, concatenate: bool) -> tuple[Any, Value]:
        """An output from a new Result, given an axis of length 1 if it lacks one to be concatenated along."""
        rng = self.port_map.outer.rng
        slicing = random_concatenation(self.port_map, value) if concatenate else None
        if concatenate and slicing is None:
            place = rng.randint(0, value.rank)
            value = reshaped(self.port_map.body, value, (*value.shape[:place], 1, *value.shape[place:]))
            backwards = self.port_map.kind == "TensorIterator" and rng.random() < 0.4
            slicing = slicing_along(place, -1 if backwards else 1, 0)
        result = self.result(value)
        self.expose(result, value, slicing)
        return result, value


def random_concatenation(port_map: PortMapDraft, value: Value) -> SliceChoice | None:
    """Along which axis, in which order, the value can be concatenated as it is."""
    rng = port_map.outer.rng
    longest = LONGEST_PART if port_map.kind == "TensorIterator" else 1
    sizes = value.shape or (1,)
    axes = [axis for axis, size in enumerate(sizes) if 0 < size <= longest]
    if not axes:
        return None
    axis = rng.choice(axes)
    backwards = port_map.kind == "TensorIterator" and rng.random() < 0.4
    return slicing_along(axis, -sizes[axis] if backwards else sizes[axis], 0)


def choose_outputs(chosen: BodyResults) -> None:
    """Outputs from the back edges' Results and from Results of their own; at least one."""
    port_map = chosen.port_map
    for state in port_map.carried:
        if state.shared_with is None:
            expose_state(chosen, state)
    concatenations_only = not port_map.runs
    counts = (0, 1, 1, 2) if port_map.outer.path else (1, 1, 2, 3)
    for _ in range(port_map.outer.rng.choice((0, 1) if concatenations_only else counts)):
        expose_fresh(chosen, concatenations_only)
    if port_map.outer.chance(0.1):
        chosen.unmapped.append(chosen.result(fresh_value(port_map)))
        port_map.note("Result not mapped")
    if not chosen.outputs:
        expose_fresh(chosen, concatenations_only)


def expose_state(chosen: BodyResults, state: CarriedState) -> None:
    """The outputs that a carried state's Result feeds."""
    rng, value = chosen.port_map.outer.rng, state.following
    assert value is not None
    if state.role == "growing" or rng.random() < 0.6 or not chosen.port_map.runs:
        chosen.expose(state.result, value)
    if state.role != "growing" and rng.random() < 0.35:
        slicing = random_concatenation(chosen.port_map, value)
        if slicing is not None:
            chosen.expose(state.result, value, slicing)


def fresh_value(port_map: PortMapDraft) -> Value:
    """A value of the body that no Parameter's memory backs."""
    body = port_map.body
    value = body.pick(ALL_TYPES, lambda v: v.rooted and v.computed) if body.chance(0.8) else None
    value = value or body.pick(ALL_TYPES, lambda v: v.rooted) or port_map.parameters()[0]
    return touched(body, value)


def expose_fresh(chosen: BodyResults, concatenations_only: bool) -> None:
    """A Result of its own and one or two outputs that it feeds."""
    rng = chosen.port_map.outer.rng
    result, value = chosen.expose_alone(fresh_value(chosen.port_map), concatenations_only or rng.random() < 0.6)
    if not concatenations_only and rng.random() < 0.2:
        chosen.expose_either_way(result, value)
