"""Operations that move data or look at shapes: Concat, slices, Transpose, Reshape, Gather, Split and the like."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import openvino.opset1 as ops1
import openvino.opset7 as ops7
import openvino.opset13 as ops

from stepper.diagnosis.hunt.generator.adaptation import broadcasts_to
from stepper.diagnosis.hunt.generator.values import ALL_TYPES, ARITHMETIC, INTEGERS, LARGEST_SIZE, GraphScope, Value


def moved(scope: GraphScope, node: object, *parents: Value, output: int = 0) -> None:
    """Offer the result of a node that only moves its parents' elements."""
    bound = max(parent.bound for parent in parents)
    scope.keep(scope.derive(node, parents, bound, computed=False, output=output))


def integers(*numbers: int) -> object:
    """A rank-1 i64 Constant."""
    return ops.constant(np.array(numbers, np.int64))


def concat(scope: GraphScope) -> None:
    """Concat of two values, or of a value and a Constant, along any axis."""
    if (first := scope.pick(ALL_TYPES, lambda v: v.rank > 0 and v.size <= LARGEST_SIZE // 2)) is None:
        return
    axis = scope.rng.randrange(first.rank)

    def rest(shape: tuple[int, ...]) -> tuple[int, ...]:
        return (*shape[:axis], *shape[axis + 1 :])

    def fits(value: Value) -> bool:
        return value.rank == first.rank and rest(value.shape) == rest(first.shape)

    second = scope.pick((first.element_type,), fits)
    if second is None or scope.chance(0.2):
        second = scope.constant(first.shape, first.element_type)
    written = axis - first.rank if scope.chance(0.3) else axis
    moved(scope, ops.concat([first.output, second.output], written), first, second)


def slice_range(scope: GraphScope) -> None:
    """Slice along one axis, forwards or backwards."""
    if (value := scope.pick(ALL_TYPES, lambda v: v.rank > 0)) is None:
        return
    axis = scope.rng.randrange(value.rank)
    size = value.shape[axis]
    begin = scope.rng.randrange(size)
    if scope.chance(0.3):
        start, stop, step = size - 1, -(size + 1), -scope.rng.randint(1, 2)
    else:
        start, stop, step = begin, scope.rng.choice((size, begin + 1, 1000)), scope.rng.randint(1, 2)
    written = axis - value.rank if scope.chance(0.3) else axis
    moved(scope, ops.slice(value.output, integers(start), integers(stop), integers(step), integers(written)), value)


def strided_slice(scope: GraphScope) -> None:
    """StridedSlice with begin and end masks, sometimes dropping or adding an axis."""
    if (value := scope.pick(ARITHMETIC, lambda v: v.rank > 0)) is None:
        return
    length = scope.rng.randint(1, value.rank)
    begin = [scope.rng.randrange(size) for size in value.shape[:length]]
    end = [scope.rng.randint(b + 1, size) for b, size in zip(begin, value.shape, strict=False)]
    masks = {name: [int(scope.chance(0.3)) for _ in range(length)] for name in ("begin", "end")}
    shrink, new = [0] * length, [0] * length
    if scope.chance(0.4):
        (shrink if scope.chance(0.6) else new)[scope.rng.randrange(length)] = 1
    if any(shrink):
        masks = {name: [0] * length for name in masks}
    bounds = (integers(*begin), integers(*end), integers(*[1] * length))
    node = ops.strided_slice(value.output, *bounds, masks["begin"], masks["end"], new, shrink)
    moved(scope, node, value)


def transpose(scope: GraphScope) -> None:
    """Transpose by a random order."""
    if value := scope.pick(ALL_TYPES, lambda v: v.rank >= 2):
        order = scope.rng.sample(range(value.rank), value.rank)
        moved(scope, ops.transpose(value.output, integers(*order)), value)


def reshape(scope: GraphScope) -> None:
    """Reshape: flattened, axes merged, or the first axis kept by a zero."""
    if (value := scope.pick(ALL_TYPES, lambda v: v.rank > 0)) is None:
        return
    patterns = [[-1], [1, -1], [value.size, 1]]
    if value.rank >= 2:
        patterns += [[0, -1], [math.prod(value.shape[:-1]), value.shape[-1]]]
    pattern = scope.rng.choice(patterns)
    moved(scope, ops.reshape(value.output, integers(*pattern), 0 in pattern), value)


def squeeze(scope: GraphScope) -> None:
    """Squeeze one axis of length 1, or all of them."""
    if value := scope.pick(ALL_TYPES, lambda v: 1 in v.shape):
        axis = scope.rng.choice([axis for axis, size in enumerate(value.shape) if size == 1])
        moved(scope, ops1.squeeze(value.output, integers(axis - (value.rank if scope.chance(0.3) else 0))), value)


def unsqueeze(scope: GraphScope) -> None:
    """Unsqueeze at any place."""
    if value := scope.pick(ALL_TYPES, lambda v: v.rank <= 3):
        axis = scope.rng.randint(0, value.rank)
        moved(scope, ops1.unsqueeze(value.output, integers(-1 if scope.chance(0.2) else axis)), value)


def gather(scope: GraphScope) -> None:
    """Gather with constant indices of rank 0 to 2."""
    if (value := scope.pick(ALL_TYPES, lambda v: v.rank > 0)) is None:
        return
    axis = scope.rng.randrange(value.rank)
    shape = scope.rng.choice(((), (1,), (2,), (3,), (2, 2)))
    drawn = [scope.rng.randrange(value.shape[axis]) for _ in range(math.prod(shape))]
    indices = ops.constant(np.array(drawn, scope.rng.choice((np.int32, np.int64))).reshape(shape))
    make = scope.rng.choice((ops.gather, ops1.gather, ops7.gather))
    moved(scope, make(value.output, indices, ops.constant(np.array(axis, np.int64))), value)


def gather_computed(scope: GraphScope) -> None:
    """Gather whose indices are computed, kept inside the axis."""
    value = scope.pick(ALL_TYPES, lambda v: v.rank > 0)
    indices = scope.pick(INTEGERS, lambda v: v.rank <= 1 and not v.coarse)
    if value is None or indices is None:
        return
    axis = scope.rng.randrange(value.rank)
    within = ops.clamp(ops.abs(indices.output), 0.0, float(value.shape[axis] - 1))
    node = ops.gather(value.output, within, ops.constant(np.array(axis, np.int64)))
    scope.keep(scope.derive(node, (value, indices), value.bound, computed=False))


def broadcast(scope: GraphScope) -> None:
    """Broadcast to a constant shape, or to the shape of another value."""
    if (value := scope.pick(ALL_TYPES, lambda v: v.size <= LARGEST_SIZE // 4)) is None:
        return
    other = scope.pick(ALL_TYPES, lambda v: v is not value and v.rank > 0 and broadcasts_to(value.shape, v.shape))
    if other is not None and scope.chance(0.5):
        node = ops.broadcast(value.output, ops.shape_of(other.output, scope.rng.choice(("i32", "i64"))))
        scope.keep(scope.derive(node, (value, other), value.bound, computed=False))
        return
    target = (scope.rng.randint(1, 3), *(scope.rng.randint(1, 3) if size == 1 else size for size in value.shape))
    mode = scope.rng.choice(("NUMPY", "BIDIRECTIONAL"))
    moved(scope, ops.broadcast(value.output, integers(*target), broadcast_spec=mode), value)


def shape_of(scope: GraphScope) -> None:
    """ShapeOf as whole numbers to compute with."""
    if value := scope.pick(ALL_TYPES, lambda v: v.rank > 0):
        node = ops.shape_of(value.output, scope.rng.choice(("i32", "i64")))
        scope.keep(replace(scope.derive(node, (value,), max(value.shape), computed=False), roots=frozenset()))


def split(scope: GraphScope) -> None:
    """Split into equal parts, of which two stay in use."""
    if value := scope.pick(ALL_TYPES, lambda v: any(size > 1 for size in v.shape)):
        axis = scope.rng.choice([axis for axis, size in enumerate(value.shape) if size > 1])
        parts = value.shape[axis]
        node = ops.split(value.output, ops.constant(np.array(axis)), parts)
        for output in scope.rng.sample(range(parts), 2):
            moved(scope, node, value, output=output)


def variadic_split(scope: GraphScope) -> None:
    """VariadicSplit into two unequal parts, the second as long as what is left."""
    if value := scope.pick(ARITHMETIC, lambda v: any(size > 1 for size in v.shape)):
        axis = scope.rng.choice([axis for axis, size in enumerate(value.shape) if size > 1])
        head = scope.rng.randint(1, value.shape[axis] - 1)
        lengths = integers(head, -1 if scope.chance(0.5) else value.shape[axis] - head)
        node = ops.variadic_split(value.output, ops.constant(np.array(axis - value.rank)), lengths)
        for output in (0, 1):
            moved(scope, node, value, output=output)
