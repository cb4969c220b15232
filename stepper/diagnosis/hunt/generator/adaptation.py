"""Turning a value into one of a wanted element type, shape, bound: the glue between randomly chosen operations."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import openvino.opset13 as ops

from stepper.diagnosis.hunt.generator.values import (
    DTYPES,
    FLOATS,
    INTEGERS,
    LARGEST_BOUND,
    USUAL_BOUND,
    GraphScope,
    Value,
)


def limit(scope: GraphScope, value: Value, bound: float) -> Value:
    """The value itself, or squeezed so that no element exceeds the bound."""
    if value.bound <= bound:
        return value
    if value.element_type in FLOATS:
        squeezed = scope.derive(ops.tanh(value.output), (value,), 1.0)
        if bound >= 1.0:
            return squeezed
        factor = scope.constant_of(np.array(bound, DTYPES[value.element_type]))
        return scope.derive(ops.multiply(squeezed.output, factor.output), (squeezed,), bound)
    if value.element_type == "u8":
        ceiling = scope.constant_of(np.array(int(bound), np.uint8))
        return scope.derive(ops.minimum(value.output, ceiling.output), (value,), bound)
    lowest, highest = -float(int(bound)), float(int(bound))
    return scope.derive(ops.clamp(value.output, lowest, highest), (value,), bound)


def tamed(scope: GraphScope, value: Value) -> Value:
    """The value within the bound that its type may have inside a body."""
    return limit(scope, value, LARGEST_BOUND[value.element_type])


def touched(scope: GraphScope, value: Value) -> Value:
    """The value after at least one computing operation, so that it never shares a Parameter's memory."""
    if value.computed or scope.is_free(scope.freedom.in_place):
        return value
    output, rng = value.output, scope.rng
    if value.element_type in FLOATS:
        make = rng.choice((ops.tanh, ops.negative, ops.relu, ops.abs))
        return scope.derive(make(output), (value,), value.bound)
    if value.element_type in INTEGERS:
        make = rng.choice((ops.negative, ops.abs))
        return scope.derive(make(output), (value,), value.bound)
    if value.element_type == "u8":
        other = scope.constant(value.shape, "u8")
        node = ops.maximum(output, other.output)
        return scope.derive(node, (value,), max(value.bound, other.bound))
    return scope.derive(ops.logical_not(output), (value,), 1)


def floored(scope: GraphScope, value: Value) -> Value:
    """A float value rounded down after a shift that keeps it off whole numbers, as i32."""
    shift = scope.constant_of(np.array(0.31837 + 0.0625 * scope.rng.randint(0, 4), DTYPES[value.element_type]))
    shifted = scope.derive(ops.add(value.output, shift.output), (value,), value.bound + 1)
    whole = scope.derive(ops.floor(shifted.output), (shifted,), shifted.bound + 1)
    return scope.derive(ops.convert(whole.output, "i32"), (whole,), whole.bound)


def converted(scope: GraphScope, value: Value, element_type: str) -> Value:
    """The value as another element type, by conversions on which every runtime agrees."""
    if value.element_type == element_type:
        return value
    if element_type in FLOATS:
        reduced = limit(scope, value, LARGEST_BOUND["f16"]) if element_type == "f16" else value
        return scope.derive(ops.convert(reduced.output, element_type), (reduced,), reduced.bound, computed=False)
    if value.element_type in FLOATS:
        value = scope.constant(value.shape, "i32") if value.coarse else floored(scope, value)
    if element_type == "boolean":
        threshold = scope.constant_of(np.array(scope.rng.randint(0, 2), DTYPES[value.element_type]))
        return scope.derive(ops.greater(value.output, threshold.output), (value,), 1)
    if element_type == "u8" and value.element_type != "boolean":
        value = scope.derive(ops.clamp(value.output, 0.0, 60.0), (value,), min(60, value.bound))
    return scope.derive(ops.convert(value.output, element_type), (value,), value.bound, computed=False)


def flattened_sum(scope: GraphScope, value: Value, keep: Sequence[int] = ()) -> Value:
    """The value reduced over every axis but `keep`."""
    axes = [axis for axis in range(value.rank) if axis not in keep]
    if not axes:
        return value
    reduce = ops.reduce_max if value.element_type == "u8" or not value.settled else ops.reduce_sum
    count = abs(math.prod(value.shape[axis] for axis in axes))
    node = reduce(value.output, ops.constant(np.array(axes, np.int64)), False)
    bound = value.bound * (1 if reduce is ops.reduce_max else count)
    return tamed(scope, scope.derive(node, (value,), bound, computed=count != 1 or not value.settled))


def settled(scope: GraphScope, value: Value) -> Value:
    """The value with every axis of unknown length reduced away."""
    if value.settled:
        return value
    if value.element_type == "boolean":
        value = scope.derive(ops.convert(value.output, "i32"), (value,), 1)
    return flattened_sum(scope, value, keep=[axis for axis, size in enumerate(value.shape) if size != -1])


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """True if numpy's rules stretch `shape` to exactly `target`."""
    if len(shape) > len(target):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(target), strict=False))


def reshaped(scope: GraphScope, value: Value, shape: Sequence[int]) -> Value:
    """The same elements in another shape of the same size."""
    pattern = ops.constant(np.array(list(shape), np.int64))
    return scope.derive(ops.reshape(value.output, pattern, False), (value,), value.bound, computed=False)


def stretched(scope: GraphScope, value: Value, shape: tuple[int, ...]) -> Value:
    """The value spread over a larger shape by arithmetic with a constant."""
    other = scope.constant(shape, value.element_type)
    if value.element_type == "u8":
        node = ops.maximum(value.output, other.output)
        return scope.derive(node, (value,), max(value.bound, other.bound))
    node = ops.add(value.output, other.output)
    return tamed(scope, scope.derive(node, (value,), value.bound + other.bound))


def shaped(scope: GraphScope, value: Value, shape: tuple[int, ...]) -> Value:
    """The value brought to the wanted shape: reshaped, stretched, or summed up and stretched."""
    if value.shape == shape:
        return value
    if value.size == math.prod(shape):
        return reshaped(scope, value, shape)
    if value.element_type == "boolean":
        value = scope.derive(ops.convert(value.output, "i32"), (value,), 1)
        return converted(scope, shaped(scope, value, shape), "boolean")
    if not broadcasts_to(value.shape, shape):
        value = flattened_sum(scope, value)
    return stretched(scope, value, shape) if value.shape != shape else value


def adapted(
    scope: GraphScope, value: Value, element_type: str, shape: tuple[int, ...], bound: float | None = None
) -> Value:
    """The value as the wanted element type and shape, within the bound."""
    if value.element_type == "boolean" != element_type:
        value = converted(scope, value, element_type)
    fitting = converted(scope, shaped(scope, value, shape), element_type)
    return limit(scope, fitting, USUAL_BOUND[element_type] if bound is None else bound)
