"""The two kinds of scope: a whole model, whose data are Parameters with arrays, and a body, which reuses its values."""

from __future__ import annotations

import random
from collections.abc import Callable

import numpy as np
import openvino.opset13 as ops

from stepper.diagnosis.hunt.generator.adaptation import adapted, touched
from stepper.diagnosis.hunt.generator.freedom import CAREFUL, Freedom
from stepper.diagnosis.hunt.generator.values import ALL_TYPES, FLOATS, USUAL_BOUND, GraphScope, Value, random_array


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
            value = self.derive(ops.convert(value.output, "f16"), (value,), value.bound)
        if value.element_type in FLOATS and self.chance(0.15):
            return self.derive(ops.sigmoid(value.output), (value,), 1.0)
        return value


def body_scope(outer: GraphScope, kind: str) -> BodyScope:
    """The scope of a body of `kind` inside `outer`."""
    return BodyScope(outer.rng, outer.features, outer.fill, (*outer.path, kind), outer.freedom)
