"""Inputs and back edges of a loop: what is sliced and how, what stays, what is carried from one iteration to the next.

Slices are drawn only in the shapes that the specification and the runtime read alike: the whole axis forwards or
backwards, or an axis of which the last slices taken are left over.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import openvino.opset13 as ops

from stepper.diagnosis.hunt.random_operations import (
    ALL_TYPES,
    CAREFUL,
    FLOATS,
    INTEGERS,
    LARGEST_BOUND,
    NUMBERS,
    USUAL_BOUND,
    Freedom,
    GraphScope,
    Value,
    adapted,
    cell,
    flattened_sum,
    integers,
    limit,
    matrix,
    random_array,
    random_shape,
    reshaped,
    touched,
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
    """Inputs, states, Results and outputs of one loop, while its body is being built."""

    outer: GraphScope
    body: GraphScope
    kind: str
    iterations: int
    runs: bool = True
    sliced: list[SlicedEntry] = field(default_factory=list)
    invariant: list[InvariantEntry] = field(default_factory=list)
    carried: list[CarriedState] = field(default_factory=list)
    iteration: Value | None = None
    results: list[Any] = field(default_factory=list)
    outputs: list[MappedOutput] = field(default_factory=list)
    unmapped: list[Any] = field(default_factory=list)

    @property
    def rng(self) -> random.Random:
        """Random numbers, from which all is drawn."""
        return self.outer.rng

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

    def add_carried_results(self) -> None:
        """Make the Results that the back edges carry; they come first."""
        for state in self.carried:
            if state.shared_with is None:
                assert state.following is not None
                state.result = self.result(state.following)
        for state in self.carried:
            if state.shared_with is not None:
                state.result = state.shared_with.result

    def result(self, value: Value) -> Any:
        """A new Result of this value."""
        if value in self.body.unused:
            self.body.unused.remove(value)
        self.results.append(ops.result(value.output))
        return self.results[-1]

    def expose(self, result: Any, value: Value, slicing: SliceChoice | None = None) -> None:
        """Make the Result an output of the loop."""
        if any(output.result is result for output in self.outputs):
            self.note("one Result feeds several outputs")
        self.outputs.append(MappedOutput(result, value, slicing))
        self.note("last value" if slicing is None else f"concatenated stride {slicing.stride}")
        if slicing is not None and not value.rank:
            self.note("scalars concatenated")

    def expose_either_way(self, result: Any, value: Value) -> None:
        """An output from the Result, concatenated if its shape allows that and chance wills it."""
        slicing = random_concatenation(self, value)
        concatenate = slicing is not None and self.outer.chance(0.5)
        self.expose(result, value, slicing if concatenate else None)

    def expose_alone(self, value: Value, concatenate: bool) -> tuple[Any, Value]:
        """An output from a new Result, given an axis of length 1 if it lacks one to be concatenated along."""
        rng = self.rng
        slicing = random_concatenation(self, value) if concatenate else None
        if concatenate and slicing is None:
            place = rng.randint(0, value.rank)
            value = reshaped(self.body, value, (*value.shape[:place], 1, *value.shape[place:]))
            backwards = self.kind == "TensorIterator" and rng.random() < 0.4
            slicing = slicing_along(place, -1 if backwards else 1, 0)
        result = self.result(value)
        self.expose(result, value, slicing)
        return result, value


def slicing_along(axis: int, stride: int, left_over: int) -> SliceChoice:
    """The slicing of a whole axis in the direction of the stride, but for the last `left_over` elements."""
    if stride > 0:
        return SliceChoice(axis, 0, -1 - left_over, stride)
    return SliceChoice(axis, -1, left_over, stride)


def slicing_of(port_map: PortMapDraft, axis: int, stride: int) -> tuple[SliceChoice, int]:
    """A slicing with this stride and the axis length that gives it enough slices."""
    rng, part = port_map.rng, abs(stride)
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
    rng = port_map.rng
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
    rng = port_map.rng
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
    rng = port_map.rng
    element_type = rng.choice(ALL_TYPES if rng.random() < 0.35 else ("f32",))
    shape = random_shape(rng, rng.randint(0, 3))
    role = rng.choice(("free", "free", "free", "sum", "swap", "fan", "recurrent"))
    if role == "sum" and element_type in NUMBERS:
        bound = USUAL_BOUND[element_type]
        initial = port_map.outer.obtain(element_type, shape, bound)
        add_state(port_map, initial, bound * (port_map.iterations + 1), "sum")
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


def add_counter(port_map: PortMapDraft, step: int = 1) -> CarriedState:
    """A whole number that grows by `step` in each iteration."""
    rng = port_map.rng
    array = np.full(rng.choice(((), (1,))), rng.randint(0, 2), rng.choice((np.int32, np.int64)))
    initial = port_map.outer.exactly(array)
    state = add_state(port_map, initial, float(array.max() + step * port_map.iterations), "counter")
    node = ops.add(state.parameter.output, port_map.body.number(step, initial).output)
    state.following = port_map.body.keep(port_map.body.derive(node, state.parameter.bound, state.parameter))
    return state


def add_recurrent(port_map: PortMapDraft) -> None:
    """The states of a recurrent cell over the first value that the body can offer."""
    rng, body = port_map.rng, port_map.body
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
    rng, body = port_map.rng, port_map.body
    width = rng.randint(1, 3)
    initial = port_map.outer.obtain("f32", (rng.randint(1, 2), width))
    parameter = body.parameter((-1, width), "f32", max(1.5, initial.bound), initial.coarse)
    state = CarriedState(parameter, initial, "growing")
    port_map.carried.append(state)
    make = rng.choice((ops.reduce_sum, ops.reduce_max))
    summary = make(parameter.output, integers(0), rng.random() < 0.5)
    body.keep(limit(body, body.derive(summary, parameter.bound * 9, parameter), LARGEST_BOUND["f32"]))


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
        return body.derive(node, parameter.bound, parameter, row)
    if state.role == "sum":
        share = (parameter.bound - state.outer.bound) / max(iterations, 1)
        addend = adapted(body, source, element_type, shape, min(share, usual))
        return body.derive(ops.add(parameter.output, addend.output), parameter.bound, parameter, addend)
    return touched(body, adapted(body, source, element_type, shape, parameter.bound))


# Results of a loop body and the outputs of the loop that they feed: last values and concatenations.

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


def random_concatenation(port_map: PortMapDraft, value: Value) -> SliceChoice | None:
    """Along which axis, in which order, the value can be concatenated as it is."""
    rng = port_map.rng
    longest = LONGEST_PART if port_map.kind == "TensorIterator" else 1
    sizes = value.shape or (1,)
    axes = [axis for axis, size in enumerate(sizes) if 0 < size <= longest]
    if not axes:
        return None
    axis = rng.choice(axes)
    backwards = port_map.kind == "TensorIterator" and rng.random() < 0.4
    return slicing_along(axis, -sizes[axis] if backwards else sizes[axis], 0)


def choose_outputs(port_map: PortMapDraft) -> None:
    """Outputs from the back edges' Results and from Results of their own; at least one."""
    for state in port_map.carried:
        if state.shared_with is None:
            expose_state(port_map, state)
    concatenations_only = not port_map.runs
    counts = (0, 1, 1, 2) if port_map.outer.path else (1, 1, 2, 3)
    for _ in range(port_map.rng.choice((0, 1) if concatenations_only else counts)):
        expose_fresh(port_map, concatenations_only)
    if port_map.outer.chance(0.1):
        port_map.unmapped.append(port_map.result(fresh_value(port_map)))
        port_map.note("Result not mapped")
    if not port_map.outputs:
        expose_fresh(port_map, concatenations_only)


