"""Operations that compute or move data: drawn by weight, over values whose magnitude and origin the generator knows.

A kind of operation takes a scope and one of its values, chooses further operands and offers the result to the scope; it
adds nothing where no operand fits. Discontinuous operations stay away from half precision and from constants that a
value can reach.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, NamedTuple

import numpy as np
import openvino.opset1 as ops1
import openvino.opset7 as ops7
import openvino.opset8 as ops8
import openvino.opset13 as opset13

from stepper.element_types import ELEMENT_TYPES, Array, name_of
from stepper.records import Record

ops: Any = opset13
"""The functions also take numbers, lists and arrays, as Constants."""


class Freedom(Record):
    """Hold the probability of each feature that a careful generator leaves out.

    `idle`: a loop keeps inputs, states and Results that nothing needs. `shared`: several operations read one Constant.
    `in_place`: a Parameter's value passes on without an operation that computes. `order`: Parameters stand in any
    order. `slices`: parts overlap or leave gaps. `tied`: products share a matrix, plain or transposed.
    """

    idle: float = 0.0
    shared: float = 0.0
    in_place: float = 0.0
    order: float = 0.0
    slices: float = 0.0
    tied: float = 0.0


CAREFUL = Freedom()
FREE = Freedom(idle=0.1, shared=0.2, in_place=0.05, order=0.1, slices=0.05, tied=0.3)
PORT_MAPS = Freedom(idle=0.2, in_place=0.05, order=0.3, slices=0.5)

FLOATS = ("f32", "f16")
FLOATING = (*FLOATS, "bf16", "f64")
INTEGERS = ("i32", "i64")
NUMBERS = (*FLOATS, *INTEGERS)
ARITHMETIC = (*NUMBERS, "u8")
ALL_TYPES = (*ARITHMETIC, "boolean")

USUAL_BOUND = {"f32": 1.5, "f16": 1.0, "i32": 5, "i64": 5, "u8": 9, "boolean": 1}
"""Magnitude of fresh random data."""

LARGEST_BOUND = {"f32": 20.0, "f16": 4.0, "i32": 2000, "i64": 2000, "u8": 255, "boolean": 1}
"""Magnitude above which a derived value is squeezed again."""

LARGEST_SIZE = 48
"""Elements that a value inside a body may have."""


@dataclass(frozen=True, eq=False)
class Value:
    """Hold an output of a node with its shape (-1: known at run time only) and its bound.

    `computed`: arithmetic stands between it and a Parameter. `coarse`: half precision has touched it. `roots`: the
    Parameters on which its elements depend.
    """

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
    def settled(self) -> bool:
        """True if every dimension is known while the model is built."""
        return -1 not in self.shape

    @property
    def name(self) -> str:
        """The unique name of the node."""
        return str(self.output.get_node().get_name())


def like(output: Any, number: float) -> Array:
    """A number of the element type of an output."""
    return np.array(number, output.get_element_type().to_dtype())


def random_array(rng: random.Random, shape: Sequence[int], element_type: str, low: float, high: float) -> Array:
    """Random data within the limits; floats are multiples of 1/64, which packs well."""
    factor = 1 / 64 if element_type in FLOATING else 1.0
    reach = (0, 1) if element_type == "boolean" else (round(low / factor), round(high / factor))
    drawn = np.array([rng.randint(*reach) for _ in range(math.prod(shape))]) * factor
    return drawn.astype(ELEMENT_TYPES[element_type].dtype).reshape(tuple(shape))


def random_shape(rng: random.Random, rank: int, largest: int = 4) -> tuple[int, ...]:
    """A small shape of the given rank, seldom with ones."""
    return tuple(rng.choice((1, 2, 2, 3, 3, largest)) for _ in range(rank))


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    """True if numpy's rules stretch `shape` to exactly `target`."""
    pairs = zip(reversed(shape), reversed(target), strict=False)
    return len(shape) <= len(target) and all(a in (1, b) for a, b in pairs)


