"""The parts of an element of an operation's output: elements of the inputs, and the part that each has in it.

Where the operation is a sum, the parts are its exact terms; a minimum, maximum, TopK or Select is decided by one
element, with which others were compared; indices, shapes and conditions say where from, not how much.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from stepper.debug.causes.cause import Element
from stepper.debug.causes.nan_origins import LARGEST_TRIED
from stepper.debug.provenance.rules import MOVED_INPUTS, Method, dependences, moved_labels
from stepper.debug.provenance.shapes import ExtentPart, ExtentParts, shape_parts
from stepper.debug.story.failures import InputExtent
from stepper.debug.story.forms import LinkForm, PartRole
from stepper.element_types import FLOATING, Array
from stepper.engine.program import Operation, OpKind, Value
from stepper.ops.operands import normalize_axis
from stepper.ops.registry import FAMILY_OF

_MOST_TERMS: Final = 512
"""Terms of a sum that are found by running the kernel for each."""
MOST_PARTS: Final = 8
"""Parts that are kept of an element, the largest first."""


class Factor(NamedTuple):
    """An element of an input: its number, which element (None: the whole tensor), and what it is.

    `is_shape`: it is an extent, and `element` says along which axis.
    """

    input: int
    element: Element | None
    value: Any
    is_shape: bool = False


class MadeOf(NamedTuple):
    """A factor in its role. `amount` is the term that it stands for, `share` that of the result (None: no meaning).

    `beside` is the other factor of the term.
    """

    factor: Factor
    role: PartRole
    amount: float | None = None
    share: float | None = None
    beside: Factor | None = None

    @property
    def is_value(self) -> bool:
        """True for what says how much, False for what says where from, or was only compared."""
        return self.role not in (PartRole.INDEX, PartRole.CONDITION, PartRole.COMPARED)


class Making(NamedTuple):
    """The parts of an element, the largest first; `total` is how many there are in all.

    `weights` are what each of the parts of a sum is of all magnitudes together; `terms` are the amounts of all, in the
    order in which `factor_at` knows them (None: it is no sum).
    """

    form: LinkForm
    parts: tuple[MadeOf, ...]
    total: int
    weights: tuple[float, ...] = ()
    terms: Array | None = None
    factor_at: Callable[[int], tuple[Factor, Factor | None]] | None = None


class _Asked(NamedTuple):
    operation: Operation
    values: Sequence[Array | None]
    results: Sequence[Array]
    output: int
    element: Element

    @property
    def result(self) -> Array:
        return self.results[self.output]

    def attribute(self, name: str, default: str = "") -> str:
        return self.operation.layer.attributes.get(name, default)

    def is_set(self, name: str) -> bool:
        return self.attribute(name, "false").lower() in ("true", "1")

    def factor(self, index: int, element: Element | None = None) -> Factor:
        """Return an input's element; without one, that of a single element, or the whole."""
        value = self.values[index]
        assert value is not None, "it is connected"
        if element is None and value.size == 1:
            element = (0,) * value.ndim
        return Factor(index, element, None if element is None else value[element])


def making(
    operation: Operation, values: Sequence[Value], results: Sequence[Value], output: int, element: Element
) -> Making:
    """Return what an element of an output is made of, given what the inputs and outputs hold.

    Where no rule here says more, it is made of the elements that matter, or of whole tensors where these are unknown.
    """
    arrays = tuple(None if value is None else np.asarray(value) for value in values)
    asked = _Asked(operation, arrays, tuple(np.asarray(one) for one in results), output, element)
    if operation.kind is OpKind.KERNEL and sum(0 if one is None else one.size for one in arrays) <= LARGEST_TRIED:
        rule = _RULES.get(operation.layer.type)
        try:
            with np.errstate(all="ignore"):
                found = None if rule is None else rule(asked)
        except (ValueError, IndexError, TypeError):  # attributes or types that no rule here provides for
            found = None
        found = found or _by_elements(asked)
        if found is not None:
            return found
    return _whole(asked)