def expose_state(port_map: PortMapDraft, state: CarriedState) -> None:
    """The outputs that a carried state's Result feeds."""
    rng, value = port_map.rng, state.following
    assert value is not None
    if state.role == "growing" or rng.random() < 0.6 or not port_map.runs:
        port_map.expose(state.result, value)
    if state.role != "growing" and rng.random() < 0.35:
        slicing = random_concatenation(port_map, value)
        if slicing is not None:
            port_map.expose(state.result, value, slicing)


def fresh_value(port_map: PortMapDraft) -> Value:
    """A value of the body that no Parameter's memory backs."""
    body = port_map.body
    value = body.pick(ALL_TYPES, lambda v: v.rooted and v.computed) if body.chance(0.8) else None
    value = value or body.pick(ALL_TYPES, lambda v: v.rooted) or port_map.parameters()[0]
    return touched(body, value)


def expose_fresh(port_map: PortMapDraft, concatenations_only: bool) -> None:
    """A Result of its own and one or two outputs that it feeds."""
    rng = port_map.rng
    result, value = port_map.expose_alone(fresh_value(port_map), concatenations_only or rng.random() < 0.6)
    if not concatenations_only and rng.random() < 0.2:
        port_map.expose_either_way(result, value)


# The two kinds of scope: a whole model, whose data are Parameters with arrays, and a body, which reuses its values.


