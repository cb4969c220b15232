"""From what a user gives to the arrays of the model's Parameters: found by name or position, type and shape checked."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from operator import index as integer_of
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, SupportsIndex, TypeVar

import numpy as np

from stepper import element_types
from stepper.argument_checks import LARGEST_SEED, mapping, whole_number
from stepper.element_types import F32, STRING_DTYPE, Array, DType, ElementType, Shape
from stepper.engine import arithmetic
from stepper.engine.array_files import ReadProgress, StoredArray, member_of, read_array
from stepper.engine.rules import Rules
from stepper.errors import (
    InputError,
    KernelError,
    LimitReached,
    MissingInputs,
    TensorFacts,
    UsageError,
    memory_reason,
)
from stepper.ir.model import Layer, Model, PartialShape, Port, parameter_shape, parameter_type
from stepper.ir.reader import ModelSource, opened
from stepper.operation_types import VARIABLES
from stepper.ops.operands import ensure_allocatable, shape_text
from stepper.records import Record
from stepper.wording import counted, excerpt, json_fault, near_text

if TYPE_CHECKING:
    from stepper.engine.program import CompiledModel


T = TypeVar("T")

_MOST_INPUTS = 20  # in one message
_LONGEST_INPUT = 200
_PIECE = 2**20
_COUNTED = re.compile(r"(?:in|input|arr)_?([0-9]{1,6})")


def bind_inputs(model: ModelSource, given: Mapping[str | int, Any]) -> list[Array]:
    """Return one array for each Parameter of the model, in file order.

    A key is a Parameter's name, one of its tensor names, or its position (int, or its digits). The arrays are the run's
    own (see `owned`): what is done to the caller's later changes nothing. Raises UsageError for a name that is unknown
    or ambiguous, MissingInputs where there are too few, InputError for a value that does not fit.
    """
    parameters = opened(model).graph.parameters
    found = by_position(parameters, mapping("inputs", given))
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


def by_position(parameters: tuple[Layer, ...], given: Mapping[Any, T], *, is_archive: bool = False) -> dict[int, T]:
    """Return by position of the input what is given by one of its names; the keys of an archive may only count.

    UsageError for a key that is unknown or ambiguous, and for two that mean the same input.
    """
    found: dict[int, T] = {}
    for key, value in given.items():
        position = position_of(parameters, plain_key(parameters, key) if is_archive else key)
        if position in found:
            raise UsageError(f"input '{excerpt(str(key))}' is given twice, by two of its names")
        found[position] = value
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


def ensure_shape(parameter: Layer, shape: Shape) -> None:
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


def _unfit(name: str, found: DType, element_type: ElementType, what: str) -> InputError:
    return InputError(
        f"{what} '{name}' is {element_types.name_of(found)}, expected {element_type}: "
        "converting it would lose values; convert it yourself if that is meant"
    )


def _is_castable(found: DType, wanted: DType) -> bool:
    """Return True if some values of one type are values of the other."""
    is_text = found.kind == "U" and wanted == STRING_DTYPE
    return found == wanted or is_text or (_is_numeric(found) and _is_numeric(wanted))


def _is_numeric(dtype: DType) -> bool:
    """Return True if its values are numbers or booleans of an element type; of those that numpy lacks too."""
    if dtype.kind in "biuf":
        return True
    return dtype.names is None and dtype.kind == "V" and dtype.newbyteorder("=") in _NUMERIC


_NUMERIC = frozenset(known.dtype for known in element_types.ELEMENT_TYPES.values() if known.dtype.names is None)


def _survives(array: Array, dtype: DType) -> bool:
    """Return True if every value is the same in the other type; a large tensor is looked at piece by piece."""
    flat = array.reshape(-1)
    return all(_all_survive(flat[begin : begin + _PIECE], dtype) for begin in range(0, flat.size, _PIECE))


def _all_survive(array: Array, dtype: DType) -> bool:
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
    """Return the value so that nobody else can change it: a read-only copy of a writable array.

    An array that is read-only down to its memory is returned unchanged, and so is a file that is mapped for reading
    (`np.load(path, mmap_mode="r")`), however large. A number of numpy or Python is returned unchanged, too.
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


# Specs of inputs: a file, a way to fill, or a literal, for the command line and the inputs screen.