def shape_making(
    operation: Operation, values: Sequence[Value], results: Sequence[Value], output: int, element: Element
) -> Making:
    """Return what the extent of an output along an axis is made of: extents of inputs, or elements that say it."""
    arrays = tuple(None if value is None else np.asarray(value) for value in values)
    found = shape_parts(operation, arrays, output, np.shape(results[output]), element[0])

    def made(part: ExtentPart, role: PartRole) -> MadeOf:
        value = arrays[part.input]
        assert value is not None, "it is connected"
        said: Any = value.shape[part.element[0]] if part.is_shape else value[part.element]
        return MadeOf(Factor(part.input, part.element, said, part.is_shape), role, float(said))

    own = PartRole.TERM if found.is_sum else PartRole.FACTOR if found.is_product else PartRole.ARGUMENT
    parts = [made(part, PartRole.INDEX if part.is_index else own) for part in found.parts]
    if found.is_sum:
        parts.sort(key=lambda part: -_magnitude(part.factor.value))
    counted = [part for part in parts if part.is_value]
    form = LinkForm.MOVE if len(counted) == 1 else _form_of(found)
    total = sum(abs(part.amount or 0.0) for part in counted)
    weights = tuple(abs(part.amount or 0.0) / total for part in parts[:MOST_PARTS]) if found.is_sum and total else ()
    return Making(form, tuple(parts[:MOST_PARTS]), len(parts), weights)


def _form_of(found: ExtentParts) -> LinkForm:
    """Return how an extent is made of several parts."""
    if found.is_sum:
        return LinkForm.SUM
    if found.is_product:
        return LinkForm.PRODUCT
    return LinkForm.BROADCAST if found.is_broadcast else LinkForm.FUNCTION