class BodyScope(GraphScope):
    """The body of a loop or the branch of an If."""

    def obtain(self, element_type: str, shape: tuple[int, ...], bound: float | None = None) -> Value:
        """A value of the body brought to this type and shape, seldom a Constant."""
        value = self.pick(ALL_TYPES, lambda v: v.element_type == element_type or not v.coarse)
        if value is None or self.chance(0.15):
            return self.constant(shape, element_type, bound)
        return adapted(self, value, element_type, shape, bound)

    def exactly(self, array: np.ndarray, *, at_run_time: bool = False) -> Value:
        """A Constant; a body has nothing else whose elements are known."""
        return self.constant_of(array)


class ModelScope(GraphScope):
    """The model itself: its Parameters in order, each with its array."""

    def __init__(
        self,
        rng: random.Random,
        features: set[str],
        fill: Callable[[GraphScope, int], None],
        freedom: Freedom = CAREFUL,
    ) -> None:
        """A model without Parameters yet."""
        super().__init__(rng, features, fill, freedom=freedom)
        self.parameters: list[Value] = []
        self.arrays: list[np.ndarray] = []
        self.exact: list[Value] = []

    def supply(self, array: np.ndarray, bound: float) -> Value:
        """A new Parameter of the model that will be fed with this array."""
        element_type = {"bool": "boolean", "float32": "f32", "float16": "f16"}.get(
            array.dtype.name, array.dtype.name.replace("uint", "u").replace("int", "i")
        )
        value = self.parameter(array.shape, element_type, bound)
        self.parameters.append(value)
        self.arrays.append(array)
        return value

    def obtain(self, element_type: str, shape: tuple[int, ...], bound: float | None = None) -> Value:
        """Mostly a new Parameter; at times one that exists, a Constant, or something computed."""
        limit = USUAL_BOUND[element_type] if bound is None else bound
        same = [p for p in self.parameters if p.element_type == element_type and p.shape == shape and p.bound <= limit]
        if same and self.chance(0.3):
            return self.rng.choice(same)
        if self.parameters and self.chance(0.12):
            return self.constant(shape, element_type, limit)
        value = self.supply(random_array(self.rng, shape, element_type, limit), limit)
        return touched(self, value) if self.chance(0.15) else value

    def exactly(self, array: np.ndarray, *, at_run_time: bool = False) -> Value:
        """A Parameter fed with this array, or a Constant."""
        if at_run_time or self.chance(0.4):
            self.exact.append(self.supply(array, float(np.abs(array.astype(np.float64)).max())))
            return self.exact[-1]
        return self.constant_of(array)

    def finish(self, value: Value) -> Value:
        """A loop's output as it leaves the model: half precision in f16, at times after one more operation."""
        if value.coarse and value.element_type == "f32":
            value = self.derive(ops.convert(value.output, "f16"), value.bound, value)
        if value.element_type in FLOATS and self.chance(0.15):
            return self.derive(ops.sigmoid(value.output), 1.0, value)
        return value