def value_of(
    parameter: Layer, text: str, shape: Shape | None = None, reading: ReadProgress | None = None
) -> Array | StoredArray:
    """Return the tensor that a SPEC means for a Parameter.

    `reading` receives the progress while a file is read; without it the array of an .npz is not read yet. Raises
    UsageError or InputError with the parameter's name.
    """
    text = text.strip()
    kind, _, argument = text.partition(":")
    if kind in _FILLERS and (not argument or kind == "rand"):
        return _filled(parameter, kind, argument, shape)
    if text.startswith(("[", '"')) or text in ("true", "false") or _is_number(text):
        return _literal(parameter, text)
    path, colon, key = text.rpartition(":")
    if colon and path.endswith(".npz"):
        stored = member_of(Path(path), key)
        return stored if reading is None else stored.read(reading)
    if text.endswith(".npy"):
        return read_array(Path(text), reading)
    wanted = "expected FILE.npy, FILE.npz:KEY, zeros, ones, rand:SEED, or a JSON literal"
    raise UsageError(f"{_called(parameter)}: '{text}' is not a value; {wanted}")


def is_filler(text: str) -> bool:
    """Return True for a SPEC that fills a tensor of whatever shape."""
    return text.strip().partition(":")[0] in _FILLERS


def file_of(text: str) -> Path | None:
    """Return the file that a SPEC reads, None where it reads none."""
    text = text.strip()
    path, colon, _key = text.rpartition(":")
    if colon and path.endswith(".npz"):
        return Path(path)
    return Path(text) if text.endswith(".npy") and not text.startswith(("[", '"')) else None


def _called(parameter: Layer) -> str:
    """Return the subject of a value for messages: an input, or (of a layer that stands for a variable) that."""
    return f"{'input' if parameter.type == 'Parameter' else 'variable'} '{parameter.name}'"


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _literal(parameter: Layer, text: str) -> Array:
    """Return a JSON literal in the Parameter's type: a decimal fraction means the nearest number of that type."""
    shown = f"{text[:60]} ..." if len(text) > 60 else text
    raw = _raw(f"{_called(parameter)}: '{shown}'", text)
    element_type = parameter_type(parameter)
    if element_type is None or raw.dtype == element_type.dtype:
        return raw
    dtype = element_type.dtype
    if raw.dtype.kind == "U" and dtype == STRING_DTYPE:
        return raw.astype(STRING_DTYPE)
    if raw.dtype.kind in "iuf" and element_types.is_floating(dtype):
        with np.errstate(all="ignore"):
            found = raw.astype(dtype)
        _ensure_held(_called(parameter), raw, found, str(element_type))
        return found
    return raw  # whether it fits is judged as for any other array


def _raw(what: str, text: str) -> Array:
    """Return the array of a JSON literal or a number. UsageError, beginning with `what`, for what is none."""
    try:
        content = json.loads(text, parse_float=_decimal) if not _is_number(text) else _number(text)
    except _TooLarge as error:
        raise UsageError(f"{what} has {error}; write Infinity if that is meant") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{what} is not a JSON literal, such as [1,2,3]: {json_fault(text, error)}") from None
    fault = _fault(content)
    if fault:
        raise UsageError(f"{what} is not a tensor: {fault}")
    try:
        return np.array(content)
    except (ValueError, RecursionError):  # more dimensions than numpy has
        raise UsageError(f"{what} is not a tensor: it has more dimensions than there may be") from None


class _TooLarge(ValueError):
    """A number that no floating-point type holds."""


