"""Inputs and back edges of a loop: what is sliced and how, what stays, what is carried from one iteration to the next.

Slices are drawn only in the shapes that the specification and the runtime read alike: the whole axis forwards or
backwards, or an axis of which the last slices taken are left over.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import openvino.opset13 as ops

from stepper.diagnosis.hunt.generator.adaptation import adapted, limit, touched
from stepper.diagnosis.hunt.generator.operations import cell, matrix
from stepper.diagnosis.hunt.generator.values import (
    ALL_TYPES,
    DTYPES,
    LARGEST_BOUND,
    NUMBERS,
    USUAL_BOUND,
    GraphScope,
    Value,
    random_shape,
)

INPUT_TYPES = ("f32", "f32", "f32", "f32", "f32", "f16", "i32", "i64", "u8", "boolean")


@dataclass(frozen=True)
class SliceChoice:
    """How an axis is cut: attributes of one port map entry."""

    axis: int
    start: int
    end: int
    stride: int
    part: int = 0

    @property
    def part_size(self) -> int:
        """Length of one slice, that of the stride unless it was chosen."""
        return self.part or abs(self.stride)

    @property
    def left_over(self) -> int:
        """Elements at the end of the axis, as the slices run, that belong to no slice."""
        return -1 - self.end if self.stride > 0 else self.end


@dataclass(frozen=True)
class SlicedEntry:
    """A body Parameter that takes one slice in each iteration."""

    parameter: Value
    outer: Value
    slicing: SliceChoice

    @property
    def feature(self) -> str:
        """Features of this input."""
        rest = ", slices left over" if self.slicing.left_over else ""
        return f"sliced stride {self.slicing.stride}{rest}"

    def connect(self, node: Any) -> None:
        """Make this an input of the loop's node."""
        cut = self.slicing
        parameter = self.parameter.output.get_node()
        node.set_sliced_input(parameter, self.outer.output, cut.start, cut.stride, cut.part_size, cut.end, cut.axis)


@dataclass(frozen=True)
class InvariantEntry:
    """A body Parameter that keeps its value."""

    parameter: Value
    outer: Value

    @property
    def feature(self) -> str:
        """Features of this input."""
        return "invariant input"

    def connect(self, node: Any) -> None:
        """Make this an input of the loop's node."""
        node.set_invariant_input(self.parameter.output.get_node(), self.outer.output)


@dataclass
class CarriedState:
    """A body Parameter with an initial value and a back edge."""

    parameter: Value
    outer: Value
    role: str
    following: Value | None = None
    shared_with: CarriedState | None = None
    result: Any = None

    @property
    def feature(self) -> str:
        """Features of this state."""
        return f"carried: {self.role}"

    def connect(self, node: Any) -> None:
        """Make this an input of the loop's node."""
        node.set_merged_input(self.parameter.output.get_node(), self.outer.output, self.result.output(0))


@dataclass
class PortMapDraft:
    """Inputs and states of one loop, while its body is being built."""

    outer: GraphScope
    body: GraphScope
    kind: str
    iterations: int
    runs: bool = True
    sliced: list[SlicedEntry] = field(default_factory=list)
    invariant: list[InvariantEntry] = field(default_factory=list)
    carried: list[CarriedState] = field(default_factory=list)
    iteration: Value | None = None

    def entries(self) -> list[SlicedEntry | InvariantEntry | CarriedState]:
        """Everything that an input of the loop feeds."""
        return [*self.sliced, *self.invariant, *self.carried]

    def parameters(self) -> list[Value]:
        """The Parameters of the body, so far as anything feeds them."""
        fed = [entry.parameter for entry in self.entries()]
        return fed if self.iteration is None else [*fed, self.iteration]

    def note(self, feature: str) -> None:
        """Remember that the model shows this feature."""
        self.outer.features.add(feature)


def slicing_along(axis: int, stride: int, left_over: int) -> SliceChoice:
    """The slicing of a whole axis in the direction of the stride, but for the last `left_over` elements."""
    if stride > 0:
        return SliceChoice(axis, 0, -1 - left_over, stride)
    return SliceChoice(axis, -1, left_over, stride)


def slicing_of(port_map: PortMapDraft, axis: int, stride: int) -> tuple[SliceChoice, int]:
    """A slicing with this stride and the axis length that gives it enough slices."""
    rng, part = port_map.outer.rng, abs(stride)
    left_over = rng.choice((0, 0, 0, 1, 2)) * (part if stride < 0 or port_map.kind == "Loop" else 1)
    unused = rng.choice((0, 0, 1)) if port_map.kind == "Loop" else 0
    extent = (port_map.iterations + unused) * part + left_over
    if part > 1 and port_map.outer.is_free(port_map.outer.freedom.slices):
        size = rng.randint(1, part + 1)
        port_map.note("parts unlike the stride")
        return replace(slicing_along(axis, stride, left_over), part=size), extent - part + size
    return slicing_along(axis, stride, left_over), extent