def body_scope(outer: GraphScope, kind: str) -> BodyScope:
    """The scope of a body of `kind` inside `outer`."""
    return BodyScope(outer.rng, outer.features, outer.fill, (*outer.path, kind), outer.freedom)


# Ends of a Loop: its trip count, its initial condition and the condition that the body computes.

STOPS = (*("never",) * 4, *("iteration", "counter", "total") * 2, "flags", "carried condition", "once")
BOUNDED_STOPS = ("iteration", "counter")


@dataclass
class LoopControl:
    """The two control inputs of a Loop and how its body decides to go on."""

    trip: Value
    condition: Value
    stop: str
    watched: CarriedState | None = None
    flag: Value | None = None


def trip_array(port_map: PortMapDraft, number: int) -> np.ndarray:
    """A trip count in one of the four forms that it may have."""
    rng = port_map.rng
    array = np.full(rng.choice(((), (1,))), number, rng.choice((np.int32, np.int64)))
    port_map.note(f"trip {array.dtype} {list(array.shape)}")
    return array


def computed_trip(port_map: PortMapDraft) -> Value | None:
    """In a body: between one and `iterations`, out of a whole number that the body knows."""
    outer = port_map.outer
    source = outer.pick(INTEGERS, lambda v: not v.coarse)
    if source is None:
        return None
    number = flattened_sum(outer, source)
    within = ops.clamp(ops.abs(number.output), 0.0, float(port_map.iterations - 1))
    port_map.note("trip computed")
    return outer.derive(ops.add(within, outer.number(1, source).output), 4, source)


def measured_trip(port_map: PortMapDraft) -> Value:
    """The length of an axis that the loop then goes along: ShapeOf, Gather."""
    outer = port_map.outer
    length = outer.rng.randint(1, 3)
    data = outer.obtain("f32", (port_map.iterations, length))
    add_slice(port_map, data, slicing_along(0, 1, 0))
    shape = ops.shape_of(data.output, outer.rng.choice(("i32", "i64")))
    index = np.array(0) if outer.chance(0.5) else np.array([0])
    port_map.note("trip from ShapeOf")
    return outer.derive(ops.gather(shape, ops.constant(index), ops.constant(0)), port_map.iterations, data)


def choose_trip(port_map: PortMapDraft, stop: str) -> Value:
    """The trip count: exact, beyond the stop, unlimited, computed or measured."""
    outer = port_map.outer
    if not port_map.runs:
        return outer.exactly(trip_array(port_map, 0 if stop == "trip 0" else port_map.iterations), at_run_time=True)
    if stop in BOUNDED_STOPS and outer.chance(0.6):
        unlimited = outer.chance(0.6)
        port_map.note("trip -1" if unlimited else "trip beyond the stop")
        return outer.exactly(trip_array(port_map, -1 if unlimited else 100))
    if isinstance(outer, ModelScope):
        if outer.chance(0.12):
            return measured_trip(port_map)
    elif outer.chance(0.4) and (trip := computed_trip(port_map)):
        return trip
    return outer.exactly(trip_array(port_map, port_map.iterations))


def choose_condition(port_map: PortMapDraft, stop: str) -> Value:
    """The initial condition, true unless the loop is not to run."""
    outer = port_map.outer
    array = np.full(outer.rng.choice(((), (1,))), stop != "condition false", np.bool_)
    value = outer.exactly(array, at_run_time=stop == "condition false")
    port_map.note("condition Parameter" if value.rooted else "condition Const")
    return value


