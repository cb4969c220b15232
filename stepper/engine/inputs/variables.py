"""Variables of a model (ReadValue and Assign): which there are, and values for them from an earlier run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from stepper import element_types
from stepper.arguments import mapping, whole_number
from stepper.engine import arithmetic
from stepper.engine.inputs import binding
from stepper.engine.inputs.array_files import StoredArray
from stepper.engine.rules import Rules
from stepper.errors import InputError, TensorFacts, UsageError
from stepper.ir.model import Layer, Model, Port
from stepper.ir.shapes import PartialShape
from stepper.ops.operands import shape_text
from stepper.wording import excerpt

if TYPE_CHECKING:
    from stepper.element_types import Array, ElementType
    from stepper.engine.program import CompiledModel

_TYPES: Final = ("ReadValue", "Assign")
_MOST_LISTED: Final = 20
_LONGEST: Final = 200


class Variable(Struct, frozen=True):
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
            if layer.type in _TYPES and (name := layer.attributes.get("variable_id")):
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
    return {one.state_key for one in operations if one.state_key and one.layer.type not in _TYPES}


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
        array = binding.cast(variable.name, array, variable.element_type, "variable")
    return binding.owned(array if rules is Rules.SPEC else arithmetic.narrowed(array))


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
    return binding.owned(array if element_type is None else arithmetic.restored(array, element_type.dtype, rules))
