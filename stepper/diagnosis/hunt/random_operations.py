"""Operations that compute: element by element, along axes, matrix products, comparisons and recurrent cells.

Each function takes a scope, chooses operands among its values and offers the result to it; it does nothing where no
operand fits. Discontinuous operations stay away from half precision and from constants that a value can reach.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import openvino.opset1 as ops1
import openvino.opset7 as ops7
import openvino.opset8 as ops8
import openvino.opset13 as ops

from stepper.records import Record

# How far a generator leaves the ground on which every runtime is known to agree.


class Freedom(Record):
    """Probabilities, each of something that a careful generator leaves out. With 0 nothing is drawn for it.

    `idle`: a loop keeps inputs, states and Results that nothing needs. `shared`: a Constant is read by several
    operations. `in_place`: what a Parameter holds goes on without an operation that computes. `order`: Parameters
    stand in any order. `slices`: parts overlap or leave gaps. `tied`: products share a matrix, plain or transposed.
    """

    idle: float = 0.0
    shared: float = 0.0
    in_place: float = 0.0
    order: float = 0.0
    slices: float = 0.0
    tied: float = 0.0


CAREFUL: Final = Freedom()
FREE: Final = Freedom(idle=0.1, shared=0.2, in_place=0.05, order=0.1, slices=0.05, tied=0.3)
PORT_MAPS: Final = Freedom(idle=0.2, in_place=0.05, order=0.3, slices=0.5)


# Values of a graph under construction, and the scope in which new ones are derived from them.
#
# Every value carries what the generator has to know so that a model cannot leave safe ground: its shape, a bound on its
# magnitude, whether arithmetic stands between it and a Parameter, whether half precision has touched it, and on
# which Parameters its elements depend.

FLOATS = ("f32", "f16")
INTEGERS = ("i32", "i64")
NUMBERS = (*FLOATS, *INTEGERS)
ARITHMETIC = (*NUMBERS, "u8")
ALL_TYPES = (*ARITHMETIC, "boolean")

DTYPES: dict[str, Any] = {
    "f32": np.float32,
    "f16": np.float16,
    "i32": np.int32,
    "i64": np.int64,
    "u8": np.uint8,
    "boolean": np.bool_,
}
"""The numpy type of each element type in use."""

USUAL_BOUND = {"f32": 1.5, "f16": 1.0, "i32": 5, "i64": 5, "u8": 9, "boolean": 1}
"""Magnitude of fresh random data."""

LARGEST_BOUND = {"f32": 20.0, "f16": 4.0, "i32": 2000, "i64": 2000, "u8": 255, "boolean": 1}
"""Magnitude above which a derived value is squeezed again."""

LARGEST_SIZE = 48
"""Elements that a value inside a body may have."""


@dataclass(frozen=True, eq=False)
class Value:
    """One output of a node with its shape (-1: known at run time only) and its bound."""

    output: Any
    shape: tuple[int, ...]
    element_type: str
    bound: float
    computed: bool = True
    coarse: bool = False
    roots: frozenset[str] = frozenset()

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)

    @property
    def rank(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def rooted(self) -> bool:
        """True if the value depends on a Parameter, so that no compiler folds it."""
        return bool(self.roots)

    @property
    def settled(self) -> bool:
        """True if every dimension is known while the model is built."""
        return -1 not in self.shape


def random_array(rng: random.Random, shape: Sequence[int], element_type: str, bound: float) -> np.ndarray:
    """Random data within the bound; floats are multiples of 1/64, which pack well."""
    count = math.prod(shape)
    if element_type in FLOATS:
        reach = round(bound * 64)
        drawn = [rng.randint(-reach, reach) / 64 for _ in range(count)]
    elif element_type == "boolean":
        drawn = [rng.random() < 0.5 for _ in range(count)]
    else:
        lowest = 0 if element_type == "u8" else -int(bound)
        drawn = [rng.randint(lowest, int(bound)) for _ in range(count)]
    return np.array(drawn, dtype=DTYPES[element_type]).reshape(tuple(shape))


def random_shape(rng: random.Random, rank: int, largest: int = 4) -> tuple[int, ...]:
    """A small shape of the given rank, seldom with ones."""
    return tuple(rng.choice((1, 2, 2, 3, 3, largest)) for _ in range(rank))


class GraphScope(ABC):
    """One graph under construction: the values so far, and the loops and branches around it."""

    def __init__(
        self,
        rng: random.Random,
        features: set[str],
        fill: Callable[[GraphScope, int], None],
        path: tuple[str, ...] = (),
        freedom: Freedom = CAREFUL,
    ) -> None:
        """An empty graph below `path`, the kinds of the subgraph operations around it; `fill` adds operations."""
        self.rng = rng
        self.features = features
        self.fill = fill
        self.path = path
        self.freedom = freedom
        self.constants: list[Value] = []
        self.values: list[Value] = []
        self.unused: list[Value] = []

    @abstractmethod
    def obtain(self, element_type: str, shape: tuple[int, ...], bound: float | None = None) -> Value:
        """A value of this type and shape for a subgraph operation to take in."""

    @abstractmethod
    def exactly(self, array: np.ndarray, *, at_run_time: bool = False) -> Value:
        """A value with exactly these elements, unknown to the compiler if it has to be set at run time."""

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.rng.random() < probability

    def is_free(self, probability: float) -> bool:
        """True with the given probability of a freedom; nothing is drawn where there is none."""
        return probability > 0 and self.rng.random() < probability

    def keep(self, value: Value) -> Value:
        """Offer a value to the operations that follow, if its shape allows that."""
        if value.settled and 0 < value.size <= LARGEST_SIZE:
            self.values.append(value)
            self.unused.append(value)
        return value

    def derive(self, node: Any, bound: float, *parents: Value, computed: bool = True, output: int = 0) -> Value:
        """The value that a new node over `parents` gives; moving data keeps what the parents were."""
        port = node.output(output)
        shape = tuple(d.get_length() if d.is_static else -1 for d in port.get_partial_shape())
        element_type = port.get_element_type().get_type_name()
        for parent in parents:
            if parent in self.unused:
                self.unused.remove(parent)
        through_arithmetic = computed or (bool(parents) and all(p.computed for p in parents))
        coarse = element_type == "f16" or any(p.coarse for p in parents)
        roots = frozenset(root for parent in parents for root in parent.roots)
        return Value(port, shape, element_type, bound, through_arithmetic, coarse, roots)

    def offer(self, node: Any, bound: float, *parents: Value, computed: bool = True, output: int = 0) -> Value:
        """Derive a value and keep it."""
        return self.keep(self.derive(node, bound, *parents, computed=computed, output=output))

    def offer_tamed(self, node: Any, bound: float, *parents: Value, computed: bool = True) -> Value:
        """Derive a value and keep it within the bound that its type may have."""
        return self.keep(tamed(self, self.derive(node, bound, *parents, computed=computed)))

    def constant_of(self, array: np.ndarray) -> Value:
        """A Constant with these elements."""
        node = ops.constant(array)
        bound = float(np.abs(array.astype(np.float64)).max()) if array.size else 0.0
        return self.derive(node, bound, computed=False)

    def number(self, number: float, like: Value) -> Value:
        """A scalar Constant of the element type of `like`."""
        return self.constant_of(np.array(number, DTYPES[like.element_type]))

    def constant(self, shape: Sequence[int], element_type: str, bound: float | None = None) -> Value:
        """A Constant of random elements; a lone 0 or 1 is avoided, so that no arithmetic with it is optimised away."""
        limit = USUAL_BOUND[element_type] if bound is None else bound
        if self.is_free(self.freedom.shared):
            same = [v for v in self.constants if (v.element_type, v.shape) == (element_type, tuple(shape))]
            if same := [v for v in same if v.bound <= limit]:
                return self.rng.choice(same)
        array = random_array(self.rng, shape, element_type, limit)
        if array.size == 1 and element_type != "boolean" and array.item() in (0, 1):
            array = np.full_like(array, limit)
        value = self.constant_of(array)
        self.constants.append(value)
        return value

    def parameter(self, shape: Sequence[int], element_type: str, bound: float, coarse: bool = False) -> Value:
        """A new Parameter of this graph; a dimension of -1 stays dynamic."""
        node = ops.parameter(list(shape), DTYPES[element_type])
        roots = frozenset((node.get_name(),))
        return Value(node.output(0), tuple(shape), element_type, bound, False, coarse or element_type == "f16", roots)

    def parameter_for(self, outer: Value) -> Value:
        """A new Parameter of this graph that takes in a value of the graph around it."""
        return self.parameter(outer.shape, outer.element_type, outer.bound, outer.coarse)

    def pick(self, types: Sequence[str], accept: Callable[[Value], bool] | None = None) -> Value | None:
        """A value of one of these types, mostly one that nothing uses yet."""
        matching = [v for v in self.values if v.element_type in types and (accept is None or accept(v))]
        fresh = [v for v in matching if v in self.unused]
        if fresh and self.chance(0.6):
            return self.rng.choice(fresh)
        return self.rng.choice(matching) if matching else None


# Turning a value into one of a wanted element type, shape, bound: the glue between randomly chosen operations.


def limit(scope: GraphScope, value: Value, bound: float) -> Value:
    """The value itself, or squeezed so that no element exceeds the bound."""
    if value.bound <= bound:
        return value
    if value.element_type in FLOATS:
        squeezed = scope.derive(ops.tanh(value.output), 1.0, value)
        if bound >= 1.0:
            return squeezed
        factor = scope.number(bound, value)
        return scope.derive(ops.multiply(squeezed.output, factor.output), bound, squeezed)
    if value.element_type == "u8":
        ceiling = scope.number(int(bound), value)
        return scope.derive(ops.minimum(value.output, ceiling.output), bound, value)
    lowest, highest = -float(int(bound)), float(int(bound))
    return scope.derive(ops.clamp(value.output, lowest, highest), bound, value)


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
        return scope.derive(make(output), value.bound, value)
    if value.element_type in INTEGERS:
        make = rng.choice((ops.negative, ops.abs))
        return scope.derive(make(output), value.bound, value)
    if value.element_type == "u8":
        other = scope.constant(value.shape, "u8")
        node = ops.maximum(output, other.output)
        return scope.derive(node, max(value.bound, other.bound), value)
    return scope.derive(ops.logical_not(output), 1, value)


def floored(scope: GraphScope, value: Value) -> Value:
    """A float value rounded down after a shift that keeps it off whole numbers, as i32."""
    shift = scope.number(0.31837 + 0.0625 * scope.rng.randint(0, 4), value)
    shifted = scope.derive(ops.add(value.output, shift.output), value.bound + 1, value)
    whole = scope.derive(ops.floor(shifted.output), shifted.bound + 1, shifted)
    return scope.derive(ops.convert(whole.output, "i32"), whole.bound, whole)


def converted(scope: GraphScope, value: Value, element_type: str) -> Value:
    """The value as another element type, by conversions on which every runtime agrees."""
    if value.element_type == element_type:
        return value
    if element_type in FLOATS:
        reduced = limit(scope, value, LARGEST_BOUND["f16"]) if element_type == "f16" else value
        return scope.derive(ops.convert(reduced.output, element_type), reduced.bound, reduced, computed=False)
    if value.element_type in FLOATS:
        value = scope.constant(value.shape, "i32") if value.coarse else floored(scope, value)
    if element_type == "boolean":
        threshold = scope.number(scope.rng.randint(0, 2), value)
        return scope.derive(ops.greater(value.output, threshold.output), 1, value)
    if element_type == "u8" and value.element_type != "boolean":
        value = scope.derive(ops.clamp(value.output, 0.0, 60.0), min(60, value.bound), value)
    return scope.derive(ops.convert(value.output, element_type), value.bound, value, computed=False)


def flattened_sum(scope: GraphScope, value: Value, keep: Sequence[int] = ()) -> Value:
    """The value reduced over every axis but `keep`."""
    axes = [axis for axis in range(value.rank) if axis not in keep]
    if not axes:
        return value
    reduce = ops.reduce_max if value.element_type == "u8" or not value.settled else ops.reduce_sum
    count = abs(math.prod(value.shape[axis] for axis in axes))
    node = reduce(value.output, integers(*axes), False)
    bound = value.bound * (1 if reduce is ops.reduce_max else count)
    return tamed(scope, scope.derive(node, bound, value, computed=count != 1 or not value.settled))


def settled(scope: GraphScope, value: Value) -> Value:
    """The value with every axis of unknown length reduced away."""
    if value.settled:
        return value
    if value.element_type == "boolean":
        value = scope.derive(ops.convert(value.output, "i32"), 1, value)
    return flattened_sum(scope, value, keep=[axis for axis, size in enumerate(value.shape) if size != -1])


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """True if numpy's rules stretch `shape` to exactly `target`."""
    if len(shape) > len(target):
        return False
    return all(a in (1, b) for a, b in zip(reversed(shape), reversed(target), strict=False))