def _decimal(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise _TooLarge(f"the number {text}, which is larger than f64 holds")
    return value


def _number(text: str) -> int | float:
    try:
        return int(text)
    except ValueError:
        is_named = text.strip().lstrip("+-").lower().startswith("inf")
        return float(text) if is_named else _decimal(text)


def _fault(content: Any) -> str:
    """Return why nested lists are no tensor; empty where they are one."""
    level: list[tuple[str, Any]] = [("", content)]
    while level and isinstance(level[0][1], list):
        first_place, first = level[0]
        for place, part in level:
            if not isinstance(part, list):
                return f"{_place(place)} is {_kind(part)}, and {_place(first_place)} is a list"
            if len(part) != len(first):
                count = counted(len(part), "element")
                return f"{_place(place)} has {count}, and {_place(first_place)} has {len(first)}"
        level = [(f"{place}[{index}]", inner) for place, part in level for index, inner in enumerate(part)]
    kinds = {"text" if isinstance(part, str) else "number" for _place_, part in level}
    for place, part in level:
        if part is None or isinstance(part, dict | list):
            return f"{_place(place)} is {_kind(part)}, and {'a number or a text' if place else 'a value'} is expected"
        if len(kinds) > 1 and isinstance(part, str) != isinstance(level[0][1], str):
            return f"{_place(place)} is {_kind(part)}, and {_place(level[0][0])} is {_kind(level[0][1])}"
        if isinstance(part, int) and not -(2**63) <= part < 2**64:
            return f"{_place(place)} is an integer of more than 64 bits"
    return ""


def _place(place: str) -> str:
    return f"element {place}" if place else "it"


def _kind(part: Any) -> str:
    if isinstance(part, list):
        return "a list"
    names = {type(None): "null", dict: "an object", str: "a text", bool: "a boolean"}
    return names.get(type(part), "a number")


def _ensure_held(what: str, raw: Array, found: Array, type: str) -> None:
    """Raise UsageError for a finite number that the type holds as Inf alone."""
    if raw.dtype.kind == "f" or raw.dtype.kind in "iu":
        wide = found.astype(np.float64)
        lost = np.isfinite(raw.astype(np.float64)) & ~np.isfinite(wide)
        if lost.any():
            number = raw[lost].reshape(-1)[0]
            raise UsageError(f"{what}: {number} is larger than {type} holds; write Infinity if that is meant")


def _filled(parameter: Layer, kind: str, argument: str, shape: Shape | None) -> Array:
    declared = parameter_shape(parameter)
    size = declared.static if shape is None else shape
    if size is None:
        if parameter.type != "Parameter":
            raise UsageError(f"{_called(parameter)} has the open shape {declared}: give an array or a JSON literal")
        name = input_names(parameter)[0]
        raise UsageError(f"input '{name}' has the open shape {declared}: say which one with --shape '{name}=...'")
    element_type = parameter_type(parameter) or F32
    try:
        ensure_allocatable(size, element_type.dtype)
    except KernelError as error:
        raise UsageError(f"{_called(parameter)}: {error}") from None
    try:
        return _FILLERS[kind](parameter, argument, size, element_type)
    except MemoryError as error:
        raise LimitReached(f"{_called(parameter)}: {memory_reason(error)}") from None


def _ones(parameter: Layer, _argument: str, shape: Shape, element_type: ElementType) -> Array:
    if element_type.dtype == STRING_DTYPE:
        raise UsageError(f"{_called(parameter)} is of type string, which has no ones")
    return np.ones(shape, element_type.dtype)


def _random(parameter: Layer, argument: str, shape: Shape, element_type: ElementType) -> Array:
    """Return floats from -1 to 1, integers from 0 to 9, booleans; the same for the same seed and name."""
    if not argument.isdecimal():
        raise UsageError(f"{_called(parameter)}: 'rand:{argument}' has no seed; write for example rand:0")
    if len(argument) > 40 or int(argument) > LARGEST_SEED:
        raise UsageError(f"{_called(parameter)}: the seed of 'rand:{argument}' is larger than {LARGEST_SEED}")
    generator = np.random.default_rng([int(argument), *parameter.name.encode()])
    dtype = element_type.dtype
    if element_types.is_floating(dtype):
        return generator.uniform(-1.0, 1.0, shape).astype(dtype)
    if dtype == STRING_DTYPE or dtype.names:
        raise UsageError(f"{_called(parameter)} is of type {element_type}, which cannot be drawn at random")
    high = 2 if dtype == np.bool_ else min(10, 1 << max(1, element_type.bits - 1))
    return generator.integers(0, high, shape).astype(dtype)


_FILLERS: Final[Mapping[str, Callable[[Layer, str, Shape, ElementType], Array]]] = {
    "zeros": lambda _parameter, _argument, shape, element_type: np.zeros(shape, element_type.dtype),
    "ones": _ones,
    "rand": _random,
}


# Variables of a model (ReadValue and Assign): which there are, and values for them from an earlier run.

_MOST_LISTED = 20
_LONGEST = 200


class Variable(Record):
    """A variable as the file declares it: `element_type` is None where any will do; `layers` read it or assign to it.

    `path` leads to the graph that the first of them is in.
    """

    name: str
    element_type: ElementType | None
    shape: PartialShape
    path: tuple[Layer, ...]
    layers: tuple[Layer, ...]

    @property
    def parameter(self) -> Layer:
        """A layer of the variable's name, type and shape, for which a SPEC can mean a value as for a Parameter's."""
        port = Port(0, self.element_type, (), (), self.layers[0].line)
        return self.layers[0]._replace(
            name=self.name, type="ReadValue", attributes={"shape": str(self.shape)}, outputs=(port,)
        )

    @property
    def facts(self) -> TensorFacts:
        """Name, type and shape, as errors carry them."""
        type = None if self.element_type is None else self.element_type.name
        return TensorFacts(self.name, type, str(self.shape))


def variables_of(model: Model) -> tuple[Variable, ...]:
    """Return the variables of a model, outer graphs before inner ones and in each in the order of the file."""
    users: dict[str, list[tuple[tuple[Layer, ...], Layer]]] = {}
    for path, graph in model.graphs():
        for layer in graph.layers:
            if layer.type in VARIABLES and (name := layer.attributes.get("variable_id")):
                users.setdefault(name, []).append((path, layer))
    return tuple(_declared(name, found) for name, found in users.items())


def _declared(name: str, users: list[tuple[tuple[Layer, ...], Layer]]) -> Variable:
    layers = tuple(layer for _, layer in users)
    reader = next((layer for layer in layers if layer.type == "ReadValue"), layers[0])
    text, type = reader.attributes.get("variable_shape"), reader.attributes.get("variable_type")
    port = (*reader.outputs, *reader.inputs, None)[0]
    shape = PartialShape(None) if port is None else PartialShape.of_dims(port.dims)
    if text is not None:
        try:
            shape = PartialShape.parse(text)
        except ValueError:
            shape = PartialShape(None)  # what it cannot mean is said by the operation, if it is asked
    element_type = element_types.by_name(type) if type else None if port is None else port.element_type
    return Variable(name, element_type, shape, users[0][0], layers)


def bind_states(compiled: CompiledModel, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return values for the variables that a run begins with, in the types of the model.

    A variable that is not there begins as ReadValue says. The streams of random operations, which an earlier run has
    left among its states, go on, too. Raises UsageError for a name that no variable has, InputError for a value that
    does not fit; both list the variables.
    """
    if not given:
        return {}
    known = {variable.name: variable for variable in variables_of(compiled.model)}
    found = {}
    for name, value in mapping("states", given).items():
        if name in known:
            found[name] = _value_of(known[name], value, compiled.rules)
        elif name in random_streams(compiled):
            found[name] = whole_number(f"the state of the random operation '{name}'", _plain(value), 0)
        else:
            raise UsageError(f"the model has no variable '{excerpt(str(name))}'; {listed(known)}")
    return found


def variables_alone(model: Model, states: Mapping[str, Any] | None) -> dict[str, Array]:
    """Return those of the states that are variables of the model, as arrays; not the streams of random operations."""
    known = {variable.name for variable in variables_of(model)}
    return {name: np.asarray(value) for name, value in (states or {}).items() if name in known}


def random_streams(compiled: CompiledModel) -> set[str]:
    """Return the keys of the states that are not variables: how far the stream of each random operation has come."""
    operations = [operation for program in compiled.programs for operation in program.operations]
    return {one.state_key for one in operations if one.state_key and one.layer.type not in VARIABLES}


def _plain(value: Any) -> Any:
    value = np.asarray(value) if isinstance(value, StoredArray) else value
    return value.item() if isinstance(value, np.ndarray | np.generic) and np.size(value) == 1 else value


def _value_of(variable: Variable, value: Any, rules: Rules) -> Any:
    try:
        array = value if isinstance(value, StoredArray) else np.asarray(value)
    except ValueError as error:
        raise InputError(f"variable '{variable.name}' is given no tensor: {error}") from None
    if not variable.shape.accepts(array.shape):
        expected = f"{variable.element_type or 'any type'}{variable.shape}"
        raise InputError(
            f"variable '{variable.name}' is given the shape {shape_text(array.shape)}, expected {expected}"
        )
    array = np.asarray(array)
    if variable.element_type is not None:
        array = cast(variable.name, array, variable.element_type, "variable")
    return owned(array if rules is Rules.SPEC else arithmetic.narrowed(array))


def listed(variables: Mapping[str, Variable]) -> str:
    """Return the variables of a model in one line."""
    if not variables:
        return "it has no variables"
    shown = [excerpt(str(variable.facts), _LONGEST) for variable in list(variables.values())[:_MOST_LISTED]]
    more = [f"and {len(variables) - _MOST_LISTED} more"] if len(variables) > _MOST_LISTED else []
    return f"its variables are {'; '.join([*shown, *more])}"


def states_of(compiled: CompiledModel, states: Mapping[str, Any]) -> dict[str, Any]:
    """Return the states that a run leaves for the next one: read-only arrays in the declared types, by variable.

    The streams of random operations are there, too, as ints.
    """
    if not states:
        return {}  # most models: their layers need not be looked at in each run
    types = {one.name: one.element_type for one in variables_of(compiled.model) if one.element_type is not None}
    return {name: _left(value, types.get(name), compiled.rules) for name, value in states.items() if value is not None}


def _left(value: Any, element_type: ElementType | None, rules: Rules) -> Any:
    if isinstance(value, int):
        return value
    array: Array = np.asarray(value)
    return owned(array if element_type is None else arithmetic.restored(array, element_type.dtype, rules))