_TOUCHING: Final[dict[str, tuple[Any, ...]]] = {
    **dict.fromkeys(FLOATS, (ops.tanh, ops.negative, ops.relu, ops.abs)),
    **dict.fromkeys(INTEGERS, (ops.negative, ops.abs)),
    "u8": (lambda x: ops.maximum(x, np.uint8(1)),),
    "boolean": (ops.logical_not,),
}
"""Operations that compute and keep the bound."""


class GraphScope:
    """Build one graph: keep its values so far and the kinds of loops and branches around it.

    Without a path it is the model's own graph, whose inputs are Parameters, each with its array.
    """

    def __init__(
        self,
        rng: random.Random,
        freedom: Freedom,
        path: tuple[str, ...] = (),
    ) -> None:
        self.rng, self.freedom, self.path = rng, freedom, path
        self.constants: list[Value] = []
        self.values: list[Value] = []
        self.unused: list[Value] = []
        self.parameters: list[Value] = []
        self.arrays: list[Array] = []
        self.exact: list[Value] = []

    def inside(self, kind: str) -> GraphScope:
        """The scope of a body of this kind."""
        return GraphScope(self.rng, self.freedom, (*self.path, kind))

    def chance(self, probability: float) -> bool:
        """True with the given probability."""
        return self.rng.random() < probability

    # Values: derived, constant, given.

    def value_of(self, output: Any, bound: float, parents: Sequence[Value], *, computed: bool = True) -> Value:
        """The value that a node over `parents` gives; moving data keeps what the parents were."""
        shape = tuple(d.get_length() if d.is_static else -1 for d in output.get_partial_shape())
        element_type = output.get_element_type().get_type_name()
        self.unused = [value for value in self.unused if value not in parents]
        computed = computed or (bool(parents) and all(p.computed for p in parents))
        coarse = element_type == "f16" or any(p.coarse for p in parents)
        roots = frozenset(root for parent in parents for root in parent.roots)
        return Value(output, shape, element_type, bound, computed, coarse, roots)

    def derive(self, make: Any, bound: float, *operands: Any, computed: bool = True, **attributes: Any) -> Value:
        """Return the result of a function on operands, which are values or plain arguments."""
        node = make(*(one.output if isinstance(one, Value) else one for one in operands), **attributes)
        parents = [one for one in operands if isinstance(one, Value)]
        return self.value_of(node.output(0), bound, parents, computed=computed)

    def keep(self, value: Value) -> Value:
        """Offer a value to the operations that follow, if its shape allows that."""
        if value.settled and 0 < value.size <= LARGEST_SIZE:
            self.values.append(value)
            self.unused.append(value)
        return value

    def offer(self, make: Any, bound: float, *operands: Any, computed: bool = True, **attributes: Any) -> Value:
        """Derive a value and keep it, within the bound that its type may have."""
        return self.keep(self.tamed(self.derive(make, bound, *operands, computed=computed, **attributes)))

    def move(self, make: Any, *operands: Any, **attributes: Any) -> Value:
        """Offer the result of a function that only moves elements."""
        bound = max(one.bound for one in operands if isinstance(one, Value))
        return self.offer(make, bound, *operands, computed=False, **attributes)

    def constant_of(self, array: Array) -> Value:
        """A Constant with these elements."""
        bound = float(np.abs(array.astype(np.float64)).max(initial=0))
        return self.derive(ops.constant, bound, array, computed=False)

    def constant(self, shape: Sequence[int], element_type: str, bound: float | None = None) -> Value:
        """A Constant of random elements; a lone 0 or 1 is avoided, so that no arithmetic with it is optimised away."""
        limit = USUAL_BOUND[element_type] if bound is None else bound
        if self.chance(self.freedom.shared):
            same = [v for v in self.constants if (v.element_type, v.shape) == (element_type, tuple(shape))]
            if same := [v for v in same if v.bound <= limit]:
                return self.rng.choice(same)
        array = self.random_array(shape, element_type, limit)
        if array.size == 1 and element_type != "boolean" and array.item() in (0, 1):
            array = np.full_like(array, limit)
        self.constants.append(self.constant_of(array))
        return self.constants[-1]

    def random_array(self, shape: Sequence[int], element_type: str, bound: float) -> Array:
        """Random data within the bound."""
        low = 0 if element_type == "u8" else -bound
        return random_array(self.rng, shape, element_type, low, bound)

    def parameter(self, shape: Sequence[int], element_type: str, bound: float, *, coarse: bool = False) -> Value:
        """A new Parameter of this graph; a dimension of -1 stays dynamic."""
        node = ops.parameter(list(shape), ELEMENT_TYPES[element_type].dtype)
        coarse, roots = coarse or element_type == "f16", frozenset((node.get_name(),))
        return Value(node.output(0), tuple(shape), element_type, bound, False, coarse, roots)

    def parameter_for(self, outer: Value) -> Value:
        """A new Parameter that takes in a value of the graph around."""
        return self.parameter(outer.shape, outer.element_type, outer.bound, coarse=outer.coarse)

    def supply(self, array: Array, bound: float) -> Value:
        """A new Parameter of the model that will be fed with this array."""
        self.parameters.append(self.parameter(array.shape, name_of(array.dtype), bound))
        self.arrays.append(array)
        return self.parameters[-1]

    def obtain(self, element_type: str, shape: tuple[int, ...], bound: float | None = None) -> Value:
        """A value of this type and shape for a subgraph operation to take in.

        In a body an adapted one, in the model mostly a new Parameter; seldom a Constant.
        """
        limit = USUAL_BOUND[element_type] if bound is None else bound
        if self.path:
            found = self.pick(ALL_TYPES, lambda v: v.element_type == element_type or not v.coarse)
            if found is None or self.chance(0.15):
                return self.constant(shape, element_type, limit)
            return self.adapted(found, element_type, shape, limit)
        same = [p for p in self.parameters if (p.element_type, p.shape) == (element_type, shape) and p.bound <= limit]
        if same and self.chance(0.3):
            return self.rng.choice(same)
        if self.parameters and self.chance(0.12):
            return self.constant(shape, element_type, limit)
        value = self.supply(self.random_array(shape, element_type, limit), limit)
        return self.touched(value) if self.chance(0.15) else value

    def exactly(self, array: Array, *, at_run_time: bool = False) -> Value:
        """A value with exactly these elements, in the model at times a Parameter, unknown to the compiler."""
        value = self.constant_of(array)
        if self.path or not (at_run_time or self.chance(0.4)):
            return value
        self.exact.append(self.supply(array, value.bound))
        return self.exact[-1]

    def pick(self, types: Sequence[str], accept: Callable[[Value], bool] | None = None) -> Value | None:
        """A value of one of these types, mostly one that nothing uses yet."""
        matching = [v for v in self.values if v.element_type in types and (accept is None or accept(v))]
        fresh = [v for v in matching if v in self.unused]
        if fresh and self.chance(0.6):
            return self.rng.choice(fresh)
        return self.rng.choice(matching) if matching else None

    def partner(self, value: Value) -> Value:
        """Return a second operand that broadcasts with `value`: another value or a Constant."""
        same = [v for v in self.values if v is not value and v.element_type == value.element_type]
        fits = [v for v in same if broadcasts_to(v.shape, value.shape) or broadcasts_to(value.shape, v.shape)]
        if fits and self.chance(0.65):
            return self.rng.choice(fits)
        tail = self.rng.randint(0, value.rank)
        return self.constant([self.rng.choice((size, size, 1)) for size in value.shape[tail:]], value.element_type)

    def written(self, axis: int, rank: int) -> int:
        """An axis as an attribute has it, at times counted from the end."""
        return axis - rank if self.chance(0.3) else axis

    # A value brought to a wanted element type, shape, bound: the glue between randomly chosen operations.

    def limit(self, value: Value, bound: float) -> Value:
        """The value itself, or squeezed so that no element exceeds the bound."""
        if value.bound <= bound or value.element_type == "boolean":
            return value
        if value.element_type in FLOATS:
            value = self.derive(ops.tanh, 1.0, value)
            return value if bound >= 1 else self.derive(ops.multiply, bound, value, like(value.output, bound))
        highest = float(int(bound))
        return self.derive(ops.clamp, bound, value, 0.0 if value.element_type == "u8" else -highest, highest)

    def tamed(self, value: Value) -> Value:
        """The value within the bound that its type may have inside a body."""
        return self.limit(value, LARGEST_BOUND.get(value.element_type, value.bound))

    def touched(self, value: Value) -> Value:
        """The value after at least one computing operation, so that it never shares a Parameter's memory."""
        if value.computed or self.chance(self.freedom.in_place):
            return value
        return self.derive(self.rng.choice(_TOUCHING[value.element_type]), value.bound, value)

    def converted(self, value: Value, element_type: str) -> Value:
        """The value as another element type, by conversions on which every runtime agrees."""
        had = value.element_type
        if had == element_type:
            return value
        if element_type == "f16":
            value = self.limit(value, LARGEST_BOUND["f16"])
        elif had in FLOATS and element_type not in FLOATS:
            if value.coarse:
                value = self.constant(value.shape, "i32")
            else:  # rounded down after a shift that keeps it off whole numbers
                shift = like(value.output, 0.31837 + 0.0625 * self.rng.randint(0, 4))
                floored = lambda x: ops.convert(ops.floor(ops.add(x, shift)), "i32")  # noqa: E731
                value = self.derive(floored, value.bound + 2, value)
        if element_type == "boolean":
            return self.derive(ops.greater, 1, value, like(value.output, self.rng.randint(0, 2)))
        if element_type == "u8" and had != "boolean":
            value = self.derive(ops.clamp, min(60, value.bound), value, 0.0, 60.0)
        if value.element_type == element_type:
            return value
        return self.derive(ops.convert, value.bound, value, element_type, computed=False)

    def total(self, value: Value, keep: Sequence[int] = ()) -> Value:
        """The value reduced over every axis but `keep`."""
        axes = [axis for axis in range(value.rank) if axis not in keep]
        if not axes:
            return value
        count = math.prod(value.shape[axis] for axis in axes)
        is_sum = value.element_type != "u8" and value.settled
        bound = value.bound * (count if is_sum else 1)
        reduce = ops.reduce_sum if is_sum else ops.reduce_max
        return self.tamed(self.derive(reduce, bound, value, axes, False, computed=count > 1))

    def reshaped(self, value: Value, shape: Sequence[int]) -> Value:
        """The same elements in another shape of the same size."""
        pattern = np.array(shape, np.int64)
        return self.derive(ops.reshape, value.bound, value, pattern, False, computed=False)

    def adapted(self, value: Value, element_type: str, shape: tuple[int, ...], bound: float | None = None) -> Value:
        """The value as the wanted element type and shape, within the bound: reshaped, or summed up and stretched."""
        if value.element_type == "boolean" and (element_type != "boolean" or value.shape != shape):
            value = self.derive(ops.convert, 1, value, "i32", computed=False)
        if value.shape != shape and value.size == math.prod(shape):
            value = self.reshaped(value, shape)
        elif value.shape != shape:
            if not broadcasts_to(value.shape, shape):
                value = self.total(value)
            other = self.constant(shape, value.element_type)
            make = ops.maximum if value.element_type == "u8" else ops.add
            value = self.tamed(self.derive(make, value.bound + other.bound, value, other))
        return self.limit(self.converted(value, element_type), USUAL_BOUND[element_type] if bound is None else bound)


