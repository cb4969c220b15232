"""Loops whose bodies hold no other graph, built from a seed: the same seed gives the same model everywhere.

What varies: one to three carried states, that change places, take another type on their way back, or grow; an input in
slices, too few of them at times; the iteration number; operations of one, two and three inputs, and of two outputs;
outputs joined forwards and backwards, pieces that are views, pieces of changing shape; trip counts of none, few, many
and unlimited; conditions that hold always, end the loop in some iteration, come from comparing NaN, or become no
condition at all; an operation that fails in some iteration.
"""

from __future__ import annotations

import math
import random
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.engine.subjects import Subject
from tests.models import Entry, Graph, Value, carried, joined, last, sliced

SHAPES: tuple[tuple[int, ...], ...] = ((), (1,), (3,), (2, 3))


@dataclass(frozen=True)
class StraightLoop:
    """A model with one loop, its inputs, and the options of its machine."""

    subject: Subject
    options: dict[str, Any]


def straight_loop(seed: int) -> StraightLoop:
    """The loop of this seed."""
    random_of = random.Random(seed)
    trips = random_of.choice([0, 1, 2, 9, 9, 300, -1])
    stop = random_of.choice([None, 0, 3, 8, 270]) if trips >= 0 else random_of.choice([5, 280])
    is_simple = random_of.random() < 0.5  # back edges are then all that there is to do between two iterations
    slices = None if is_simple else random_of.choice([None, 4, 300])
    inputs = () if slices is None else (np.arange(slices, dtype=np.float32),)
    options = {"max_iterations": random_of.choice([None, None, 7])}
    rest = random_of.getrandbits(32)

    def net() -> Graph:
        return _net(random.Random(rest), trips, stop, is_simple=is_simple, in_slices=slices is not None)

    return StraightLoop(Subject(net, inputs), options)


def _net(random_of: random.Random, trips: int, stop: int | None, *, is_simple: bool, in_slices: bool) -> Graph:
    net, shape = Graph(), random_of.choice(SHAPES)
    is_iterator = in_slices and random_of.random() < 0.4  # a TensorIterator, else a Loop
    body = net.body()
    number, inputs = body.parameter("number", "i64"), list[Entry]()
    is_counted = is_simple or is_iterator or random_of.random() < 0.3  # by a state; else the loop gives the number
    if is_counted:
        following = body.result(body.apply("Add", number, body.constant(1, np.int64)))
        inputs.append(carried(net.constant(0, np.int64), number, following))
    states = [body.parameter(f"state {index}", dims=shape) for index in range(random_of.randint(1, 3))]
    values = [*states, body.apply("Tanh", states[-1])]
    if in_slices:
        item = body.parameter("item", dims=(1,))
        inputs.append(sliced(net.parameter("x", dims=(-1,)), item))
        values.append(body.apply("ReduceSum", item, body.constant([0]), dims=(), keep_dims="false"))
    for _ in range(random_of.randint(1, 5)):
        values.append(_applied(random_of, body, values, shape, is_simple=is_simple))
    computed = [value for value in values if value.dims == shape and value not in states]
    results = [_carried_back(random_of, body, computed, [] if is_simple else states) for _ in states]
    for state, result in zip(states, results, strict=True):
        start = np.full(shape, random_of.choice([0.5, 2.0, -0.1]), np.float32)
        inputs.append(carried(net.constant(start), state, result))
    outputs = [last(results[0]), *_joined(random_of, body, values, number)]
    if not is_simple and random_of.random() < 0.3:
        outputs.append(_growing(random_of, net, body, inputs))
    if is_iterator:
        found = net.tensor_iterator("loop", body, inputs, outputs)
    else:
        going = _condition(random_of, body, number, values[-1], stop)
        found = net.loop("loop", body, trips, True, inputs, outputs, going, None if is_counted else number)
    for value in found:
        net.result(value)
    return net


def _joined(random_of: random.Random, body: Graph, values: list[Value], number: Value) -> list[Entry]:
    outputs = []
    for _ in range(random_of.randint(0, 2)):
        value = random_of.choice(values)
        if random_of.random() < 0.4:
            value = _reshaped(random_of, body, body.apply("Negative", value))
        part = value.dims[0] if value.dims else 1
        backwards = {"stride": -part, "start": -1, "end": 0}
        outputs.append(joined(body.result(value), **random_of.choice([{"stride": part}, backwards])))
    if random_of.random() < 0.2:
        outputs.append(joined(body.result(_failing(random_of, body, number))))
    return outputs