def add_slice(port_map: PortMapDraft, outer: Value, slicing: SliceChoice) -> Value:
    """A body Parameter that reads slices of `outer`."""
    shape = list(outer.shape)
    shape[slicing.axis] = slicing.part_size
    parameter = port_map.body.parameter(shape, outer.element_type, outer.bound, outer.coarse)
    port_map.sliced.append(SlicedEntry(parameter, outer, slicing))
    return port_map.body.keep(parameter)


def add_sliced(port_map: PortMapDraft, element_type: str | None = None) -> Value:
    """A sliced input of random rank, axis and stride, at times read by a second Parameter in another way."""
    rng = port_map.outer.rng
    rank = rng.choice((1, 2, 2, 2, 3, 3, 4))
    axis = rng.randrange(rank)
    stride = rng.choice((1, 1, 1, 1, -1, -1, -1, 2, -2, 3, -3))
    slicing, extent = slicing_of(port_map, axis, stride)
    shape = list(random_shape(rng, rank, largest=2 if rank == 4 else 4))
    shape[axis] = extent
    outer = port_map.outer.obtain(element_type or rng.choice(INPUT_TYPES), tuple(shape))
    parameter = add_slice(port_map, outer, slicing)
    if rng.random() < 0.2:
        read_again(port_map, outer, slicing)
    return parameter


def read_again(port_map: PortMapDraft, outer: Value, slicing: SliceChoice) -> None:
    """A second Parameter fed from the same outer value: unsliced, or cut from the other end."""
    extent = outer.shape[slicing.axis]
    if extent % slicing.part_size or port_map.outer.chance(0.3):
        add_invariant(port_map, outer)
        return
    add_slice(port_map, outer, slicing_along(slicing.axis, -slicing.stride, slicing.left_over))


def add_invariant(port_map: PortMapDraft, outer: Value | None = None) -> None:
    """An input that every iteration sees whole."""
    rng = port_map.outer.rng
    if outer is None:
        outer = port_map.outer.obtain(rng.choice(INPUT_TYPES), random_shape(rng, rng.randint(0, 3)))
    parameter = port_map.body.parameter_for(outer)
    port_map.invariant.append(InvariantEntry(parameter, outer))
    port_map.body.keep(parameter)


def add_state(port_map: PortMapDraft, initial: Value, bound: float, role: str) -> CarriedState:
    """A carried state that starts from `initial` and never exceeds `bound`."""
    coarse = initial.coarse or initial.element_type == "f16"
    parameter = port_map.body.parameter(initial.shape, initial.element_type, max(bound, initial.bound), coarse)
    state = CarriedState(parameter, initial, role)
    port_map.carried.append(state)
    port_map.body.keep(parameter)
    return state


def fresh_state(port_map: PortMapDraft, element_type: str, shape: tuple[int, ...], role: str) -> CarriedState:
    """A carried state with an initial value from outside."""
    bound = USUAL_BOUND[element_type]
    return add_state(port_map, port_map.outer.obtain(element_type, shape, bound), bound, role)


def add_carried(port_map: PortMapDraft) -> None:
    """One or two carried states in a random role."""
    rng = port_map.outer.rng
    element_type = rng.choice(ALL_TYPES if rng.random() < 0.35 else ("f32",))
    shape = random_shape(rng, rng.randint(0, 3))
    role = rng.choice(("free", "free", "free", "sum", "swap", "fan", "recurrent"))
    if role == "sum" and element_type in NUMBERS:
        add_sum(port_map, element_type, shape)
    elif role in ("swap", "fan") and port_map.runs:
        add_pair(port_map, [fresh_state(port_map, element_type, shape, role) for _ in range(2)], role)
    elif role == "recurrent":
        add_recurrent(port_map)
    else:
        fresh_state(port_map, element_type, shape, "free")


def add_pair(port_map: PortMapDraft, pair: list[CarriedState], role: str) -> None:
    """Two states fed by one Result, or each by what computing makes of the other."""
    first, second = pair
    if first.parameter.coarse != second.parameter.coarse:
        return
    if role == "fan":
        second.shared_with = first
        return
    first.following = touched(port_map.body, second.parameter)
    second.following = touched(port_map.body, first.parameter)