def reshaped(scope: GraphScope, value: Value, shape: Sequence[int]) -> Value:
    """The same elements in another shape of the same size."""
    pattern = integers(*shape)
    return scope.derive(ops.reshape(value.output, pattern, False), value.bound, value, computed=False)


def stretched(scope: GraphScope, value: Value, shape: tuple[int, ...]) -> Value:
    """The value spread over a larger shape by arithmetic with a constant."""
    other = scope.constant(shape, value.element_type)
    if value.element_type == "u8":
        node = ops.maximum(value.output, other.output)
        return scope.derive(node, max(value.bound, other.bound), value)
    node = ops.add(value.output, other.output)
    return tamed(scope, scope.derive(node, value.bound + other.bound, value))


def shaped(scope: GraphScope, value: Value, shape: tuple[int, ...]) -> Value:
    """The value brought to the wanted shape: reshaped, stretched, or summed up and stretched."""
    if value.shape == shape:
        return value
    if value.size == math.prod(shape):
        return reshaped(scope, value, shape)
    if value.element_type == "boolean":
        value = scope.derive(ops.convert(value.output, "i32"), 1, value)
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


Operation = Callable[[GraphScope], None]

UNARY: tuple[tuple[Any, Sequence[str], Callable[[float], float]], ...] = (
    (ops.tanh, FLOATS, lambda bound: min(bound, 1.0)),
    (ops.sigmoid, FLOATS, lambda bound: 1.0),
    (ops.relu, FLOATS, lambda bound: bound),
    (ops.abs, NUMBERS, lambda bound: bound),
    (ops.negative, NUMBERS, lambda bound: bound),
)

