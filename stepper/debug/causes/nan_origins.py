"""Origin of a NaN or Inf in an element of an operation's output: an element of an input, or the operation.

What matters is found by running the kernel again with inputs in which all but some of the NaN and Inf are replaced by
finite numbers: so every movement, broadcast, product and reduction is followed by what the operation does, not by what
its name says. Breakpoints, `why`, the screen, `compare` and recordings ask here; the reasons are in nan_reasons.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import isnan
from typing import Any, Final

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.debug.causes.cause import Arithmetic, Element, NonFiniteKind, OperandValue, Scalar
from stepper.debug.causes.nan_reasons import Made, nan_reason
from stepper.element_types import FLOATING, Array
from stepper.engine.frames import Frame
from stepper.engine.program import Operation, OpKind, Value
from stepper.ir.model import layer_site
from stepper.ops.emulation import emulated_dtype
from stepper.plain_values import json_number

LARGEST_TRIED: Final = 2**22
"""Elements of all inputs of an operation up to which its kernel is run again; beyond, the first NaN or Inf counts."""
_FINITE: Final = (1.0, 0.5, 0.0)
"""Numbers in the place of a NaN or Inf: an operation that gives NaN or Inf for each of them gives it of its own."""


class NanOrigin(Struct, frozen=True):
    """Origin of the NaN or Inf in an element. `follows` is the operand that has it already, at its `element`.

    None: it is born in the operation, for which `arithmetic` and `formula` give the reason. It may be both: a NaN that
    is born of an Inf follows that.
    """

    operands: tuple[OperandValue, ...]
    follows: int | None
    arithmetic: Arithmetic | None
    formula: str


class NonFiniteOutput(Struct, frozen=True):
    """NaN, or else Inf, in an output: the first element of the `count` of `size` that have it, and its origin."""

    kind: NonFiniteKind
    element: Element
    count: int
    size: int
    origin: NanOrigin


def non_finite_output(
    frame: Frame, index: int, file: str, *, output: int = 0, most: int = LARGEST_TRIED
) -> NonFiniteOutput | None:
    """Return what is NaN, or else infinite, in an output of an operation that has run; None where all is finite."""
    operation = frame.program.operations[index]
    value = np.asarray(frame.values[operation.outputs[output]])
    if value.dtype not in FLOATING or operation.plans:
        return None
    for kind, test in ((NonFiniteKind.NAN, np.isnan), (NonFiniteKind.INF, np.isinf)):
        mask = test(value)
        if mask.any():
            element = first_element(mask)
            origin = nan_origin(frame, operation, output, element, file, most)
            return NonFiniteOutput(kind, element, int(mask.sum()), int(value.size), origin)
    return None


def is_non_finite(value: Value | None) -> bool:
    """True if an element of the value is NaN or infinite."""
    return value is not None and value.dtype in FLOATING and not bool(np.isfinite(value).all())


def scalar_of(value: Any) -> Scalar | None:
    """Return an element as plain data; None for what is not a number."""
    item = np.asarray(value)
    if item.dtype in FLOATING:
        found: Scalar = json_number(float(item))
        return found
    return item.item() if item.dtype.kind in "biu" else None


def first_element(mask: Array) -> Element:
    """Return the index of the first element that is true."""
    return tuple(int(place) for place in np.unravel_index(int(np.flatnonzero(mask)[0]), mask.shape))


def nan_origin(
    frame: Frame, operation: Operation, output: int, element: Element, file: str, most: int = LARGEST_TRIED
) -> NanOrigin:
    """Return where the NaN or Inf in an element of an operation that has run in this frame comes from.

    `output` is the index of the output, `file` names the model for the operands; of inputs with more than `most`
    elements the first NaN or Inf counts. Loops and Ifs, whose elements come from their bodies, are none of these.
    """
    values = [frame.values[slot] if slot >= 0 else None for slot in operation.inputs]
    result = np.asarray(frame.values[operation.outputs[output]])
    wants_nan = isnan(float(result[element]))
    found = _SourceSearch(operation, output, element, values, result, most).source()
    places: list[Element | None] = [_broadcast_element(value, result, element) for value in values]
    numbers: list[Any] = [
        np.asarray(value)[at] for value, at in zip(values, places, strict=True) if value is not None and at is not None
    ]
    is_whole = len(numbers) == sum(value is not None for value in values)
    if found is not None:
        places = [at if at is not None and index != found[0] else None for index, at in enumerate(places)]
        places[found[0]] = found[1]
    operands = _operands(frame, operation, values, places, file)
    arithmetic, formula = None, ""
    if found is None or (wants_nan and not isnan(float(np.asarray(values[found[0]])[found[1]]))):
        made = Made(
            float(result[element]),
            emulated_dtype(operation.computed_by) or result.dtype,
            _floats(numbers) if is_whole else (),
            any(is_non_finite(value) for value in values),
        )
        arithmetic, formula = nan_reason(operation.layer.type, made)
    return NanOrigin(operands, None if found is None else found[0], arithmetic, formula)


def operands_of(frame: Frame, operation: Operation, file: str) -> tuple[OperandValue, ...]:
    """Return the inputs of an operation, of no element in particular."""
    values = [frame.values[slot] if slot >= 0 else None for slot in operation.inputs]
    return _operands(frame, operation, values, [None] * len(values), file)


def _operands(
    frame: Frame,
    operation: Operation,
    values: Sequence[Value | None],
    places: Sequence[Element | None],
    file: str,
) -> tuple[OperandValue, ...]:
    return tuple(
        _operand(frame, operation, index, value, place, file)
        for index, (value, place) in enumerate(zip(values, places, strict=True))
        if value is not None
    )


def _floats(numbers: Sequence[Any]) -> tuple[float, ...]:
    try:
        return tuple(float(number) for number in numbers)
    except (TypeError, ValueError):
        return ()


def _broadcast_element(value: Value | None, result: Array, element: Element) -> Element | None:
    """Return the element of an input that goes into one of the output by numpy's broadcasting; None where shapes forbid
    it.
    """
    if value is None:
        return None
    shape = value.shape
    if len(shape) > result.ndim:
        return None
    tail = element[result.ndim - len(shape) :]
    if any(
        size not in (1, extent) for size, extent in zip(shape, result.shape[result.ndim - len(shape) :], strict=True)
    ):
        return None
    return tuple(0 if size == 1 else at for size, at in zip(shape, tail, strict=True))


def _operand(
    frame: Frame, operation: Operation, index: int, value: Value, place: Element | None, file: str
) -> OperandValue:
    source = frame.program.graph.sources[operation.layer.id][index]
    assert source is not None, "what has a slot is connected"
    array = np.asarray(value)
    floating = array.dtype in FLOATING
    return OperandValue(
        input=index,
        layer=layer_site(frame.program.graph.by_id[source.layer], file),
        output=source.output,
        type=element_types.name_of(array.dtype),
        shape=tuple(array.shape),
        nan=int(np.isnan(array).sum()) if floating else 0,
        inf=int(np.isinf(array).sum()) if floating else 0,
        element=place,
        value=None if place is None else scalar_of(array[place]),
    )


class _SourceSearch:
    """Finds one element of the inputs that alone makes an element of the output NaN or infinite."""

    def __init__(
        self,
        operation: Operation,
        output: int,
        element: Element,
        values: Sequence[Value | None],
        result: Array,
        most: int,
    ) -> None:
        self._operation, self._output, self._element = operation, output, element
        self._values, self._wants_nan = values, isnan(float(result[element]))
        self._shape = result.shape
        size = sum(0 if value is None else value.size for value in values)
        self._can_try = (
            operation.kind is OpKind.KERNEL
            and operation.function is not None
            and (not operation.computed_by or emulated_dtype(operation.computed_by) is not None)
            and size <= most
        )

    def source(self) -> tuple[int, Element] | None:
        """Return the input and its element; None where the operation gives NaN or Inf for finite inputs."""
        same = np.isnan if self._wants_nan else np.isinf
        other = np.isinf if self._wants_nan else np.isnan
        for test in (same, other):
            bad = [(index, np.asarray(value)) for index, value in enumerate(self._values) if _holds(value, test)]
            if not bad:
                continue
            if not self._can_try:
                return bad[0][0], first_element(test(bad[0][1]))
            kept = {index: np.flatnonzero(test(array)) for index, array in bad}
            if self._gives(kept) and not all(self._result_with({}, number, same) for number in _FINITE):
                return self._one_of(kept)
        return None

    def _one_of(self, kept: dict[int, Array]) -> tuple[int, Element] | None:
        for index, places in kept.items():
            if len(kept) > 1 and not self._gives({index: places}):
                continue
            is_proved = True
            while len(places) > 1:
                half = places[: len(places) // 2]
                is_proved = self._gives({index: half})
                places = half if is_proved else places[len(places) // 2 :]
            if is_proved or self._gives({index: places}):
                return index, self._place(index, places)
        index, places = next(iter(kept.items()))
        return index, self._place(index, places)

    def _place(self, index: int, places: Array) -> Element:
        shape = np.asarray(self._values[index]).shape
        return tuple(int(at) for at in np.unravel_index(int(places[0]), shape))

    def _gives(self, kept: dict[int, Array]) -> bool:
        """True if the element is still NaN or infinite where only these of the inputs' elements are."""
        return all(self._result_with(kept, number, _is_not_finite) for number in _FINITE)

    def _result_with(self, kept: dict[int, Array], number: float, test: Any) -> bool:
        """True if the element passes a test where all but these are replaced by a number."""
        inputs: list[Any] = []
        for index, value in enumerate(self._values):
            if not is_non_finite(value):
                inputs.append(value)
                continue
            array = np.array(value)
            flat = array.reshape(-1)
            wanted = ~np.isfinite(flat)
            wanted[kept.get(index, [])] = False
            flat[wanted] = number
            inputs.append(array if isinstance(value, np.ndarray) else array[()])
        assert self._operation.function is not None
        try:
            with np.errstate(all="ignore"):
                results = self._operation.function(*inputs)
        except Exception:  # with other numbers a kernel may refuse what it has accepted
            return False
        result = np.asarray(results[self._output] if self._operation.several_outputs else results)
        return result.shape == self._shape and bool(test(result[self._element]))


def _is_not_finite(value: Any) -> bool:
    return not np.isfinite(value)


def _holds(value: Value | None, test: Any) -> bool:
    return value is not None and value.dtype in FLOATING and bool(test(value).any())