class Kind(NamedTuple):
    """A kind of operation: how often it is drawn, what its first operand may be, and how it is added to a scope."""

    weight: int
    types: Sequence[str]
    accept: Callable[[Value], bool] | None
    add: Callable[[GraphScope, Value], object]


KINDS: Final[list[Kind]] = []


_Add = Callable[[GraphScope, Value], None]


def _kind(weight: int, types: Sequence[str], accept: Callable[[Value], bool] | None = None) -> Callable[[_Add], None]:
    return lambda add: KINDS.append(Kind(weight, types, accept, add))


def add_operation(scope: GraphScope) -> None:
    """Add an operation of a random kind, if a value fits."""
    kind = scope.rng.choices(KINDS, [kind.weight for kind in KINDS])[0]
    if value := scope.pick(kind.types, kind.accept):
        kind.add(scope, value)


def _has_axes(value: Value) -> bool:
    return value.rank > 0


_UNARY: Final[tuple[tuple[Any, Callable[[float], float]], ...]] = (
    (ops.abs, lambda bound: bound),
    (ops.negative, lambda bound: bound),
    (ops.tanh, lambda bound: min(bound, 1.0)),
    (ops.sigmoid, lambda _bound: 1.0),
    (ops.relu, lambda bound: bound),
    (lambda x: ops.exp(ops.clamp(x, -2.0, 1.25)), lambda _bound: 3.5),
    (lambda x: ops.sqrt(ops.add(ops.abs(x), like(x, 0.0625))), lambda bound: (bound + 0.0625) ** 0.5),
)
"""Functions with the bounds of what they give; the first two are for whole numbers, too."""