BINARY: tuple[tuple[Any, Sequence[str], Callable[[float, float], float]], ...] = (
    (ops.add, ARITHMETIC, lambda a, b: a + b),
    (ops.subtract, NUMBERS, lambda a, b: a + b),
    (ops.multiply, ARITHMETIC, lambda a, b: a * b),
    (ops.maximum, ARITHMETIC, max),
    (ops.minimum, ARITHMETIC, max),
)


def unary(scope: GraphScope) -> None:
    """Tanh, Sigmoid, ReLU, Abs or Negative."""
    make, types, bound = scope.rng.choice(UNARY)
    if value := scope.pick(types):
        scope.offer(make(value.output), bound(value.bound), value)


def partner(scope: GraphScope, value: Value) -> Value:
    """A second operand whose shape goes with that of `value`: another value or a Constant."""
    fits = [
        v
        for v in scope.values
        if v is not value
        and v.element_type == value.element_type
        and (broadcasts_to(v.shape, value.shape) or broadcasts_to(value.shape, v.shape))
    ]
    if fits and scope.chance(0.65):
        return scope.rng.choice(fits)
    tail = scope.rng.randint(0, value.rank)
    shape = tuple(scope.rng.choice((size, size, 1)) for size in value.shape[tail:])
    return scope.constant(shape, value.element_type)