def plan(port_map: PortMapDraft) -> LoopControl:
    """Choose how the Loop ends and add the inputs that its body needs for that."""
    rng, outer = port_map.rng, port_map.outer
    stop = rng.choice(STOPS) if port_map.runs else rng.choice(("trip 0", "condition false"))
    port_map.note(f"stop: {stop}")
    control = LoopControl(choose_trip(port_map, stop), choose_condition(port_map, stop), stop)
    if stop == "iteration" or outer.chance(0.6):
        port_map.iteration = add_iteration(port_map)
    if stop == "counter":
        control.watched = add_counter(port_map, rng.randint(1, 2))
    elif stop == "total":
        control.watched = add_total(port_map)
    elif stop == "flags":
        control.flag = add_flags(port_map)
    elif stop == "carried condition":
        control.watched = add_state(port_map, outer.exactly(np.array(True)), 1, "condition")
    return control


def add_iteration(port_map: PortMapDraft) -> Value:
    """The Parameter that counts iterations, in one of its four forms."""
    rng, body = port_map.rng, port_map.body
    shape, element_type = rng.choice(((), (1,))), rng.choice(INTEGERS)
    return body.keep(body.parameter(shape, element_type, port_map.iterations))


def add_total(port_map: PortMapDraft) -> CarriedState:
    """A running total of whole numbers from a sliced input, which stops the Loop when it grows large."""
    outer, body = port_map.outer, port_map.body
    width = outer.rng.randint(1, 3)
    steps = np.array([[outer.rng.randint(1, 3) for _ in range(width)] for _ in range(port_map.iterations)], np.int32)
    step = add_slice(port_map, outer.exactly(steps), slicing_along(0, 1, 0))
    state = add_state(port_map, outer.exactly(np.zeros((1, width), np.int32)), 3 * port_map.iterations, "total")
    node = ops.add(state.parameter.output, step.output)
    state.following = body.keep(body.derive(node, state.parameter.bound, state.parameter, step))
    return state


def add_flags(port_map: PortMapDraft) -> Value:
    """A sliced boolean input, one flag for each iteration: whether to go on."""
    outer = port_map.outer
    flags = np.array([outer.rng.random() < 0.85 for _ in range(port_map.iterations)])
    return add_slice(port_map, outer.exactly(flags), slicing_along(0, 1, 0))


def body_condition(port_map: PortMapDraft, control: LoopControl) -> Value:
    """The value in the body that decides whether another iteration follows."""
    rng, body = port_map.rng, port_map.body
    if control.stop == "iteration":
        iteration = port_map.iteration
        assert iteration is not None
        last = body.number(port_map.iterations - 1, iteration)
        return body.derive(ops.less(iteration.output, last.output), 1, iteration)
    if control.stop == "counter":
        # True if the counter is still below what it reaches in the last planned iteration.
        state = control.watched
        assert state is not None and state.following is not None
        highest = body.number(int(state.parameter.bound), state.parameter)
        compare = ops.less if port_map.outer.chance(0.5) else ops.not_equal
        node = compare(state.following.output, highest.output)
        return body.derive(node, 1, state.following)
    if control.stop == "total":
        return total_condition(port_map, control)
    if control.stop == "flags":
        assert control.flag is not None
        every = body.constant_of(np.array([True]))
        return body.derive(ops.logical_and(control.flag.output, every.output), 1, control.flag)
    if control.stop == "carried condition":
        return carried_condition(port_map, control)
    return body.constant_of(np.full(rng.choice(((), (1,))), control.stop != "once"))


def total_condition(port_map: PortMapDraft, control: LoopControl) -> Value:
    """True if the largest running total is still small; seen at the start or at the end of the iteration."""
    rng, body = port_map.rng, port_map.body
    state = control.watched
    assert state is not None and state.following is not None
    seen = state.following if rng.random() < 0.7 else state.parameter
    largest = body.derive(ops.reduce_max(seen.output, integers(0, 1), False), seen.bound, seen)
    ceiling = body.number(rng.randint(3, 3 * port_map.iterations), seen)
    return body.derive(ops.less_equal(largest.output, ceiling.output), 1, largest)