_BINARY: Final[tuple[tuple[Any, Callable[[float, float], float]], ...]] = (
    (ops.add, lambda a, b: a + b),
    (ops.multiply, lambda a, b: a * b),
    (ops.maximum, max),
    (ops.minimum, max),
    (ops.subtract, lambda a, b: a + b),
)


@_kind(8, NUMBERS)
def _unary(scope: GraphScope, value: Value) -> None:
    make, bound = scope.rng.choice(_UNARY if value.element_type in FLOATS else _UNARY[:2])
    scope.offer(make, bound(value.bound), value)


@_kind(9, ARITHMETIC)
def _binary(scope: GraphScope, value: Value) -> None:
    make, bound = scope.rng.choice(_BINARY[: -1 if value.element_type == "u8" else None])
    pair = [value, scope.partner(value)]
    if value.element_type == "u8":
        pair = [scope.limit(one, 12) for one in pair]
    scope.rng.shuffle(pair)
    scope.offer(make, bound(*(one.bound for one in pair)), *pair)


@_kind(2, FLOATS)
def _divide(scope: GraphScope, value: Value) -> None:
    away_from_zero = lambda x, y: ops.divide(x, ops.add(ops.abs(y), like(y, 0.75)))  # noqa: E731
    scope.offer(away_from_zero, value.bound / 0.75, value, scope.partner(value))


