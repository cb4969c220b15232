"""Values of a graph under construction, and the scope in which new ones are derived from them.

Every value carries what the generator has to know so that a model cannot leave safe ground: its shape, a bound on its
magnitude, whether arithmetic stands between it and a Parameter, whether half precision has touched it, and on
which Parameters its elements depend.
"""

from __future__ import annotations

import math
import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import openvino.opset13 as ops

from stepper.diagnosis.hunt.generator.freedom import CAREFUL, Freedom

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

    def derive(
        self, node: Any, parents: Sequence[Value], bound: float, *, computed: bool = True, output: int = 0
    ) -> Value:
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

    def constant_of(self, array: np.ndarray) -> Value:
        """A Constant with these elements."""
        node = ops.constant(array)
        bound = float(np.abs(array.astype(np.float64)).max()) if array.size else 0.0
        return self.derive(node, (), bound, computed=False)

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