def binary(scope: GraphScope) -> None:
    """Add, Subtract, Multiply, Maximum or Minimum with numpy broadcasting."""
    make, types, bound = scope.rng.choice(BINARY)
    if (first := scope.pick(types)) is None:
        return
    second = partner(scope, first)
    if first.element_type == "u8":
        first, second = limit(scope, first, 12), limit(scope, second, 12)
    if scope.chance(0.5):
        first, second = second, first
    node = make(first.output, second.output)
    scope.offer_tamed(node, bound(first.bound, second.bound), first, second)


def divide(scope: GraphScope) -> None:
    """Divide by something that stays away from zero."""
    if (value := scope.pick(FLOATS)) is None:
        return
    other = partner(scope, value)
    distant = ops.add(ops.abs(other.output), scope.number(0.75, value).output)
    scope.offer_tamed(ops.divide(value.output, distant), value.bound / 0.75, value, other)


def clamp(scope: GraphScope) -> None:
    """Clamp to a random interval around zero."""
    if value := scope.pick(NUMBERS):
        reach = float(scope.rng.randint(1, 4)) if value.element_type in INTEGERS else scope.rng.choice((0.5, 1.0, 1.75))
        node = ops.clamp(value.output, -reach / (1 if value.element_type in INTEGERS else 2), reach)
        scope.offer(node, min(value.bound, reach), value)


