"""From arrays of many calls to a model that is a loop over them, and its inputs.

    model, inputs = stepper.over_calls("model.xml", {"x": frames}, carry={"hn": "h"})
    debugger = stepper.Debugger(model, {**inputs, "h": zeros})

What an array is follows from what the model takes in a call, which has rank r: of rank r + 1 it has an axis of calls
(the first one, where nothing else is said); of rank r it has the parts of the calls one behind the other along an axis.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from stepper.arguments import mapping
from stepper.element_types import Array, have_same_bits
from stepper.engine.inputs import binding
from stepper.engine.inputs.array_files import StoredArray
from stepper.engine.run import output_names
from stepper.errors import InputError, UsageError
from stepper.ir.calls.plan import CallParts, Calls, CarriedOutput
from stepper.ir.calls.wrapping import with_calls
from stepper.ir.model import Layer, Model, parameter_shape
from stepper.ir.opening import ModelSource, opened
from stepper.ir.shapes import PartialShape
from stepper.ops.operands import HasForm, shape_text
from stepper.wording import counted, near_text


class PartsOfCalls(Struct, frozen=True, eq=False):
    """The values that calls get of one input: an array with all, or a list with an array for each call.

    `axis` is that along which they lie (None: the first), `length` how long a part is where the model leaves it open.
    """

    arrays: Array | StoredArray | Sequence[Array | StoredArray]
    axis: int | None = None
    length: int | None = None


def over_calls(
    model: ModelSource,
    calls: Mapping[Any, Any],
    carry: Mapping[Any, Any] | Sequence[tuple[Any, Any]] | None = None,
    count: int | None = None,
) -> tuple[Model, dict[int, Array]]:
    """Return the model as the body of a loop over calls, and those of its inputs that `calls` has, by position.

    `calls` maps inputs (name, tensor name, position) to arrays with the parts of all calls, to lists with an array for
    each call, or to PartsOfCalls; `carry` maps outputs to the inputs that they are in the next call, or has pairs of
    both, which an output may be in several times. An input in none of the two is the same in all calls, and so is one
    with a list of equal arrays; one in both begins with the value of the first call, of one that is only carried the
    run is given that. `count` is how many calls there are, where no input says so. Raises UsageError for a name that is
    unknown, and where inputs say different numbers of calls, InputError for arrays that calls cannot get parts of.
    """
    model = opened(model)
    parameters = model.graph.parameters
    carried = tuple(
        CarriedOutput(output_position(model, result), binding.position_of(parameters, key))
        for result, key in (carry.items() if isinstance(carry, Mapping) else carry or ())
    )
    begins = {one.input for one in carried}
    arrays: dict[int, Array] = {}
    counts: dict[int, int] = {}
    parts: list[CallParts] = []
    for key, value in mapping("calls", calls).items():
        position = binding.position_of(parameters, key)
        if position in counts:
            raise UsageError(f"calls give input '{key}' twice, by two of its names")
        given = value if isinstance(value, PartsOfCalls) else PartsOfCalls(value)
        if isinstance(given.arrays, list | tuple) and (position in begins or _are_equal(given.arrays)):
            counts[position], arrays[position] = len(given.arrays), given.arrays[0]
            continue
        one, counts[position], arrays[position] = _parts(parameters[position], position, given)
        if position in begins:
            arrays[position] = one.part(arrays[position], 0)
        else:
            parts.append(one)
    plan = Calls(_agreed(parameters, counts, count), tuple(parts), carried)
    return with_calls(model, plan), arrays


def called_alike(model: Model, like: Model) -> Model:
    """Return a model over the same calls as another one, by names of inputs and outputs; itself where there are none.

    What it does not have of these is left out.
    """
    plan = like.calls
    if plan is None or model.calls is not None:
        return model
    names, parameters = [layer.name for layer in like.graph.parameters], model.graph.parameters
    own = {layer.name: place for place, layer in enumerate(parameters)}
    results, given = output_names(like), {name: place for place, name in enumerate(output_names(model))}
    parts = [replace(one, input=own[names[one.input]]) for one in plan.parts if names[one.input] in own]
    carried = [
        CarriedOutput(given[results[one.output]], own[names[one.input]])
        for one in plan.carried
        if results[one.output] in given and names[one.input] in own
    ]
    return with_calls(model, Calls(plan.count, tuple(parts), tuple(carried)))


def _are_equal(arrays: Sequence[Any]) -> bool:
    """Return True for several arrays that have the same numbers, NaN being the same as NaN."""
    first, *others = map(np.asarray, arrays) if len(arrays) > 1 else (np.empty(0),)
    return bool(others) and all(have_same_bits(first, one) for one in others)


def _agreed(parameters: Sequence[Layer], counts: Mapping[int, int], count: int | None) -> int:
    numbers = {f"input '{parameters[position].name}'": number for position, number in counts.items()}
    if count is not None:
        numbers["the number that is given"] = count
    if not numbers:
        raise UsageError("nothing says how many calls there are: give an input with a value for each, or their number")
    (first, agreed), *others = numbers.items()
    for name, number in others:
        if number != agreed:
            raise UsageError(
                f"{first} says {counted(agreed, 'call')}, {name} {number:,}; give what is the same in all calls as an "
                "input of its own"
            )
    return agreed


def output_position(model: Model, key: str | int) -> int:
    """Return the position of the output that a key means: its name, that of its Result, or the position itself.

    UsageError for what is none.
    """
    names, results = output_names(model), model.graph.results
    known: dict[str, int] = {str(index): index for index in range(len(names))}
    for index, result in enumerate(results):
        known[result.name] = index
    known |= {name: index for index, name in enumerate(names)}
    if str(key) not in known:
        near = near_text(str(key), names)
        listed = ", ".join(names[:20])
        raise UsageError(f"the model has no output '{key}'{f'; {near}' if near else ''}; its outputs are {listed}")
    return known[str(key)]


def _parts(parameter: Layer, position: int, given: PartsOfCalls) -> tuple[CallParts, int, Array]:
    """Return how calls get their parts, of how many calls they are, and all of them as the loop takes them."""
    if isinstance(given.arrays, list | tuple) and given.axis is None and given.length is None:
        return _joined(parameter, position, given.arrays)
    try:
        array = given.arrays if isinstance(given.arrays, StoredArray) else np.asarray(given.arrays)
    except ValueError as error:
        raise InputError(f"input '{parameter.name}' is not a tensor: {error}") from None
    shape = parameter_shape(parameter)
    axis = given.axis or 0
    if not 0 <= axis < max(len(array.shape), 1):
        raise InputError(f"{_called(parameter, array)} has no axis {axis}")
    rank = None if shape.dimensions is None else len(shape.dimensions)
    axes = len(array.shape)
    if axes and (rank is None or axes == rank + 1):
        return _stacked(parameter, position, shape, array, axis)
    if axes and axes == rank:
        return _in_a_row(parameter, position, shape, array, axis, given.length)
    raise InputError(f"{_called(parameter, array)} {_wanted(shape)}")


def _called(parameter: Layer, array: HasForm) -> str:
    return f"of input '{parameter.name}' the calls have the shape {shape_text(array.shape)}, which"


def _wanted(shape: PartialShape) -> str:
    dims = str(shape).strip("[]")
    return (
        f"does not fit: a call takes {shape}, so [calls{',' if dims else ''}{dims}] is expected, or the parts of calls "
        "one behind the other along an axis; what is the same in all calls is given as --input"
    )


def _stacked(
    parameter: Layer, position: int, shape: PartialShape, given: HasForm, axis: int
) -> tuple[CallParts, int, Array]:
    count, one = given.shape[axis], (*given.shape[:axis], *given.shape[axis + 1 :])
    if not shape.accepts(one) or not count:
        raise InputError(f"{_called(parameter, given)} {_wanted(shape)}")
    array = np.moveaxis(np.asarray(given), axis, 0)
    if not one or not one[0]:
        return CallParts(position, 0, (1,), own_axis=True), count, array
    return CallParts(position, 0, (one[0],)), count, array.reshape(count * one[0], *one[1:])


def _in_a_row(
    parameter: Layer, position: int, shape: PartialShape, array: HasForm, axis: int, length: int | None
) -> tuple[CallParts, int, Array]:
    assert shape.dimensions is not None
    declared = shape.dimensions[axis]
    if length is None:
        if declared.least != declared.most:
            raise InputError(
                f"{_called(parameter, array)} can be parted in several ways: a call takes {shape}, and nothing says "
                f"how long its part of axis {axis} is; give it an axis of calls, or the length: axis{axis}:LENGTH"
            )
        length = declared.least
    one = (*array.shape[:axis], length, *array.shape[axis + 1 :])
    if not length or not shape.accepts(one):
        raise InputError(f"{_called(parameter, array)} {_wanted(shape)}")
    count, rest = divmod(array.shape[axis], length)
    if rest or not count:
        raise InputError(
            f"{_called(parameter, array)} is {array.shape[axis]} long along axis {axis}: not parts of {length} each"
        )
    return CallParts(position, axis, (length,)), count, np.asarray(array)


def _joined(parameter: Layer, position: int, arrays: Sequence[Array | StoredArray]) -> tuple[CallParts, int, Array]:
    """Return arrays of calls joined: of one shape, or of shapes that differ along one axis."""
    each = []
    for number, array in enumerate(arrays):
        try:
            each.append(binding.converted(parameter, array))
        except InputError as error:
            raise InputError(f"call {number}: {error}") from None
    if not each:
        raise InputError(f"of input '{parameter.name}' there is no call")
    shapes = {array.shape for array in each}
    if len(shapes) == 1:
        return _stacked(parameter, position, parameter_shape(parameter), np.stack(each), 0)
    odd = next(number for number, array in enumerate(each) if array.shape != each[0].shape)
    ranks = {len(shape) for shape in shapes}
    sizes = list(zip(*shapes, strict=True)) if len(ranks) == 1 else []
    axes = [axis for axis, along in enumerate(sizes) if len(set(along)) > 1]
    if len(axes) != 1:
        texts = f"{shape_text(each[0].shape)} in call 0 and {shape_text(each[odd].shape)} in call {odd}"
        raise InputError(f"input '{parameter.name}' has the shape {texts}: calls may differ along one axis alone")
    lengths = tuple(array.shape[axes[0]] for array in each)
    return CallParts(position, axes[0], lengths), len(each), np.concatenate(each, axis=axes[0])