def carried_condition(port_map: PortMapDraft, control: LoopControl) -> Value:
    """A condition that is carried: it stays true while a whole number of the body allows it."""
    body, state = port_map.body, control.watched
    assert state is not None
    source = port_map.iteration or body.pick(INTEGERS, lambda v: not v.coarse)
    if source is None:
        node = ops.logical_not(state.parameter.output)
        state.following = body.derive(node, 1, state.parameter)
        return state.following
    number = limit(body, flattened_sum(body, source), 2000)
    low = ops.less(number.output, body.number(port_map.rng.randint(0, 3), number).output)
    state.following = body.derive(ops.logical_and(state.parameter.output, low), 1, state.parameter, number)
    return state.following


# Leaving out what a loop does not need: the runtime loses count where it removes unused inputs of a body itself.


def name_of(parameter: Value) -> str:
    """The unique name of a Parameter."""
    return str(parameter.output.get_node().get_name())


def live_roots(port_map: PortMapDraft, more: list[Value]) -> set[str]:
    """The Parameters that matter for the outputs and `more`, in any number of iterations."""
    values = [output.value for output in port_map.outputs] + more
    while True:
        roots = {root for value in values for root in value.roots}
        carried = [s.following for s in port_map.carried if s.following and name_of(s.parameter) in roots]
        if all(value in values for value in carried):
            return roots
        values += [value for value in carried if value not in values]


def reachable(results: Iterable[Any]) -> set[str]:
    """The names of the nodes from which a path leads to the Results."""
    found: set[str] = set()
    pending = list(results)
    while pending:
        node = pending.pop()
        if node.get_name() not in found:
            found.add(node.get_name())
            pending += [port.get_node() for port in node.input_values()]
    return found


def prune(port_map: PortMapDraft, more: list[Value], kept: list[Any]) -> None:
    """Drop dead inputs, states and Results, but not the Results `kept` nor what the values `more` need."""
    if port_map.outer.is_free(port_map.outer.freedom.idle):
        port_map.note("idle inputs")
        return
    while idle := idle_parameters(port_map, more, kept):
        value = touched(port_map.body, idle[0])
        port_map.expose_alone(value, concatenate=not port_map.runs or port_map.outer.chance(0.5))
    roots = live_roots(port_map, more)
    port_map.sliced = [entry for entry in port_map.sliced if name_of(entry.parameter) in roots]
    port_map.invariant = [entry for entry in port_map.invariant if name_of(entry.parameter) in roots]
    port_map.carried = [state for state in port_map.carried if name_of(state.parameter) in roots]
    if port_map.iteration is not None and name_of(port_map.iteration) not in roots:
        port_map.iteration = None
    port_map.results = results_in_use(port_map, kept)


def idle_parameters(port_map: PortMapDraft, more: list[Value], kept: list[Any]) -> list[Value]:
    """Parameters to give an output of their own: used for their shape only, or the slices that count iterations."""
    roots = live_roots(port_map, more)
    live = [state for state in port_map.carried if name_of(state.parameter) in roots]
    nodes = reachable(results_in_use(port_map, kept, live))
    idle = [p for p in port_map.parameters() if name_of(p) in nodes and name_of(p) not in roots]
    counting = [entry.parameter for entry in port_map.sliced]
    if port_map.kind == "TensorIterator" and not any(name_of(parameter) in roots for parameter in counting):
        idle += counting[:1]
    return idle


def results_in_use(port_map: PortMapDraft, kept: list[Any], live: list[CarriedState] | None = None) -> list[Any]:
    """The Results that an output, a back edge or `kept` needs."""
    states = port_map.carried if live is None else live
    used = [*kept, *(output.result for output in port_map.outputs), *(state.result for state in states)]
    return [result for result in port_map.results if any(result is other for other in used)]