@_kind(2, FLOATS)
def _power(scope: GraphScope, value: Value) -> None:
    base, exponent = scope.limit(value, 3.0), scope.rng.choice((0.5, 1.5, 2.0, -0.5))
    positive = lambda x: ops.power(ops.add(ops.abs(x), like(x, 0.5)), like(x, exponent))  # noqa: E731
    scope.offer(positive, max((base.bound + 0.5) ** exponent, 0.5**exponent), base)


@_kind(2, NUMBERS)
def _clamp(scope: GraphScope, value: Value) -> None:
    is_whole = value.element_type in INTEGERS
    reach = float(scope.rng.randint(1, 4)) if is_whole else scope.rng.choice((0.5, 1.0, 1.75))
    scope.offer(ops.clamp, min(value.bound, reach), value, -reach if is_whole else -reach / 2, reach)


@_kind(2, FLOATS, _has_axes)
def _softmax(scope: GraphScope, value: Value) -> None:
    """Softmax along any axis; of a Parameter the runtime computes it in place and wrongly."""
    axis, backwards = scope.rng.randrange(value.rank), scope.chance(0.5)
    if value.computed or scope.chance(scope.freedom.in_place):
        scope.offer((ops8 if backwards else ops1).softmax, 1.0, value, axis - value.rank * backwards)


@_kind(2, ("f32", "i32"), _has_axes)
def _cumulative_sum(scope: GraphScope, value: Value) -> None:
    axis = scope.rng.randrange(value.rank)
    modes = scope.chance(0.4), scope.chance(0.4)
    scope.offer(ops.cum_sum, value.bound * value.shape[axis], value, axis, *modes, computed=False)


