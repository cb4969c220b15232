"""The outputs that are right: of an archive, a recording, another model, ONNX or OpenVINO, for one or more inputs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from msgspec import field
from msgspec.structs import replace

from stepper.compare.references.protocol import ReferenceFailed
from stepper.compare.references.reference_opening import model_title, open_reference
from stepper.element_types import Array
from stepper.engine.array_files import read_archive
from stepper.engine.compiler import compile_model
from stepper.engine.frames import Every
from stepper.engine.inputs import bind_inputs, bind_states, by_position, converted, variables_alone
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Partner
from stepper.engine.run import called_alike
from stepper.errors import InputError, StepperError, UsageError
from stepper.files.file_kinds import is_model_path
from stepper.ir.model import Layer, Model, parameter_shape
from stepper.openvino.opening import open_model
from stepper.openvino.runtime import Runtime
from stepper.records import Record
from stepper.repair.asked_function import ask_function, names_function
from stepper.repair.replay import NO_VALUES, GivenExample, NamedValues, first_values

_SUFFIX = ".npz"
Ask = Callable[[Sequence[Array]], Mapping[int, Array]]


class RepairReference(Record, eq=False):
    """A reference with the examples that it gives.

    `ask` gives its outputs for other inputs; None for an archive and a recording. `is_exact`: the reference is computed
    with the same kernels, so that outputs agree closely. `values` are the first values inside, by names of layers.
    """

    title: str
    examples: tuple[GivenExample, ...]
    ask: Ask | None = None
    is_exact: bool = False
    values: NamedValues = field(default_factory=dict)


def read_reference(
    text: str,
    compiled: CompiledModel,
    inputs: Mapping[str | int, Any],
    also: Sequence[tuple[str, str]] = (),
    runtime: Runtime | None = None,
    source: str = "",
    max_iterations: int | None = None,
    states: Mapping[str, Any] | None = None,
    partner: Partner | None = None,
) -> RepairReference:
    """Return the reference that a user names, with an example for each of the inputs.

    An archive of outputs may have a leading axis of examples, as the inputs then have; `also` are further archives of
    inputs and outputs. UsageError for what is no reference, InputError for arrays that do not fit the model.
    """
    model = compiled.model
    cases = _cases(model, inputs)
    is_model, title, values = is_model_path(text), text, NO_VALUES
    if is_model:
        other = compile_model(called_alike(open_model(text), model), compiled.rules, partner)
        begun = bind_states(other, variables_alone(other.model, states))
        title = model_title(model.path, Path(text))
        values = first_values(other, _bound(other, model, cases[0][1]), max_iterations, begun)
        ask: Ask | None = partial(_outputs_of_model, other, model, max_iterations, begun)
    else:
        ask = _ask_of(text, compiled, runtime, source, max_iterations, states)
    further = [one for files in also for one in _of_files(compiled, *files)]
    if ask is not None:
        found = [GivenExample(name, tuple(bound), ask(bound)) for name, bound in cases]
        return RepairReference(title, (*found, *further), ask, is_model, values)
    reference = open_reference(text, compiled, cases[0][1], runtime, source, max_iterations)
    outputs = dict(reference.outputs())
    if not outputs:
        raise InputError(f"--with {text}: has no output of the model; expected keys such as out_0, or names of outputs")
    found = _examples(compiled, cases, outputs, text)
    return RepairReference(reference.title, (*found, *further), None, reference.is_exact)


def _cases(model: Model, inputs: Mapping[str | int, Any]) -> list[tuple[str, list[Array]]]:
    """Return the inputs of each example; several where all inputs have a leading axis of examples."""
    try:
        return [("inputs", bind_inputs(model, inputs))]
    except InputError:
        given = by_position(model.graph.parameters, dict(inputs))
        count = _leading(model.graph.parameters, given)
        if count is None:
            raise
    found = []
    for index in range(count):
        one = {position: np.asarray(value)[index] for position, value in given.items()}
        found.append((f"inputs[{index}]", bind_inputs(model, {str(key): value for key, value in one.items()})))
    return found


def _leading(parameters: Sequence[Layer], given: Mapping[int, Any]) -> int | None:
    """Return the length of the leading axis that all inputs have beyond what the model takes; None without one."""
    counts = set()
    for position, value in given.items():
        dimensions = parameter_shape(parameters[position]).dimensions
        shape = np.shape(value)
        if dimensions is None or len(shape) != len(dimensions) + 1:
            return None
        counts.add(shape[0])
    return counts.pop() if len(counts) == 1 else None


def _examples(
    compiled: CompiledModel, cases: Sequence[tuple[str, list[Array]]], outputs: Mapping[int, Array], text: str
) -> list[GivenExample]:
    found = []
    for index, (name, bound) in enumerate(cases):
        own = outputs
        if len(cases) > 1:
            short = next((key for key, value in outputs.items() if np.shape(value)[:1] != (len(cases),)), None)
            if short is not None:
                shape, expected = list(np.shape(outputs[short])), f"a leading axis of {len(cases)}, as the inputs have"
                raise InputError(f"--with {text}: output {short} has shape {shape}, expected {expected}")
            own = {key: np.asarray(value)[index] for key, value in outputs.items()}
        found.append(GivenExample(name, tuple(bound), _of_declared_types(compiled, own)))
    return found


def _of_declared_types(compiled: CompiledModel, outputs: Mapping[int, Array]) -> dict[int, Array]:
    """Return outputs in the element types of the model: frameworks write f64 where the model has f32."""
    main, found = compiled.main, dict[int, Array]()
    for position, value in outputs.items():
        _shape, dtype = main.declared(main.results[position])
        array = np.asarray(value)
        found[position] = array.astype(dtype) if array.dtype != dtype and array.dtype.kind in "fiub" else array
    return found


def _of_files(compiled: CompiledModel, inputs_file: str, outputs_file: str) -> list[GivenExample]:
    model = compiled.model
    given = by_position(model.graph.parameters, dict(read_archive(Path(inputs_file))), is_archive=True)
    cases = _cases(model, {position: np.asarray(value) for position, value in given.items()})
    reference = open_reference(outputs_file, compiled, cases[0][1], option="--also")
    return [
        replace(one, name=inputs_file) for one in _examples(compiled, cases, dict(reference.outputs()), outputs_file)
    ]


def _ask_of(
    text: str,
    compiled: CompiledModel,
    runtime: Runtime | None,
    source: str,
    max_iterations: int | None,
    states: Mapping[str, Any] | None,
) -> Ask | None:
    """Return what computes the outputs of a function or a runtime for any input; None for a file of values."""
    if names_function(text):
        return lambda inputs: _of_declared_types(compiled, ask_function(text, inputs))
    if Path(text).suffix == _SUFFIX or Path(text).exists():
        return None

    def ask(inputs: Sequence[Array]) -> Mapping[int, Array]:
        try:
            found = open_reference(text, compiled, inputs, runtime, source, max_iterations, states=states)
            return dict(found.outputs())
        except ReferenceFailed as error:
            raise UsageError(f"--with {text}: {error}") from None

    return ask


def _bound(other: CompiledModel, model: Model, inputs: Sequence[Array]) -> list[Array]:
    """Return inputs of a model for another one: by name, else by position."""
    names = [layer.name for layer in model.graph.parameters]
    if len(other.model.graph.parameters) > len(inputs):
        count, expected = len(other.model.graph.parameters), len(inputs)
        raise UsageError(f"--with {other.model.path}: has {count} inputs, expected {expected} as the model has")
    theirs = other.model.graph.parameters
    return [
        converted(layer, inputs[names.index(layer.name)] if layer.name in names else inputs[index])
        for index, layer in enumerate(theirs)
    ]


def _outputs_of_model(
    other: CompiledModel, model: Model, max_iterations: int | None, states: Mapping[str, Any], inputs: Sequence[Array]
) -> dict[int, Array]:
    machine = Machine(other, _bound(other, model, inputs), max_iterations=max_iterations, states=states)
    machine.advance(Every.END)
    return dict(enumerate(machine.outputs or ()))


def other_inputs(inputs: Sequence[Array], seed: int) -> list[Array]:
    """Return inputs like these: floats with noise of their own size, integers in another order, truths turned round."""
    random, found = np.random.default_rng(seed), list[Array]()
    for value in inputs:
        if value.dtype.kind == "f" and value.size:
            size = float(np.std(np.asarray(value, np.float64))) or 1.0
            noise = random.normal(0.0, 0.3 * size, value.shape)
            found.append((np.asarray(value, np.float64) + noise).astype(value.dtype))
        elif value.dtype == np.bool_ and not seed % 2:
            found.append(~value)
        elif value.dtype.kind in "iub" and value.ndim and seed % 2:
            found.append(random.permuted(value, axis=None).reshape(value.shape))
        else:
            found.append(value)
    return found


RUN_ERRORS = (StepperError, ValueError, ArithmeticError)
"""Errors of a reference, or of an edited model, on inputs that nobody chose."""
