"""Ends of a Loop: its trip count, its initial condition and the condition that the body computes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import openvino.opset13 as ops

from stepper.diagnosis.hunt.generator.adaptation import flattened_sum, limit
from stepper.diagnosis.hunt.generator.port_maps import (
    CarriedState,
    PortMapDraft,
    add_counter,
    add_slice,
    add_state,
    slicing_along,
)
from stepper.diagnosis.hunt.generator.scopes import ModelScope
from stepper.diagnosis.hunt.generator.values import DTYPES, INTEGERS, GraphScope, Value

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
    rng = port_map.outer.rng
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
    return outer.derive(ops.add(within, ops.constant(np.array(1, DTYPES[source.element_type]))), (source,), 4)


def measured_trip(port_map: PortMapDraft) -> Value:
    """The length of an axis that the loop then goes along: ShapeOf, Gather."""
    outer = port_map.outer
    length = outer.rng.randint(1, 3)
    data = outer.obtain("f32", (port_map.iterations, length))
    add_slice(port_map, data, slicing_along(0, 1, 0))
    shape = ops.shape_of(data.output, outer.rng.choice(("i32", "i64")))
    index = np.array(0) if outer.chance(0.5) else np.array([0])
    port_map.note("trip from ShapeOf")
    return outer.derive(ops.gather(shape, ops.constant(index), ops.constant(np.array(0))), (data,), port_map.iterations)


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
    rng, outer = port_map.outer.rng, port_map.outer
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
    rng, body = port_map.outer.rng, port_map.body
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
    state.following = body.keep(body.derive(node, (state.parameter, step), state.parameter.bound))
    return state


def add_flags(port_map: PortMapDraft) -> Value:
    """A sliced boolean input, one flag for each iteration: whether to go on."""
    outer = port_map.outer
    flags = np.array([outer.rng.random() < 0.85 for _ in range(port_map.iterations)])
    return add_slice(port_map, outer.exactly(flags), slicing_along(0, 1, 0))


def scalar(body: GraphScope, number: int, like: Value) -> Value:
    """A scalar Constant of the element type of `like`."""
    return body.constant_of(np.array(number, DTYPES[like.element_type]))


def body_condition(port_map: PortMapDraft, control: LoopControl) -> Value:
    """The value in the body that decides whether another iteration follows."""
    rng, body = port_map.outer.rng, port_map.body
    if control.stop == "iteration":
        iteration = port_map.iteration
        assert iteration is not None
        last = scalar(body, port_map.iterations - 1, iteration)
        return body.derive(ops.less(iteration.output, last.output), (iteration,), 1)
    if control.stop == "counter":
        return counter_condition(port_map, control)
    if control.stop == "total":
        return total_condition(port_map, control)
    if control.stop == "flags":
        assert control.flag is not None
        every = body.constant_of(np.array([True]))
        return body.derive(ops.logical_and(control.flag.output, every.output), (control.flag,), 1)
    if control.stop == "carried condition":
        return carried_condition(port_map, control)
    return body.constant_of(np.full(rng.choice(((), (1,))), control.stop != "once"))


def counter_condition(port_map: PortMapDraft, control: LoopControl) -> Value:
    """True if the counter is still below what it reaches in the last planned iteration."""
    state = control.watched
    assert state is not None and state.following is not None
    highest = scalar(port_map.body, int(state.parameter.bound), state.parameter)
    compare = ops.less if port_map.outer.chance(0.5) else ops.not_equal
    node = compare(state.following.output, highest.output)
    return port_map.body.derive(node, (state.following,), 1)


def total_condition(port_map: PortMapDraft, control: LoopControl) -> Value:
    """True if the largest running total is still small; seen at the start or at the end of the iteration."""
    rng, body = port_map.outer.rng, port_map.body
    state = control.watched
    assert state is not None and state.following is not None
    seen = state.following if rng.random() < 0.7 else state.parameter
    largest = body.derive(ops.reduce_max(seen.output, ops.constant(np.array([0, 1])), False), (seen,), seen.bound)
    ceiling = scalar(body, rng.randint(3, 3 * port_map.iterations), seen)
    return body.derive(ops.less_equal(largest.output, ceiling.output), (largest,), 1)


def carried_condition(port_map: PortMapDraft, control: LoopControl) -> Value:
    """A condition that is carried: it stays true while a whole number of the body allows it."""
    body, state = port_map.body, control.watched
    assert state is not None
    source = port_map.iteration or body.pick(INTEGERS, lambda v: not v.coarse)
    if source is None:
        node = ops.logical_not(state.parameter.output)
        state.following = body.derive(node, (state.parameter,), 1)
        return state.following
    number = limit(body, flattened_sum(body, source), 2000)
    low = ops.less(number.output, scalar(body, port_map.outer.rng.randint(0, 3), number).output)
    state.following = body.derive(ops.logical_and(state.parameter.output, low), (state.parameter, number), 1)
    return state.following