@_kind(4, NUMBERS, _has_axes)
def _reduction(scope: GraphScope, value: Value) -> None:
    makes = (ops.reduce_sum, ops.reduce_max, ops.reduce_mean)
    make = scope.rng.choice(makes if value.element_type in FLOATS else makes[:2])
    axes = sorted(scope.rng.sample(range(value.rank), scope.rng.randint(1, value.rank)))
    count = math.prod(value.shape[axis] for axis in axes)
    written = [scope.written(axis, value.rank) for axis in axes]
    bound = value.bound * (count if make is ops.reduce_sum else 1)
    scope.offer(make, bound, value, written, scope.chance(0.5), computed=count > 1)


@_kind(4, FLOATS, _has_axes)
def _matrix_product(scope: GraphScope, value: Value) -> None:
    """MatMul with a constant matrix, plain or transposed; or with one that is in use already, as tied weights are."""
    inner, columns, transposed = value.shape[-1], scope.rng.randint(1, 4), scope.chance(0.5)
    tied: list[Value] = []
    if scope.chance(scope.freedom.tied):
        tied = [one for one in scope.constants if one.rank == 2 and one.bound <= 1 and inner in one.shape]
        tied = [one for one in tied if one.element_type == value.element_type]
        columns = inner  # a square one can be read both ways
    if tied:
        weights = scope.rng.choice(tied)
        transposed = weights.shape[0] != inner or (weights.shape[1] == inner and transposed)
    else:
        weights = scope.constant((columns, inner) if transposed else (inner, columns), value.element_type, 1.0)
    scope.offer(ops.matmul, value.bound * inner, value, weights, False, transposed)
    if scope.chance(scope.freedom.tied) and weights.shape == (inner, inner):  # the way back, as a decoder goes it
        scope.offer(ops.matmul, value.bound * inner, value, weights, False, not transposed)


@_kind(1, ("f32",), lambda v: v.rank >= 2)
def _inner_product(scope: GraphScope, value: Value) -> None:
    flip = scope.chance(0.5)
    scope.offer(ops.matmul, value.bound**2 * value.shape[-2 if flip else -1], value, value, flip, not flip)


@_kind(3, (*INTEGERS, "u8", "f32"), lambda v: not v.coarse)
def _comparison(scope: GraphScope, value: Value) -> None:
    """Whole numbers compared with each other, floats with constants off their grid."""
    if value.element_type == "f32":
        other: Any = like(value.output, scope.rng.randint(-4, 4) / 8 + 0.02719)
        scope.offer(scope.rng.choice((ops.greater, ops.less)), 1, value, other)
    else:
        scope.offer(scope.rng.choice((ops.greater, ops.less, ops.equal)), 1, value, scope.partner(value))


@_kind(2, ("boolean",))
def _logic(scope: GraphScope, value: Value) -> None:
    if scope.chance(0.4):
        scope.offer(ops.logical_not, 1, value)
    else:
        scope.offer(ops.logical_and, 1, value, scope.partner(value))


@_kind(2, ARITHMETIC)
def _select(scope: GraphScope, value: Value) -> None:
    chooser = scope.pick(("boolean",), lambda v: broadcasts_to(v.shape, value.shape))
    chooser, other = chooser or scope.constant(value.shape, "boolean"), scope.partner(value)
    if not broadcasts_to(other.shape, value.shape):
        value, other = other, value
    scope.offer(ops.select, max(value.bound, other.bound), chooser, value, other)


@_kind(2, ALL_TYPES)
def _conversion(scope: GraphScope, value: Value) -> None:
    targets = ("f32", "f32", "i32", "i64", "u8", "boolean", "f16")
    scope.keep(scope.converted(value, scope.rng.choice([t for t in targets if t != value.element_type])))


GATES = {"lstm": 4, "gru": 3, "rnn": 1}


def recurrent(
    name: str,
    given: Sequence[Any],
    hidden: int,
    features: int,
    weights: Callable[..., Any],
    *leading: int,
    **options: Any,
) -> Any:
    """A recurrent cell or sequence, by the name of its function; an RNN has tanh."""
    kind = name.partition("_")[0]
    rows, bias = GATES[kind] * hidden, GATES[kind] + options.get("linear_before_reset", False)
    if kind == "rnn":
        options |= {"activations": ["tanh"], "activations_alpha": [], "activations_beta": []}
    held = [weights(*leading, *shape) for shape in ((rows, features), (rows, hidden), (bias * hidden,))]
    return getattr(ops, name)(*given, *held, hidden, **options)


