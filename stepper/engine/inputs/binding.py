"""From what a user gives to the arrays of the model's Parameters: found by name or position, type and shape checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from operator import index as integer_of
from typing import Any, Final, SupportsIndex

import numpy as np

from stepper import element_types
from stepper.arguments import mapping
from stepper.element_types import STRING_DTYPE, Array, ElementType
from stepper.engine.inputs.array_files import StoredArray
from stepper.errors import InputError, LimitReached, MissingInputs, TensorFacts, UsageError, memory_reason
from stepper.ir.model import Layer, parameter_shape, parameter_type
from stepper.ir.opening import ModelSource, opened
from stepper.ops.operands import shape_text
from stepper.wording import excerpt, near_text

_MOST_INPUTS = 20  # in one message
_LONGEST_INPUT = 200
_PIECE = 2**20
_COUNTED: Final = re.compile(r"(?:in|input|arr)_?([0-9]{1,6})")


def bind_inputs(model: ModelSource, given: Mapping[str | int, Any]) -> list[Array]:
    """Return one array for each Parameter of the model, in file order.

    A key is a Parameter's name, one of its tensor names, or its position (int, or its digits). The arrays are the run's
    own (see `owned`): what is done to the caller's later changes nothing. Raises UsageError for a name that is unknown
    or ambiguous, MissingInputs where there are too few, InputError for a value that does not fit.
    """
    parameters = opened(model).graph.parameters
    found: dict[int, Any] = {}
    for key, value in mapping("inputs", given).items():
        position = position_of(parameters, key)
        if position in found:
            raise UsageError(f"input '{excerpt(str(key))}' is given twice, by two of its names")
        found[position] = value
    missing = [index for index in range(len(parameters)) if index not in found]
    if missing:
        facts = tuple(input_facts(parameters[index]) for index in missing)
        keys = [_key_of(parameters, index) for index in missing[:3]]
        names = ", ".join(f"{key!r}: array" for key in keys) + (", ..." if len(missing) > 3 else "")
        advice = f"pass them by name or position: inputs={{{names}}}"
        lines = missing_lines(facts, len(parameters))
        raise MissingInputs("\n".join([*lines, advice]), facts, len(parameters))
    for index, parameter in enumerate(parameters):  # all headers before the numbers of any
        if isinstance(found[index], StoredArray):
            ensure_form(parameter, found[index])
    return [converted(parameter, found[index]) for index, parameter in enumerate(parameters)]


def input_names(parameter: Layer) -> tuple[str, ...]:
    """Return the names by which a Parameter may be called: its own, then its tensor names."""
    return tuple(dict.fromkeys((parameter.name, *parameter.outputs[0].names)))


def input_facts(parameter: Layer) -> TensorFacts:
    """Name, other names, type and shape of an input, as errors carry them."""
    element_type = parameter_type(parameter)
    name, *others = input_names(parameter)
    type = None if element_type is None else element_type.name
    return TensorFacts(name, type, str(parameter_shape(parameter)), tuple(others))


def describe_input(parameter: Layer) -> str:
    """`name: type[shape]`, with further tensor names."""
    return excerpt(str(input_facts(parameter)), _LONGEST_INPUT)


def position_of(parameters: tuple[Layer, ...], key: str | int) -> int:
    """Return the position of the Parameter that a key means; UsageError for one that is unknown or ambiguous."""
    if isinstance(key, str):
        matching = [index for index, parameter in enumerate(parameters) if key in input_names(parameter)]
        if not matching:  # TensorFlow calls the first output of the node x `x:0`
            matching = [index for index, one in enumerate(parameters) if f"{key}:0" in input_names(one)]
        if len(matching) == 1:
            return matching[0]
        if len(matching) > 1:
            positions = " or ".join(map(str, matching))
            raise UsageError(f"the input name '{key}' is ambiguous; name its position: {positions}")
        if key.isdecimal() and len(key) < 10:
            key = int(key)
    elif isinstance(key, SupportsIndex):  # numpy's integers too
        key = integer_of(key)
    if isinstance(key, int) and 0 <= key < len(parameters):
        return key
    shown = [
        f"{describe_input(parameter)} (position {index})" for index, parameter in enumerate(parameters[:_MOST_INPUTS])
    ]
    known = "; ".join([*shown, *_more(len(parameters))]) or "none"
    near = near_text(str(key), [name for parameter in parameters for name in input_names(parameter)])
    raise UsageError(
        f"the model has no input '{excerpt(str(key))}'; {f'{near}; ' if near else ''}its inputs are {known}"
    )


def plain_key(parameters: tuple[Layer, ...], key: str) -> str:
    """Return the key of an archive; of one that only counts (`in_0`, numpy's `arr_0`) the position."""
    number = _COUNTED.fullmatch(key)
    if number is None or any(key in input_names(parameter) for parameter in parameters):
        return key
    return number[1]


def positions_of_keys(parameters: tuple[Layer, ...], keys: Iterable[str]) -> dict[int, str]:
    """Return by position of the input the key of an archive that means it.

    UsageError for a key that is unknown or ambiguous, and for two that mean the same input.
    """
    found: dict[int, str] = {}
    for key in keys:
        position = position_of(parameters, plain_key(parameters, key))
        if position in found:
            raise UsageError(f"input '{excerpt(str(key))}' is given twice, by two of its names")
        found[position] = key
    return found


def _key_of(parameters: tuple[Layer, ...], index: int) -> str | int:
    """Return the name by which to pass an input, or its position where others have that name, too."""
    name = parameters[index].name
    is_unique = sum(name in input_names(parameter) for parameter in parameters) == 1
    return excerpt(name) if is_unique else index


def missing_lines(missing: Sequence[TensorFacts], inputs: int) -> list[str]:
    """Return the inputs without a value, a line each under a heading; the first 20 of them."""
    lines = [f"{len(missing)} of the model's {inputs} inputs are missing:"]
    lines += [f"  {excerpt(str(facts), _LONGEST_INPUT)}" for facts in missing[:_MOST_INPUTS]]
    return lines + [f"  {text}" for text in _more(len(missing))]


def _more(count: int) -> list[str]:
    return [f"and {count - _MOST_INPUTS} more"] if count > _MOST_INPUTS else []


def converted(parameter: Layer, value: Any) -> Array:
    """Return the value as an array of the Parameter's type; InputError where that loses something, or does not fit."""
    try:
        return _converted(parameter, value)
    except MemoryError as error:
        raise LimitReached(f"input '{parameter.name}': {memory_reason(error)}") from None


def _converted(parameter: Layer, value: Any) -> Array:
    element_type = parameter_type(parameter)
    if isinstance(value, StoredArray):
        ensure_form(parameter, value)
        if parameter_shape(parameter).static is not None and value.dtype.kind in "biuf":
            value = value.read()  # as large as the model says
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise InputError(f"input '{parameter.name}' is not a tensor: {error}") from None
    ensure_shape(parameter, array.shape)
    found = array if element_type is None else cast(parameter.name, array, element_type)
    if found is not array or isinstance(value, (list, tuple, int, float)):
        found.flags.writeable = False  # a new array, with no other owner
    settled: Array = owned(found)
    return settled


def ensure_form(parameter: Layer, value: StoredArray) -> None:
    """Raise InputError for an array of a file whose shape or type the parameter does not take; reads its header."""
    ensure_shape(parameter, value.shape)
    element_type = parameter_type(parameter)
    if element_type is not None and not _is_castable(value.dtype, element_type.dtype):
        raise _unfit(parameter.name, value.dtype, element_type, "input")


def ensure_shape(parameter: Layer, shape: tuple[int, ...]) -> None:
    """Raise InputError for a shape that the parameter does not take."""
    if not parameter_shape(parameter).accepts(shape):
        declared = f"{parameter_type(parameter) or 'any type'}{parameter_shape(parameter)}"
        raise InputError(f"input '{parameter.name}' has shape {shape_text(shape)}, expected {declared}")


def cast(name: str, array: Array, element_type: ElementType, what: str = "input") -> Array:
    """Return the array in this type; InputError, which says `what` of that name it is, where that loses values."""
    dtype = element_type.dtype
    if array.dtype == dtype:
        return array
    if dtype == STRING_DTYPE and array.dtype.kind in "TUO" and all(isinstance(text, str) for text in array.flat):
        return array.astype(STRING_DTYPE)
    if not (_is_numeric(array.dtype) and _is_numeric(dtype) and _survives(array, dtype)):
        raise _unfit(name, array.dtype, element_type, what)
    with np.errstate(all="ignore"):
        return array.astype(dtype)


def _unfit(name: str, found: np.dtype[Any], element_type: ElementType, what: str) -> InputError:
    return InputError(
        f"{what} '{name}' is {element_types.name_of(found)}, expected {element_type}: "
        "converting it would lose values; convert it yourself if that is meant"
    )


def _is_castable(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Return True if some values of one type are values of the other."""
    is_text = found.kind == "U" and wanted == STRING_DTYPE
    return found == wanted or is_text or (_is_numeric(found) and _is_numeric(wanted))


def _is_numeric(dtype: np.dtype[Any]) -> bool:
    """Return True if its values are numbers or booleans of an element type; of those that numpy lacks too."""
    if dtype.kind in "biuf":
        return True
    return dtype.names is None and dtype.kind == "V" and dtype.newbyteorder("=") in _NUMERIC


_NUMERIC: Final = frozenset(known.dtype for known in element_types.ELEMENT_TYPES.values() if known.dtype.names is None)


def _survives(array: Array, dtype: np.dtype[Any]) -> bool:
    """Return True if every value is the same in the other type; a large tensor is looked at piece by piece."""
    flat = array.reshape(-1)
    return all(_all_survive(flat[begin : begin + _PIECE], dtype) for begin in range(0, flat.size, _PIECE))


def _all_survive(array: Array, dtype: np.dtype[Any]) -> bool:
    """Return the way there and back tells, but for what wraps around."""
    if dtype == np.bool_ and array.dtype.kind in "iu":
        return bool(np.isin(array, (0, 1)).all())
    with np.errstate(all="ignore"):
        cast = array.astype(dtype)
        back = cast.astype(array.dtype)
        same = (back == array) | ((array != array) & (back != back))
        if array.dtype.kind in "iu" and dtype.kind in "iuf":
            same &= (array < 0) == (cast < 0)
            if dtype.kind == "f":  # 2**64 - 1 becomes 2**64, which comes back as anything
                same &= cast < 2.0 ** (8 * array.dtype.itemsize - (array.dtype.kind == "i"))
    return bool(np.all(same))


def owned(value: Any) -> Any:
    """Return the value as no one else can change it: a read-only copy of an array that may be written to.

    An array that is read-only down to the memory that it is in stays as it is, and so does a file that is mapped for
    reading (`np.load(path, mmap_mode="r")`), however large. A number of numpy or Python is what it is.
    """
    if not isinstance(value, np.ndarray):
        return value
    if not _is_settled(value):
        value = value.copy()
        value.flags.writeable = False
    return value


def _is_settled(array: Array) -> bool:
    """True if nothing on the way from the array to its memory can be written to."""
    holder: Any = array
    while isinstance(holder, np.ndarray):
        if holder.flags.writeable:
            return False
        if holder.base is None:
            return holder.flags.owndata
        holder = holder.base
    try:
        return memoryview(holder).readonly
    except TypeError:
        return False