def add_sum(port_map: PortMapDraft, element_type: str, shape: tuple[int, ...]) -> None:
    """A state to which something from the body is added in each iteration."""
    bound = USUAL_BOUND[element_type]
    initial = port_map.outer.obtain(element_type, shape, bound)
    add_state(port_map, initial, bound * (port_map.iterations + 1), "sum")


def add_counter(port_map: PortMapDraft, step: int = 1) -> CarriedState:
    """A whole number that grows by `step` in each iteration."""
    rng = port_map.outer.rng
    array = np.full(rng.choice(((), (1,))), rng.randint(0, 2), rng.choice((np.int32, np.int64)))
    initial = port_map.outer.exactly(array)
    state = add_state(port_map, initial, float(array.max() + step * port_map.iterations), "counter")
    increment = ops.constant(np.array(step, DTYPES[initial.element_type]))
    node = ops.add(state.parameter.output, increment)
    state.following = port_map.body.keep(port_map.body.derive(node, (state.parameter,), state.parameter.bound))
    return state


def add_recurrent(port_map: PortMapDraft) -> None:
    """The states of a recurrent cell over the first value that the body can offer."""
    rng, body = port_map.outer.rng, port_map.body
    kind = rng.choice(("LSTMCell", "GRUCell", "RNNCell"))
    shape = (rng.randint(1, 2), rng.randint(1, 3))
    states = [fresh_state(port_map, "f32", shape, "recurrent") for _ in range(2 if kind == "LSTMCell" else 1)]
    if kind == "LSTMCell":
        states[1].parameter = widened(port_map, states[1])
    data = matrix(body, (shape[0], rng.randint(1, 3)))
    following = cell(body, data, [state.parameter for state in states], kind)
    for state, value in zip(states, following, strict=True):
        state.following = value
    port_map.note(kind)


def widened(port_map: PortMapDraft, state: CarriedState) -> Value:
    """The state's Parameter with room for a cell state that grows by at most one in each iteration."""
    old = state.parameter
    bound = old.bound + port_map.iterations
    new = replace(old, bound=bound)
    port_map.body.values[port_map.body.values.index(old)] = new
    port_map.body.unused[port_map.body.unused.index(old)] = new
    return new


def add_growing(port_map: PortMapDraft) -> None:
    """A state that gains one row in each iteration; only its reduction is offered to the body."""
    rng, body = port_map.outer.rng, port_map.body
    width = rng.randint(1, 3)
    initial = port_map.outer.obtain("f32", (rng.randint(1, 2), width))
    parameter = body.parameter((-1, width), "f32", max(1.5, initial.bound), initial.coarse)
    state = CarriedState(parameter, initial, "growing")
    port_map.carried.append(state)
    make = rng.choice((ops.reduce_sum, ops.reduce_max))
    summary = make(parameter.output, ops.constant(np.array([0], np.int64)), rng.random() < 0.5)
    body.keep(limit(body, body.derive(summary, (parameter,), parameter.bound * 9), LARGEST_BOUND["f32"]))


def close(port_map: PortMapDraft) -> None:
    """Choose what every state without one becomes in the next iteration."""
    for state in port_map.carried:
        if state.following is None and state.shared_with is None:
            own = not port_map.runs
            state.following = following(port_map.body, state, port_map.iterations, from_itself=own)
    for state in port_map.carried:
        if state.shared_with is not None:
            state.following = state.shared_with.following


def following(body: GraphScope, state: CarriedState, iterations: int, *, from_itself: bool) -> Value:
    """The next value of a state, made from something that the body has computed or from the state alone."""
    parameter = state.parameter
    element_type = parameter.element_type
    shape = (1, parameter.shape[1]) if state.role == "growing" else parameter.shape
    source = body.pick(ALL_TYPES, lambda v: v.rooted and v is not parameter and (parameter.coarse or not v.coarse))
    source = parameter if source is None or from_itself else source
    usual = USUAL_BOUND[element_type]
    if state.role == "growing":
        row = touched(body, adapted(body, source, "f32", shape, 1.5))
        node = ops.concat([parameter.output, row.output], 0)
        return body.derive(node, (parameter, row), parameter.bound)
    if state.role == "sum":
        share = (parameter.bound - state.outer.bound) / max(iterations, 1)
        addend = adapted(body, source, element_type, shape, min(share, usual))
        return body.derive(ops.add(parameter.output, addend.output), (parameter, addend), parameter.bound)
    return touched(body, adapted(body, source, element_type, shape, parameter.bound))