def cell(scope: GraphScope, states: Sequence[Value], kind: str) -> list[Value]:
    """The next states that a recurrent cell with constant weights gives, over an f32 value of the scope."""
    (batch, hidden), features = states[0].shape, scope.rng.randint(1, 3)
    found, shape = scope.pick(("f32",), lambda v: not v.coarse), (batch, features)
    data = scope.constant(shape, "f32") if found is None else scope.adapted(found, "f32", shape)
    options = {"linear_before_reset": scope.chance(0.4)} if kind == "gru" else {}
    weights = lambda *shape: scope.constant(shape, "f32", 1.0).output  # noqa: E731
    parents = [data, *states]
    node = recurrent(f"{kind}_cell", [one.output for one in parents], hidden, features, weights, **options)
    bounds = [1.0 if kind != "gru" else max(1.0, states[0].bound), states[-1].bound + 1][: len(states)]
    return [scope.keep(scope.value_of(node.output(k), bound, parents)) for k, bound in enumerate(bounds)]


@_kind(1, ALL_TYPES)
def _recurrent_cell(scope: GraphScope, _value: Value) -> None:
    kind, shape = scope.rng.choice(tuple(GATES)), random_shape(scope.rng, 2, 3)
    found = [scope.pick(("f32",), lambda v: not v.coarse) for _ in range(2 if kind == "lstm" else 1)]
    states = [scope.constant(shape, "f32") if one is None else scope.adapted(one, "f32", shape) for one in found]
    cell(scope, states, kind)


# Operations that move data or look at shapes.