def failed_making(values: Sequence[Value], lacking: Sequence[InputExtent] = ()) -> Making:
    """Return what an operation that failed was given: elements where they are few whole numbers, else extents.

    The extents that are `lacking` come first. Of inputs of one rank then those in which they differ, for these mostly
    do not fit.
    """
    elements: list[MadeOf] = []
    extents: list[MadeOf] = []
    for index, value in enumerate(values):
        if value is None:
            continue
        array = np.asarray(value)
        if array.dtype.kind in "biu" and 0 < array.size <= MOST_PARTS:
            elements += [MadeOf(Factor(index, at, array[at]), PartRole.ARGUMENT) for at in np.ndindex(array.shape)]
        extents += [
            MadeOf(Factor(index, (axis,), size, is_shape=True), PartRole.ARGUMENT)
            for axis, size in enumerate(array.shape)
            if array.dtype.kind not in "biu" or array.size > MOST_PARTS
        ]
    differ = _differing_axes([np.shape(values[one]) for one in sorted({part.factor.input for part in extents})])
    extents.sort(key=lambda part: part.factor.element is not None and part.factor.element[0] not in differ)
    first = [
        MadeOf(Factor(one.input, (one.axis,), np.shape(values[one.input])[one.axis], is_shape=True), PartRole.ARGUMENT)
        for one in lacking
    ]
    extents = [part for part in extents if part not in first]
    parts = [*first, *extents[: MOST_PARTS // 2], *elements, *extents[MOST_PARTS // 2 :]]
    return Making(LinkForm.WHOLE, tuple(parts[:MOST_PARTS]), len(parts))


def _differing_axes(shapes: Sequence[tuple[int, ...]]) -> set[int]:
    """Return the axes along which shapes of one rank differ; none where the ranks differ."""
    if len({len(shape) for shape in shapes}) != 1:
        return set()
    return {axis for axis, sizes in enumerate(zip(*shapes, strict=True)) if len(set(sizes)) > 1}


def _of_shape(asked: _Asked) -> Making:
    """Of ShapeOf: the extent of its input."""
    value = asked.values[0]
    assert value is not None
    return Making(
        LinkForm.MOVE, (MadeOf(Factor(0, asked.element, value.shape[asked.element[0]], True), PartRole.ARGUMENT),), 1
    )


def _by_elements(asked: _Asked) -> Making | None:
    """Return the elements that matter, as the rules of provenance find them; None where these are whole tensors."""
    mask = np.zeros(asked.result.shape, bool)
    mask[asked.element] = True
    found = dependences(asked.operation, asked.values, asked.results, asked.output, mask)
    if found.method is Method.WHOLE:
        return None
    parts: list[MadeOf] = []
    total = 0
    for one in found.found:
        value = asked.values[one.input]
        assert value is not None, "it is connected"
        places = np.flatnonzero(one.mask)
        total += places.size
        role = PartRole.INDEX if one.is_index else PartRole.ARGUMENT
        if value.dtype.kind not in "biuf" and value.dtype not in FLOATING:
            continue
        sizes = np.abs(value.reshape(-1)[places].astype(np.float64))
        for place in places[np.argsort(-np.nan_to_num(sizes, nan=np.inf), kind="stable")[:MOST_PARTS]]:
            element = tuple(int(at) for at in np.unravel_index(int(place), value.shape))
            parts.append(MadeOf(asked.factor(one.input, element), role))
    return Making(LinkForm.FUNCTION, _largest_values_first(parts)[:MOST_PARTS], total)


def _largest_values_first(parts: list[MadeOf]) -> tuple[MadeOf, ...]:
    return tuple(sorted(parts, key=lambda part: (not part.is_value, -_magnitude(part.factor.value))))


def _whole(asked: _Asked) -> Making:
    parts = [
        MadeOf(asked.factor(index), PartRole.ARGUMENT) for index, one in enumerate(asked.values) if one is not None
    ]
    return Making(LinkForm.WHOLE, tuple(parts), len(parts))


# --- element by element ---------------------------------------------------------------------------------------------


def _aligned(asked: _Asked, index: int) -> Factor:
    """Return the element of an input that goes into that of the output by broadcasting. Raise IndexError for none."""
    value = asked.values[index]
    if value is None:
        raise IndexError(index)
    element, shape, result = asked.element, value.shape, asked.result.shape
    is_left = asked.attribute("auto_broadcast") == "pdpd" and index > 0
    offset = 0 if is_left else len(result) - len(shape)
    if offset < 0:
        raise IndexError(index)
    at = tuple(0 if size == 1 else element[offset + axis] for axis, size in enumerate(shape))
    return Factor(index, at, value[at])


def _operands(asked: _Asked) -> list[Factor]:
    return [_aligned(asked, index) for index, value in enumerate(asked.values) if value is not None]


def _sum_of_two(asked: _Asked) -> Making:
    first, second = _operands(asked)
    sign = -1.0 if asked.operation.layer.type == "Subtract" else 1.0
    amounts = np.array([float(first.value), sign * float(second.value)])
    return _summed(amounts, lambda k: ((first, second)[k], None))


def _product(asked: _Asked) -> Making:
    factors = _operands(asked)
    zeros = [one for one in factors if one.value == 0]
    is_decided = bool(zeros) and bool(np.isfinite([float(one.value) for one in factors]).all())
    found = [MadeOf(one, PartRole.DECIDES if is_decided and one.value == 0 else PartRole.FACTOR) for one in factors]
    return _multiplied(_largest_first(found), len(found))


def _multiplied(parts: tuple[MadeOf, ...], total: int, sizes: Array | None = None) -> Making:
    """Return a product, each factor weighed by its part of all logarithms together, where none of them is 0.

    `sizes` are all factors, where the parts are the largest of more.
    """
    with np.errstate(all="ignore"):
        own = np.abs(np.log2(np.abs(np.array([float(part.factor.value) for part in parts]))))
        everything = own.sum() if sizes is None else np.abs(np.log2(np.abs(sizes))).sum()
    is_known = bool(np.isfinite(everything)) and everything > 0
    return Making(LinkForm.PRODUCT, parts, total, tuple((own / everything).tolist()) if is_known else ())


def _largest_first(parts: list[MadeOf]) -> tuple[MadeOf, ...]:
    def rank(part: MadeOf) -> tuple[bool, float]:
        return part.role is not PartRole.DECIDES, -_magnitude(part.factor.value)

    return tuple(sorted(parts, key=rank))


def _magnitude(value: Any) -> float:
    size = abs(float(value))
    return size if size == size else np.inf


def _quotient(asked: _Asked) -> Making:
    first, second = _operands(asked)
    return Making(LinkForm.QUOTIENT, (MadeOf(first, PartRole.FACTOR), MadeOf(second, PartRole.DIVISOR)), 2)


def _arguments(asked: _Asked, *, form: LinkForm = LinkForm.FUNCTION) -> Making:
    found = [MadeOf(one, PartRole.ARGUMENT) for one in _operands(asked)]
    return Making(form, tuple(found), len(found))


def _argument(asked: _Asked) -> Making:
    """Of a function of the first input; others are its settings."""
    return Making(LinkForm.FUNCTION, (MadeOf(_aligned(asked, 0), PartRole.ARGUMENT),), 1)


def _extreme_of_two(asked: _Asked) -> Making:
    factors = _operands(asked)
    result = asked.result[asked.element]
    winner = next((k for k, one in enumerate(factors) if _same(one.value, result)), 0)
    roles = [PartRole.DECIDES if k == winner else PartRole.COMPARED for k in range(len(factors))]
    parts = sorted(map(MadeOf, factors, roles), key=lambda part: part.role is not PartRole.DECIDES)
    return Making(LinkForm.CHOICE, tuple(parts), len(parts))


def _same(a: Any, b: Any) -> bool:
    return bool(a == b) or (bool(a != a) and bool(b != b))


def _logic(asked: _Asked, *, deciding: bool) -> Making:
    """Of a conjunction (False decides) or disjunction (True does)."""
    factors = _operands(asked)
    decisive = [one for one in factors if bool(one.value) is deciding] or factors
    parts = [MadeOf(one, PartRole.DECIDES if one in decisive else PartRole.COMPARED) for one in factors]
    return Making(LinkForm.CHOICE, tuple(sorted(parts, key=lambda part: part.role is not PartRole.DECIDES)), len(parts))


def _select(asked: _Asked) -> Making:
    condition, then, otherwise = _operands(asked)
    chosen = then if bool(condition.value) else otherwise
    return Making(LinkForm.CHOICE, (MadeOf(chosen, PartRole.DECIDES), MadeOf(condition, PartRole.CONDITION)), 2)


# --- sums -----------------------------------------------------------------------------------------------------------


def _summed(amounts: Array, factors: Callable[[int], tuple[Factor, Factor | None]]) -> Making:
    """Return a sum of terms, of which only the largest are looked at closely."""
    total, sizes = float(amounts.sum()), np.abs(amounts)
    everything = float(sizes.sum())
    is_finite = bool(np.isfinite(amounts).all())
    order = np.argsort(np.where(np.isfinite(sizes), -sizes, -np.inf), kind="stable")[:MOST_PARTS]
    parts = []
    for place in order:
        first, second = factors(int(place))
        share = float(amounts[place]) / total if is_finite and total else None
        parts.append(MadeOf(first, PartRole.TERM, float(amounts[place]), share, second))
    weights = tuple(float(sizes[place]) / everything for place in order) if is_finite and everything else ()
    return Making(LinkForm.SUM, tuple(parts), len(amounts), weights, amounts, factors)


def _matmul(asked: _Asked) -> Making:
    a, b = asked.values[0], asked.values[1]
    assert a is not None and b is not None
    transposed_a = asked.is_set("transpose_a") and a.ndim > 1
    transposed_b = asked.is_set("transpose_b") and b.ndim > 1
    element = list(asked.element)
    column = element.pop() if b.ndim > 1 else None
    row = element.pop() if a.ndim > 1 else None

    def at(value: Array, place: int | None, k: Any, *, k_first: bool) -> tuple[Any, ...]:
        if place is None:
            return (k,)
        batch = value.shape[:-2]
        outer = element[len(element) - len(batch) :]
        head = tuple(0 if size == 1 else one for size, one in zip(batch, outer, strict=True))
        return (*head, k, place) if k_first else (*head, place, k)

    of_a = partial(at, a, row, k_first=transposed_a)
    of_b = partial(at, b, column, k_first=not transposed_b)
    amounts = np.asarray(a[of_a(slice(None))], np.float64) * np.asarray(b[of_b(slice(None))], np.float64)

    def factors(k: int) -> tuple[Factor, Factor]:
        return Factor(0, of_a(k), a[of_a(k)]), Factor(1, of_b(k), b[of_b(k)])

    return _summed(amounts, factors)


def _line(data: Array, element: Element, axis: int) -> Array:
    """Return the elements that differ from this one in one place alone."""
    index: tuple[Any, ...] = (*element[:axis], slice(None), *element[axis + 1 :])
    found: Array = data[index]
    return found


class _Reduced(NamedTuple):
    """The elements of the first input that are reduced to one."""

    elements: Array
    at: Callable[[int], Element]


def _reduced(asked: _Asked) -> _Reduced:
    data, axes = asked.values[0], asked.values[1]
    assert data is not None and axes is not None
    over = {normalize_axis(int(axis), data.ndim) for axis in np.ravel(axes)}
    kept = iter(asked.element if asked.result.ndim < data.ndim else ())
    index: list[Any] = []
    for axis in range(data.ndim):
        if axis in over:
            index.append(slice(None))
        else:
            index.append(asked.element[axis] if asked.result.ndim == data.ndim else next(kept))
    part = data[tuple(index)]

    def at(place: int) -> Element:
        inner = iter(np.unravel_index(place, part.shape))
        return tuple(int(next(inner)) if isinstance(one, slice) else one for one in index)

    return _Reduced(part.reshape(-1), at)


def _reduced_sum(asked: _Asked, of: Callable[[Array], Array], *, mean: bool = False) -> Making:
    found = _reduced(asked)
    amounts = of(np.asarray(found.elements, np.float64)) / (max(found.elements.size, 1) if mean else 1)
    return _summed(amounts, lambda k: (Factor(0, found.at(k), found.elements[k]), None))


def _reduced_product(asked: _Asked) -> Making:
    """Of all factors those that move the product most; one that is 0 decides it."""
    found = _reduced(asked)
    sizes = np.asarray(found.elements, np.float64)
    zeros = np.flatnonzero(sizes == 0)
    with np.errstate(all="ignore"):
        order = zeros if zeros.size else np.argsort(-np.abs(np.log2(np.abs(sizes))), kind="stable")
    role = PartRole.DECIDES if zeros.size else PartRole.FACTOR
    parts = [MadeOf(Factor(0, found.at(int(k)), found.elements[k]), role) for k in order[:MOST_PARTS]]
    return _multiplied(tuple(parts), int(sizes.size), sizes)


def _cumulated(asked: _Asked) -> Making:
    data, axes = asked.values[0], asked.values[1]
    assert data is not None and axes is not None
    axis, element = normalize_axis(int(np.ravel(axes)[0]), data.ndim), asked.element
    here, count = element[axis], data.shape[axis]
    skips = int(asked.is_set("exclusive"))
    places = range(here + skips, count) if asked.is_set("reverse") else range(here + 1 - skips)
    line = _line(data, element, axis)

    def factors(k: int) -> tuple[Factor, None]:
        at = (*element[:axis], places[k], *element[axis + 1 :])
        return Factor(0, at, data[at]), None

    return _summed(np.asarray(line[list(places)], np.float64), factors)


def _linear(asked: _Asked) -> Making | None:
    """Of an operation that is a sum of its first input's elements, each times something: each term by itself."""
    data, function = asked.values[0], asked.operation.function
    if data is None or function is None or asked.operation.several_outputs or data.dtype not in FLOATING:
        return None
    mask = np.zeros(asked.result.shape, bool)
    mask[asked.element] = True
    found = dependences(asked.operation, asked.values, asked.results, asked.output, mask)
    places = np.concatenate([np.flatnonzero(one.mask) for one in found.found if one.input == 0] or [np.zeros(0, int)])
    if not 0 < places.size <= _MOST_TERMS:
        return None
    alone, amounts = np.zeros(data.size, data.dtype), np.zeros(places.size)
    for k, place in enumerate(places):
        alone[place] = data.reshape(-1)[place]
        amounts[k] = np.asarray(function(alone.reshape(data.shape), *asked.values[1:]))[asked.element]
        alone[place] = 0
    if not np.isclose(amounts.sum(), float(asked.result[asked.element]), rtol=1e-3, atol=1e-3 * np.abs(amounts).sum()):
        return None  # it adds something else, too

    def factor(k: int) -> tuple[Factor, None]:
        at = tuple(int(one) for one in np.unravel_index(int(places[k]), data.shape))
        return Factor(0, at, data[at]), None

    return _summed(amounts, factor)


# --- choices --------------------------------------------------------------------------------------------------------


def _chosen(winner: int, elements: Array, at: Callable[[int], Element], *, largest: bool) -> Making:
    """Return a choice of one of several elements, with those that came nearest to it."""
    values = np.asarray(elements, np.float64)
    order = np.argsort(-values if largest else values, kind="stable")
    rivals = [int(place) for place in order if place != winner][: MOST_PARTS - 1]
    parts = [MadeOf(Factor(0, at(winner), elements[winner]), PartRole.DECIDES)]
    parts += [MadeOf(Factor(0, at(place), elements[place]), PartRole.COMPARED) for place in rivals]
    return Making(LinkForm.CHOICE, tuple(parts), int(values.size))


def _extreme(asked: _Asked, *, largest: bool) -> Making | None:
    found, result = _reduced(asked), asked.result[asked.element]
    same = np.flatnonzero((found.elements == result) | ((found.elements != found.elements) & (result != result)))
    return _chosen(int(same[0]), found.elements, found.at, largest=largest) if same.size else None


def _all_or_any(asked: _Asked, *, deciding: bool) -> Making:
    found = _reduced(asked)
    places = np.flatnonzero(found.elements.astype(bool) == deciding)
    decisive = places if places.size else np.arange(found.elements.size)
    parts = [MadeOf(Factor(0, found.at(int(k)), found.elements[k]), PartRole.DECIDES) for k in decisive[:MOST_PARTS]]
    return Making(LinkForm.CHOICE, tuple(parts), int(found.elements.size))


def _top(asked: _Asked) -> Making | None:
    data = asked.values[0]
    if data is None or len(asked.results) < 2:
        return None
    axis = normalize_axis(int(asked.attribute("axis", "-1")), data.ndim)
    element = asked.element
    line = _line(data, element, axis)
    return _chosen(
        int(asked.results[1][element]),
        line,
        lambda k: (*element[:axis], k, *element[axis + 1 :]),
        largest=asked.attribute("mode") == "max",
    )


def _softmax(asked: _Asked) -> Making | None:
    data = asked.values[0]
    if data is None or data.dtype not in FLOATING:
        return None
    axis, element = normalize_axis(int(asked.attribute("axis", "1")), data.ndim), asked.element
    line = np.asarray(_line(data, element, axis), np.float64)
    own = element[axis]
    order = [int(k) for k in np.argsort(-line, kind="stable") if k != own][: MOST_PARTS - 1]
    parts = [MadeOf(Factor(0, element, data[element]), PartRole.ARGUMENT)]
    for place in order:
        at = (*element[:axis], place, *element[axis + 1 :])
        parts.append(MadeOf(Factor(0, at, data[at]), PartRole.COMPARED))
    if not np.isfinite(line).all():  # one that is not finite makes all of the line so
        parts = [part._replace(role=PartRole.ARGUMENT) for part in parts]
    return Making(LinkForm.FUNCTION, tuple(parts), int(line.size))


# --- moves ----------------------------------------------------------------------------------------------------------


def _moved(asked: _Asked) -> Making | None:
    """Return the element that was moved here, by moving labels in the place of the elements."""
    found = moved_labels(asked.operation, asked.values, asked.output)
    if found is None or found.moved.shape != asked.result.shape:
        return None
    starts = found.starts
    label = int(found.moved[asked.element])
    source = next((index for index, start in reversed(starts.items()) if label >= start), None)
    if source is None:
        return Making(LinkForm.MOVE, (), 0)
    value = asked.values[source]
    assert value is not None
    element = tuple(int(at) for at in np.unravel_index(label - starts[source], value.shape))
    if not _same(value[element], asked.result[asked.element]):  # an operation that reduces what it scatters
        return None
    parts = [MadeOf(Factor(source, element, value[element]), PartRole.ARGUMENT)]
    others = [index for index, one in enumerate(asked.values) if one is not None and index not in starts]
    parts += [MadeOf(_index_of(asked, index, source, element), PartRole.INDEX) for index in others]
    return Making(LinkForm.MOVE, tuple(parts), len(parts))


def _index_of(asked: _Asked, index: int, source: int, element: Element) -> Factor:
    """Return the element of an index input that says where the element came from or went to; else the whole."""
    value = asked.values[index]
    assert value is not None
    at = _index_at(asked, value, source, element) if index == 1 and value.size > 1 else None
    is_inside = at is not None and len(at) == value.ndim and all(map(int.__lt__, at, value.shape))
    return asked.factor(index, at if is_inside else None)


def _index_at(asked: _Asked, indices: Array, source: int, element: Element) -> Element | None:
    """Return the place in the indices for an element of the output, which came from `element` of an input."""
    kind, data = asked.operation.layer.type, asked.values[0]
    assert data is not None
    if kind == "Gather" and asked.values[2] is not None:
        axis = normalize_axis(int(np.ravel(asked.values[2])[0]), data.ndim)
        batch = int(asked.attribute("batch_dims", "0"))
        batch += indices.ndim if batch < 0 else 0
        return (*asked.element[:batch], *asked.element[axis : axis + indices.ndim - batch])
    if kind == "GatherElements":
        return asked.element
    if kind == "GatherND":
        return (*asked.element[: indices.ndim - 1], 0)
    if source != 2:  # of what is scattered into, no index says where it came from
        return None
    if kind == "ScatterElementsUpdate":
        return element
    if kind == "ScatterNDUpdate":
        return (*element[: indices.ndim - 1], 0)
    if kind == "ScatterUpdate" and asked.values[3] is not None:
        axis = normalize_axis(int(np.ravel(asked.values[3])[0]), data.ndim)
        return element[axis : axis + indices.ndim]
    return None


# --- the rules ------------------------------------------------------------------------------------------------------

Rule = Callable[[_Asked], Making | None]

_RULES: Final[dict[str, Rule]] = {
    **{
        type: _argument
        for type, family in FAMILY_OF.items()
        if family in ("unary", "error_function", "activation", "convert", "quantize")
    },
    **{type: partial(_arguments, form=LinkForm.COMPARISON) for type in FAMILY_OF if FAMILY_OF[type] == "comparison"},
    **dict.fromkeys(("Power", "SquaredDifference", "Mod", "FloorMod", "PRelu"), _arguments),
    **dict.fromkeys((type for type, family in FAMILY_OF.items() if family == "bitwise"), _arguments),
    **dict.fromkeys(("IsFinite", "IsInf", "IsNaN", "LogicalNot"), _argument),
    **dict.fromkeys(MOVED_INPUTS, _moved),
    "Add": _sum_of_two,
    "Subtract": _sum_of_two,
    "Multiply": _product,
    "Divide": _quotient,
    "Maximum": _extreme_of_two,
    "Minimum": _extreme_of_two,
    "LogicalAnd": partial(_logic, deciding=False),
    "LogicalOr": partial(_logic, deciding=True),
    "Select": _select,
    "MatMul": _matmul,
    "ReduceSum": partial(_reduced_sum, of=np.positive),
    "ReduceMean": partial(_reduced_sum, of=np.positive, mean=True),
    "ReduceL1": partial(_reduced_sum, of=np.abs),
    "ReduceProd": _reduced_product,
    "ShapeOf": _of_shape,
    "ReduceMax": partial(_extreme, largest=True),
    "ReduceMin": partial(_extreme, largest=False),
    "ReduceLogicalAnd": partial(_all_or_any, deciding=False),
    "ReduceLogicalOr": partial(_all_or_any, deciding=True),
    **dict.fromkeys(("Convolution", "GroupConvolution", "ConvolutionBackpropData"), _linear),
    **dict.fromkeys(("GroupConvolutionBackpropData", "AvgPool", "AdaptiveAvgPool", "Einsum"), _linear),
    **dict.fromkeys(("EmbeddingBagOffsetsSum", "EmbeddingBagPackedSum", "EmbeddingSegmentsSum"), _linear),
    "CumSum": _cumulated,
    "TopK": _top,
    "Softmax": _softmax,
    "LogSoftmax": _softmax,
}