def _reshaped(random_of: random.Random, body: Graph, value: Value) -> Value:
    """The value in other shapes, one after the other: as a converter writes the piece of a scan output."""
    dims = value.dims
    for kind in random_of.choices(["same", "longer", "flat"], k=random_of.randint(1, 3)):
        if kind == "same":
            value = body.apply("Identity", value, dims=dims, version="opset16")
        elif kind == "longer":
            dims = (1, *dims)
            value = body.apply("Unsqueeze", value, body.constant([0]), dims=dims)
        else:
            dims = (math.prod(dims),)
            value = body.apply("Reshape", value, body.constant([-1]), dims=dims, special_zero="false")
    return value


def _applied(
    random_of: random.Random, body: Graph, values: list[Value], shape: tuple[int, ...], *, is_simple: bool
) -> Value:
    """One more operation; all values but the states may be scalars, and its result has the states' shape."""
    state, other = values[0], random_of.choice(values)
    kind = random_of.choice(["unary", "unary", "binary", "select", "view", "binary" if is_simple else "topk"])
    if kind == "unary":
        return body.apply(
            random_of.choice(["Abs", "Negative", "Sqrt", "Tanh", "Exp"]), other if other.dims == shape else state
        )
    if kind == "select":
        return body.apply("Select", body.apply("Greater", state, other, type="boolean"), state, other)
    if kind == "topk" and shape:
        count = body.constant(shape[0], np.int64)
        return body.apply(
            "TopK",
            state,
            count,
            outputs=2,
            version="opset3",
            axis=0,
            mode="max",
            sort="value",
            index_element_type="i32",
        )
    if kind == "view" and len(shape) == 1:
        turned = body.apply("Unsqueeze", state, body.constant([0]), dims=(1, *shape))
        return body.apply("Squeeze", turned, body.constant([0]), dims=shape)
    return body.apply(random_of.choice(["Add", "Subtract", "Multiply", "Divide", "Minimum"]), state, other)


def _carried_back(random_of: random.Random, body: Graph, computed: list[Value], states: list[Value]) -> Value:
    value = random_of.choice([*states, *computed])
    if states and random_of.random() < 0.2:  # which is cast to the state's own type
        value = body.apply("Convert", value, type="f64", destination_type="f64")
    return body.result(value)


def _growing(random_of: random.Random, net: Graph, body: Graph, inputs: list[Entry]) -> Entry:
    """A tensor longer by one in each iteration, its pieces joined where they can be."""
    tensor = body.parameter("tensor", dims=(-1,))
    longer = body.apply("Concat", tensor, body.constant([1.0]), dims=(-1,), axis=0, name="longer")
    grown = body.result(longer)
    inputs.append(carried(net.constant(np.zeros(2, np.float32)), tensor, grown))
    rows = body.constant(np.zeros((random_of.choice([1, 7]), 1), np.float32))
    return joined(
        body.result(body.apply("Add", longer, rows, dims=(*rows.dims[:1], -1))), axis=random_of.choice([0, 1])
    )


def _failing(random_of: random.Random, body: Graph, number: Value) -> Value:
    """A Reshape of one element to two, in some iteration."""
    reached = body.apply("GreaterEqual", number, body.constant(random_of.choice([1, 4, 290]), np.int64), type="boolean")
    count = body.apply("Convert", reached, type="i64", destination_type="i64")
    shape = body.apply("Add", count, body.constant([1]), dims=(1,))
    return body.apply("Reshape", body.constant(1.0), shape, dims=(1,), special_zero="false", name="fails")


def _condition(random_of: random.Random, body: Graph, number: Value, state: Value, stop: int | None) -> Value | None:
    if stop is None:
        root = body.apply("Sqrt", state)  # NaN of what is negative, and no NaN is equal to itself
        return random_of.choice([None, body.result(body.apply("Equal", root, root, type="boolean"))])
    going = body.apply("Less", number, body.constant(stop, np.int64), type="boolean")
    if random_of.random() < 0.2:  # a vector of two in the iteration in which it would end the loop
        over = body.apply("Convert", body.apply("LogicalNot", going), type="i64", destination_type="i64")
        shape = body.apply("Add", over, body.constant([1]), dims=(1,))
        going = body.apply("Broadcast", body.constant(True, np.bool_), shape, version="opset3", mode="numpy")
    elif random_of.random() < 0.5:
        going = body.apply("Reshape", going, body.constant([1]), dims=(1,), special_zero="false")
    return body.result(going)