def exponential(scope: GraphScope) -> None:
    """Exp of a value that Clamp keeps small."""
    if value := scope.pick(FLOATS):
        node = ops.exp(ops.clamp(value.output, -2.0, 1.25))
        scope.offer(node, 3.5, value)


def root(scope: GraphScope) -> None:
    """Sqrt of an absolute value, away from its vertical tangent."""
    if value := scope.pick(FLOATS):
        node = ops.sqrt(ops.add(ops.abs(value.output), scope.number(0.0625, value).output))
        scope.offer(node, (value.bound + 0.0625) ** 0.5, value)


def power(scope: GraphScope) -> None:
    """Power of a positive base with a constant exponent."""
    if value := scope.pick(FLOATS):
        base = limit(scope, value, 3.0)
        positive = ops.add(ops.abs(base.output), scope.number(0.5, value).output)
        exponent = scope.rng.choice((0.5, 1.5, 2.0, -0.5))
        node = ops.power(positive, scope.number(exponent, value).output)
        bound = max((base.bound + 0.5) ** exponent, 0.5**exponent)
        scope.offer_tamed(node, bound, value)


def floor(scope: GraphScope) -> None:
    """Floor of a float that is shifted off whole numbers."""
    if value := scope.pick(FLOATS, lambda v: not v.coarse):
        shifted = ops.add(value.output, scope.number(0.28418, value).output)
        scope.offer(ops.floor(shifted), value.bound + 1, value)


def softmax(scope: GraphScope) -> None:
    """Softmax along any axis, counted from either end; of a Parameter the runtime computes it in place and wrongly."""
    if value := scope.pick(FLOATS, lambda v: v.rank > 0 and (v.computed or scope.is_free(scope.freedom.in_place))):
        axis = scope.rng.randrange(value.rank)
        backwards = scope.chance(0.5)
        node = ops8.softmax(value.output, axis - value.rank) if backwards else ops1.softmax(value.output, axis)
        scope.offer(node, 1.0, value)


def cumulative_sum(scope: GraphScope) -> None:
    """CumSum in all its four modes."""
    if value := scope.pick(("f32", "i32"), lambda v: v.rank > 0):
        axis = scope.rng.randrange(value.rank)
        node = ops.cum_sum(value.output, ops.constant(axis), scope.chance(0.4), scope.chance(0.4))
        bound = value.bound * value.shape[axis]
        scope.offer_tamed(node, bound, value, computed=False)


def reduction(scope: GraphScope) -> None:
    """ReduceSum, ReduceMax or ReduceMean over some of the axes."""
    make = scope.rng.choice((ops.reduce_sum, ops.reduce_max, ops.reduce_mean))
    types = FLOATS if make is ops.reduce_mean else NUMBERS
    if (value := scope.pick(types, lambda v: v.rank > 0)) is None:
        return
    axes = sorted(scope.rng.sample(range(value.rank), scope.rng.randint(1, value.rank)))
    count = int(np.prod([value.shape[axis] for axis in axes]))
    written = [axis - value.rank if scope.chance(0.3) else axis for axis in axes]
    node = make(value.output, integers(*written), scope.chance(0.5))
    bound = value.bound * (count if make is ops.reduce_sum else 1)
    scope.offer_tamed(node, bound, value, computed=count > 1)


def matrix_product(scope: GraphScope) -> None:
    """MatMul with a constant matrix, plain or transposed; or with one that is in use already, as tied weights are."""
    if (value := scope.pick(("f32", "f32", "f16"), lambda v: v.rank > 0)) is None:
        return
    inner, columns = value.shape[-1], scope.rng.randint(1, 4)
    transposed = scope.chance(0.5)
    tied: list[Value] = []
    if scope.is_free(scope.freedom.tied):
        tied = [one for one in scope.constants if one.rank == 2 and one.bound <= 1 and inner in one.shape]
        tied = [one for one in tied if one.element_type == value.element_type]
        columns = inner  # a square one can be read both ways
    if tied:
        weights = scope.rng.choice(tied)
        transposed = weights.shape[0] != inner or (weights.shape[1] == inner and transposed)
    else:
        weights = scope.constant((columns, inner) if transposed else (inner, columns), value.element_type, 1.0)
    node = ops.matmul(value.output, weights.output, False, transposed)
    scope.offer_tamed(node, value.bound * inner, value)
    if scope.is_free(scope.freedom.tied) and weights.shape == (inner, inner):  # the way back, as a decoder goes it
        node = ops.matmul(value.output, weights.output, False, not transposed)
        scope.offer_tamed(node, value.bound * inner, value)


