"""An operation at a moment of a run: what its inputs and outputs hold; and what rules say of it, as plain data."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any, NamedTuple

import numpy as np

from stepper.debug.causes.cause import Element, LinkForm, PartRole
from stepper.element_types import Array
from stepper.engine.frames import Frame
from stepper.engine.program import Operation, Value
from stepper.ops.operands import normalize_axis


class ValueNotKept(Exception):
    """A value is gone: a recorded run that was resumed keeps only what is still read."""


class OperationAt(NamedTuple):
    """An operation, what its inputs and outputs hold, and the output that is asked about."""

    operation: Operation
    values: tuple[Array | None, ...]
    results: tuple[Array, ...]
    output: int

    @staticmethod
    def in_frame(frame: Frame, operation: Operation, slot: int) -> OperationAt:
        """Return an operation that has run in a frame; `slot` is that of the output."""
        values = inputs_of(frame, operation)
        results = tuple(np.asarray(frame.values[one]) for one in operation.outputs)
        arrays = tuple(None if value is None else np.asarray(value) for value in values)
        return OperationAt(operation, arrays, results, operation.outputs.index(slot))

    @property
    def type(self) -> str:
        """Return the type of the operation."""
        return self.operation.layer.type

    @property
    def result(self) -> Array:
        """Return what the output holds."""
        return self.results[self.output]

    @property
    def given(self) -> list[int]:
        """Return the inputs that are connected."""
        return [index for index, value in enumerate(self.values) if value is not None]

    @property
    def size(self) -> int:
        """Return how many elements all inputs have."""
        return sum(value.size for value in self.values if value is not None)

    def attribute(self, name: str, default: str = "") -> str:
        """Return an attribute as the file has it."""
        return self.operation.layer.attributes.get(name, default)

    def is_set(self, name: str) -> bool:
        """True if an attribute is."""
        return self.attribute(name, "false").lower() in ("true", "1")

    def axis(self, default: int = -1) -> int:
        """Return the axis of the output that the attribute of this name says."""
        return normalize_axis(int(self.attribute("axis", str(default))), self.result.ndim)

    def axes(self, index: int, rank: int) -> list[int]:
        """Return the axes of a rank that an input names."""
        return [normalize_axis(int(axis), rank) for axis in np.ravel(self.value(index))]

    def value(self, index: int) -> Array:
        """Return what an input holds. Raise IndexError for one that is not connected."""
        found = self.values[index] if index < len(self.values) else None
        if found is None:
            raise IndexError(index)
        return found

    def factor(self, index: int, element: Element | None = None) -> Factor:
        """Return an input's element; without one, that of a single element, or the whole."""
        value = self.value(index)
        if element is None and value.size == 1:
            element = (0,) * value.ndim
        return Factor(index, element, None if element is None else value[element])

    def aligned(self, index: int, element: Element) -> Element | None:
        """Return the element of an input that is broadcast to one of the output; None where shapes forbid it."""
        shape, result = self.value(index).shape, self.result.shape
        skipped = 0 if index and self.attribute("auto_broadcast") == "pdpd" else len(result) - len(shape)
        if skipped < 0 or any(size not in (1, extent) for size, extent in zip(shape, result[skipped:], strict=False)):
            return None
        return tuple(0 if size == 1 else at for size, at in zip(shape, element[skipped:], strict=False))

    def mask(self, element: Element) -> Array:
        """Return a mask of the output that is True for one element."""
        found = np.zeros(self.result.shape, bool)
        found[element] = True
        return found

    def run(self, *inputs: Any) -> Array:
        """Return what the output is with other inputs. Raise what the kernel raises."""
        function = self.operation.function
        assert function is not None, "it has a kernel"
        with np.errstate(all="ignore"):
            results = function(*inputs)
        return np.asarray(results[self.output] if self.operation.several_outputs else results)


def differing(a: Any, b: Any) -> Array:
    """Return in which elements two tensors differ, a NaN equalling a NaN: in all where their shapes do."""
    if a.shape != b.shape:
        return np.ones(a.shape, bool)
    with np.errstate(all="ignore"):
        return np.asarray(~((a == b) | ((a != a) & (b != b))))


def inputs_of(frame: Frame, operation: Operation) -> list[Value | None]:
    """Return what the inputs of an operation hold, None of those not connected or no longer kept."""
    return [frame.values[slot] if slot >= 0 else None for slot in operation.inputs]


def ensure_kept(frame: Frame, operation: Operation) -> None:
    """Raise ValueNotKept where what an input of an operation held is gone."""
    if any(slot >= 0 and frame.values[slot] is None for slot in operation.inputs):
        raise ValueNotKept


# --- what elements depend on ------------------------------------------------------------------------------------------


class Method(StrEnum):
    """How the elements that matter were found."""

    RULE = "rule"
    PERTURBED = "perturbation"
    WHOLE = "whole tensors"


class Dependence(NamedTuple):
    """Elements of an input that matter. `is_index`: they say where from, not how much."""

    input: int
    mask: Array
    is_index: bool = False


class Dependences(NamedTuple):
    """All elements that matter, how that was found, and how often the kernel ran for it."""

    found: list[Dependence]
    method: Method
    kernel_runs: int = 0


# --- what an element is made of ---------------------------------------------------------------------------------------


class Factor(NamedTuple):
    """An element of an input: its number, which element (None: the whole tensor), and what it is.

    `is_shape`: it is an extent, and `element` says along which axis.
    """

    input: int
    element: Element | None
    value: Any
    is_shape: bool = False


class Contribution(NamedTuple):
    """A factor in its role. `amount` is the term that it stands for, `share` that of the result (None: no meaning).

    `beside` is the other factor of the term.
    """

    factor: Factor
    role: PartRole = PartRole.ARGUMENT
    amount: float | None = None
    share: float | None = None
    beside: Factor | None = None

    @property
    def is_value(self) -> bool:
        """True for what says how much, False for what says where from, or was only compared."""
        return self.role not in (PartRole.INDEX, PartRole.CONDITION, PartRole.COMPARED)


class Contributions(NamedTuple):
    """The parts of an element, the largest first; `total` is how many there are in all.

    `weights` are what each of the parts of a sum is of all magnitudes together; `terms` are the amounts of all, in the
    order in which `factor_at` knows them (None: it is no sum).
    """

    form: LinkForm
    parts: tuple[Contribution, ...]
    total: int
    weights: tuple[float, ...] = ()
    terms: Array | None = None
    factor_at: Callable[[int], tuple[Factor, Factor | None]] | None = None


# --- what an extent depends on ----------------------------------------------------------------------------------------


class ExtentPart(NamedTuple):
    """An extent of an input (`is_shape`), or an element of it, that an extent depends on.

    `is_index`: it says which one, not how much.
    """

    input: int
    element: Element
    is_shape: bool = True
    is_index: bool = False


class ExtentParts(NamedTuple):
    """All that an extent depends on; `form` says how it is made of several parts."""

    parts: list[ExtentPart]
    form: LinkForm = LinkForm.FUNCTION
    has_rule: bool = True