@_kind(2, ALL_TYPES, lambda v: v.rank > 0 and v.size <= LARGEST_SIZE // 2)
def _concat(scope: GraphScope, first: Value) -> None:
    axis = scope.rng.randrange(first.rank)
    rest = (first.rank, first.shape[:axis], first.shape[axis + 1 :])
    second = scope.pick((first.element_type,), lambda v: (v.rank, v.shape[:axis], v.shape[axis + 1 :]) == rest)
    if second is None or scope.chance(0.2):
        second = scope.constant(first.shape, first.element_type)
    scope.move(lambda *both: ops.concat(both, scope.written(axis, first.rank)), first, second)


@_kind(2, ALL_TYPES, _has_axes)
def _slice(scope: GraphScope, value: Value) -> None:
    axis = scope.rng.randrange(value.rank)
    size, step = value.shape[axis], scope.rng.randint(1, 2)
    start = scope.rng.randrange(size)
    stop = scope.rng.choice((size, start + 1, 1000))
    if scope.chance(0.3):
        start, stop, step = size - 1, -(size + 1), -step
    scope.move(ops.slice, value, [start], [stop], [step], [scope.written(axis, value.rank)])


@_kind(2, ARITHMETIC, _has_axes)
def _strided_slice(scope: GraphScope, value: Value) -> None:
    """StridedSlice with begin and end masks, sometimes dropping or adding an axis."""
    length = scope.rng.randint(1, value.rank)
    begin = [scope.rng.randrange(size) for size in value.shape[:length]]
    end = [scope.rng.randint(b + 1, size) for b, size in zip(begin, value.shape, strict=False)]
    masks = [[int(scope.chance(0.3)) for _ in range(length)] for _ in range(2)]
    shrink, new = [0] * length, [0] * length
    if scope.chance(0.4):
        (shrink if scope.chance(0.6) else new)[scope.rng.randrange(length)] = 1
    if any(shrink):
        masks = [[0] * length] * 2
    scope.move(ops.strided_slice, value, begin, end, [1] * length, *masks, new, shrink)


@_kind(2, ALL_TYPES, lambda v: v.rank >= 2)
def _transpose(scope: GraphScope, value: Value) -> None:
    scope.move(ops.transpose, value, scope.rng.sample(range(value.rank), value.rank))


@_kind(2, ALL_TYPES, _has_axes)
def _reshape(scope: GraphScope, value: Value) -> None:
    patterns = [[-1], [1, -1], [value.size, 1]]
    if value.rank >= 2:
        patterns += [[0, -1], [math.prod(value.shape[:-1]), value.shape[-1]]]
    pattern = scope.rng.choice(patterns)
    scope.move(ops.reshape, value, pattern, 0 in pattern)


@_kind(1, ALL_TYPES, lambda v: 1 in v.shape)
def _squeeze(scope: GraphScope, value: Value) -> None:
    axis = scope.rng.choice([axis for axis, size in enumerate(value.shape) if size == 1])
    scope.move(ops1.squeeze, value, [scope.written(axis, value.rank)])


@_kind(1, ALL_TYPES, lambda v: v.rank <= 3)
def _unsqueeze(scope: GraphScope, value: Value) -> None:
    scope.move(ops1.unsqueeze, value, [scope.rng.randint(-1, value.rank)])


@_kind(4, ALL_TYPES, _has_axes)
def _gather(scope: GraphScope, value: Value) -> None:
    """Gather with constant indices of rank 0 to 2, or with computed ones that are kept inside the axis."""
    axis = scope.rng.randrange(value.rank)
    size = value.shape[axis]
    indices = scope.pick(INTEGERS, lambda v: v.rank <= 1 and not v.coarse)
    if indices is not None and scope.chance(0.5):
        within = lambda x, y: ops.gather(x, ops.clamp(ops.abs(y), 0.0, size - 1.0), axis)  # noqa: E731
        scope.offer(within, value.bound, value, indices, computed=False)
        return
    shape = scope.rng.choice(((), (1,), (2,), (3,), (2, 2)))
    drawn = random_array(scope.rng, shape, scope.rng.choice(INTEGERS), 0, size - 1)
    scope.move(scope.rng.choice((ops.gather, ops1.gather, ops7.gather)), value, drawn, axis)


@_kind(2, ALL_TYPES, lambda v: v.size <= LARGEST_SIZE // 4)
def _broadcast(scope: GraphScope, value: Value) -> None:
    """Broadcast to a constant shape, or to the shape of another value."""
    other = scope.pick(ALL_TYPES, lambda v: v is not value and v.rank > 0 and broadcasts_to(value.shape, v.shape))
    if other is not None and scope.chance(0.5):
        kind = scope.rng.choice(INTEGERS)
        to_shape = lambda x, y: ops.broadcast(x, ops.shape_of(y, kind))  # noqa: E731
        scope.offer(to_shape, value.bound, value, other, computed=False)
        return
    target = (scope.rng.randint(1, 3), *(scope.rng.randint(1, 3) if size == 1 else size for size in value.shape))
    mode = scope.rng.choice(("NUMPY", "BIDIRECTIONAL"))
    scope.move(ops.broadcast, value, target, broadcast_spec=mode)


@_kind(1, ALL_TYPES, _has_axes)
def _shape_of(scope: GraphScope, value: Value) -> None:
    shape = scope.derive(ops.shape_of, max(value.shape), value, scope.rng.choice(INTEGERS), computed=False)
    scope.keep(replace(shape, roots=frozenset()))


@_kind(2, ALL_TYPES, lambda v: any(size > 1 for size in v.shape))
def _split(scope: GraphScope, value: Value) -> None:
    """Split a value into equal parts and keep two of them, or into two parts of any length."""
    axis = scope.rng.choice([axis for axis, size in enumerate(value.shape) if size > 1])
    size, kept = value.shape[axis], [0, 1]
    if scope.chance(0.5):
        node, kept = ops.split(value.output, axis, size), scope.rng.sample(range(size), 2)
    else:
        head = scope.rng.randint(1, size - 1)
        lengths = [head, -1 if scope.chance(0.5) else size - head]
        node = ops.variadic_split(value.output, axis - value.rank, lengths)
    for output in kept:
        scope.keep(scope.value_of(node.output(output), value.bound, [value], computed=False))