def inner_product(scope: GraphScope) -> None:
    """MatMul of a value with its own transpose."""
    if value := scope.pick(("f32",), lambda v: v.rank >= 2):
        flip = scope.chance(0.5)
        node = ops.matmul(value.output, value.output, flip, not flip)
        bound = value.bound * value.bound * value.shape[-2 if flip else -1]
        scope.offer_tamed(node, bound, value)


def comparison(scope: GraphScope) -> None:
    """Greater, Less or Equal: whole numbers with each other, floats with constants off their grid."""
    value = scope.pick((*INTEGERS, "u8", "f32"), lambda v: not v.coarse)
    if value is None:
        return
    make = scope.rng.choice((ops.greater, ops.less, ops.equal))
    if value.element_type == "f32":
        make = ops.greater if make is ops.equal else make
        other = scope.number(scope.rng.randint(-4, 4) / 8 + 0.02719, value)
    else:
        other = partner(scope, value)
    scope.offer(make(value.output, other.output), 1, value, other)


def logic(scope: GraphScope) -> None:
    """LogicalNot, or LogicalAnd with another boolean."""
    if (value := scope.pick(("boolean",))) is None:
        return
    if scope.chance(0.4):
        scope.offer(ops.logical_not(value.output), 1, value)
        return
    other = partner(scope, value)
    scope.offer(ops.logical_and(value.output, other.output), 1, value, other)


def select(scope: GraphScope) -> None:
    """Select between a value and its partner."""
    if (value := scope.pick(ARITHMETIC)) is None:
        return
    shape = value.shape
    chooser = scope.pick(("boolean",), lambda v: broadcasts_to(v.shape, shape))
    chooser = chooser or scope.constant(shape, "boolean")
    other = partner(scope, value)
    if not broadcasts_to(other.shape, value.shape):
        value, other = other, value
    node = ops.select(chooser.output, value.output, other.output)
    scope.offer(node, max(value.bound, other.bound), chooser, value, other)


def conversion(scope: GraphScope) -> None:
    """Convert to another element type."""
    targets = ("f32", "f32", "i32", "i64", "u8", "boolean", "f16")
    if value := scope.pick(("f32", "i32", "i64", "u8", "boolean", "f16")):
        target = scope.rng.choice([t for t in targets if t != value.element_type])
        scope.keep(converted(scope, value, target))


def matrix(scope: GraphScope, shape: tuple[int, int]) -> Value:
    """An f32 value of this shape: one of the scope's, brought to that shape, or a Constant."""
    value = scope.pick(("f32",), lambda v: not v.coarse)
    return scope.constant(shape, "f32") if value is None else adapted(scope, value, "f32", shape)


def recurrent(name: str, *arguments: Any, **options: Any) -> Any:
    """A recurrent cell or sequence, by the name of its function; an RNN has tanh."""
    if name.startswith("rnn"):
        options |= {"activations": ["tanh"], "activations_alpha": [], "activations_beta": []}
    return getattr(ops, name)(*arguments, **options)


def cell(scope: GraphScope, data: Value, states: Sequence[Value], kind: str) -> list[Value]:
    """The next states that an LSTMCell, GRUCell or RNNCell with constant weights gives."""
    hidden = states[0].shape[1]
    gates = {"LSTMCell": 4, "GRUCell": 3, "RNNCell": 1}[kind]
    weights = scope.constant((gates * hidden, data.shape[1]), "f32", 1.0).output
    recurrence = scope.constant((gates * hidden, hidden), "f32", 1.0).output
    reset = kind == "GRUCell" and scope.chance(0.4)
    bias = scope.constant(((gates + reset) * hidden,), "f32", 0.5).output
    given = [data.output, *(state.output for state in states), weights, recurrence, bias, hidden]
    options = {"linear_before_reset": reset} if kind == "GRUCell" else {}
    node = recurrent(kind.replace("Cell", "_cell").lower(), *given, **options)
    bounds = {
        "LSTMCell": [1.0, states[-1].bound + 1],
        "GRUCell": [max(1.0, states[0].bound)],
        "RNNCell": [1.0],
    }[kind]
    parents = (data, *states)
    return [scope.offer(node, bound, *parents, output=k) for k, bound in enumerate(bounds)]


def recurrent_cell(scope: GraphScope) -> None:
    """A recurrent cell over values of the scope."""
    batch, features, hidden = scope.rng.randint(1, 2), scope.rng.randint(1, 3), scope.rng.randint(1, 3)
    kind = scope.rng.choice(("LSTMCell", "GRUCell", "RNNCell"))
    data = matrix(scope, (batch, features))
    states = [matrix(scope, (batch, hidden)) for _ in range(2 if kind == "LSTMCell" else 1)]
    cell(scope, data, states, kind)
    scope.features.add(kind)


# Operations that move data or look at shapes: Concat, slices, Transpose, Reshape, Gather, Split and the like.


def moved(scope: GraphScope, node: object, *parents: Value, output: int = 0) -> None:
    """Offer the result of a node that only moves its parents' elements."""
    bound = max(parent.bound for parent in parents)
    scope.offer(node, bound, *parents, computed=False, output=output)


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
    moved(scope, make(value.output, indices, ops.constant(axis)), value)


def gather_computed(scope: GraphScope) -> None:
    """Gather whose indices are computed, kept inside the axis."""
    value = scope.pick(ALL_TYPES, lambda v: v.rank > 0)
    indices = scope.pick(INTEGERS, lambda v: v.rank <= 1 and not v.coarse)
    if value is None or indices is None:
        return
    axis = scope.rng.randrange(value.rank)
    within = ops.clamp(ops.abs(indices.output), 0.0, float(value.shape[axis] - 1))
    node = ops.gather(value.output, within, ops.constant(axis))
    scope.offer(node, value.bound, value, indices, computed=False)


def broadcast(scope: GraphScope) -> None:
    """Broadcast to a constant shape, or to the shape of another value."""
    if (value := scope.pick(ALL_TYPES, lambda v: v.size <= LARGEST_SIZE // 4)) is None:
        return
    other = scope.pick(ALL_TYPES, lambda v: v is not value and v.rank > 0 and broadcasts_to(value.shape, v.shape))
    if other is not None and scope.chance(0.5):
        node = ops.broadcast(value.output, ops.shape_of(other.output, scope.rng.choice(("i32", "i64"))))
        scope.offer(node, value.bound, value, other, computed=False)
        return
    target = (scope.rng.randint(1, 3), *(scope.rng.randint(1, 3) if size == 1 else size for size in value.shape))
    mode = scope.rng.choice(("NUMPY", "BIDIRECTIONAL"))
    moved(scope, ops.broadcast(value.output, integers(*target), broadcast_spec=mode), value)


def shape_of(scope: GraphScope) -> None:
    """ShapeOf as whole numbers to compute with."""
    if value := scope.pick(ALL_TYPES, lambda v: v.rank > 0):
        node = ops.shape_of(value.output, scope.rng.choice(("i32", "i64")))
        scope.keep(replace(scope.derive(node, max(value.shape), value, computed=False), roots=frozenset()))


def split(scope: GraphScope) -> None:
    """Split into equal parts, of which two stay in use."""
    if value := scope.pick(ALL_TYPES, lambda v: any(size > 1 for size in v.shape)):
        axis = scope.rng.choice([axis for axis, size in enumerate(value.shape) if size > 1])
        parts = value.shape[axis]
        node = ops.split(value.output, ops.constant(axis), parts)
        for output in scope.rng.sample(range(parts), 2):
            moved(scope, node, value, output=output)


def variadic_split(scope: GraphScope) -> None:
    """VariadicSplit into two unequal parts, the second as long as what is left."""
    if value := scope.pick(ARITHMETIC, lambda v: any(size > 1 for size in v.shape)):
        axis = scope.rng.choice([axis for axis, size in enumerate(value.shape) if size > 1])
        head = scope.rng.randint(1, value.shape[axis] - 1)
        lengths = integers(head, -1 if scope.chance(0.5) else value.shape[axis] - head)
        node = ops.variadic_split(value.output, ops.constant(axis - value.rank), lengths)
        for output in (0, 1):
            moved(scope, node, value, output=output)
