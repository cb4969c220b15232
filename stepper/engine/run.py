"""A whole run in one call, and what comes out of it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from stepper.argument_checks import mapping
from stepper.element_types import Array, ElementType, have_same_bits
from stepper.engine import inputs
from stepper.engine.array_files import StoredArray
from stepper.engine.compiler import compile_model, unsupported_layers
from stepper.engine.frames import Activation, Every, Frame, RunObserver, place
from stepper.engine.inputs import bind_inputs, bind_states, states_of, variables_of
from stepper.engine.loops import Control, EndReason, RoleError, control, output_role, roles_of
from stepper.engine.machine import Machine
from stepper.engine.program import CompiledModel, Operation, Partner, computed_elsewhere, operations_elsewhere
from stepper.engine.rules import Note, Rules
from stepper.errors import InputError, UsageError
from stepper.ir.calls import with_calls
from stepper.ir.lowering import sequences_of
from stepper.ir.model import (
    Body,
    CallParts,
    Calls,
    CarriedOutput,
    Graph,
    InputMapping,
    Layer,
    LayerSite,
    Model,
    PartialShape,
    Slicing,
    Source,
    layer_site,
    parameter_shape,
    parameter_type,
    path_text,
)
from stepper.ir.reader import ModelSource, opened
from stepper.ops.departures import Departure, Use, departures
from stepper.ops.operands import HasForm, form_text, shape_text
from stepper.records import Record
from stepper.wording import counted, near_text


class LoopSummary(Struct):
    """Summary of all executions of one loop: how many, their iterations (`word`: iteration, or call), what ended it."""

    path: str
    id: int
    kind: str
    name: str
    line: int
    executions: int = 0
    iterations: int = 0
    fewest: int = 0
    most: int = 0
    ended: Counter[EndReason] = field(default_factory=Counter)
    word: str = "iteration"

    def add(self, activation: Activation) -> None:
        """Count one more execution."""
        assert activation.ended is not None, "a loop leaves for a reason"
        self.count(activation.iteration + 1, activation.ended)

    def count(self, iterations: int, ended: EndReason) -> None:
        """Count one more execution, of so many iterations."""
        self.fewest = iterations if self.executions == 0 else min(self.fewest, iterations)
        self.most = max(self.most, iterations)
        self.executions += 1
        self.iterations += iterations
        self.ended[ended] += 1


class LoopLog(RunObserver):
    """Collects the summaries of a run: an observer for a machine."""

    def __init__(self) -> None:
        self._by_operation: dict[int, LoopSummary] = {}

    def loop_left(self, stack: Sequence[Frame], activation: Activation) -> None:
        """Count one more execution."""
        operation = activation.operation
        summary = self._by_operation.get(id(operation))
        if summary is None:
            path, layer = place(stack, operation, iterations=False), operation.layer
            summary = LoopSummary(path, layer.id, layer.type, layer.name, layer.line, word=layer.iteration_word)
            self._by_operation[id(operation)] = summary
        summary.add(activation)

    def include(self, operation: Operation, earlier: LoopSummary) -> None:
        """Count executions of a loop that an earlier part of the run has seen."""
        summary = self._by_operation.setdefault(id(operation), earlier)
        if summary is not earlier:
            summary.fewest = min(summary.fewest, earlier.fewest)
            summary.most = max(summary.most, earlier.most)
            summary.executions += earlier.executions
            summary.iterations += earlier.iterations
            summary.ended += earlier.ended

    @property
    def summaries(self) -> tuple[LoopSummary, ...]:
        """Return a summary of each loop that was entered, in the order in which they first ended."""
        return tuple(self._by_operation.values())


class Outputs(dict[str, Array]):
    """The model's outputs by name, in the order of its Results; with what there is to say about the run.

    `loops` has one entry for each loop that was entered. `notes` name where the other rule book would differ. `states`
    are the variables (ReadValue, Assign) by name, for the next run. `computed_by` counts the operations of each type
    that a partner computes; `elsewhere` names each of them.
    """

    loops: tuple[LoopSummary, ...]
    notes: tuple[Note, ...]
    states: dict[str, Any]
    computed_by: dict[str, Counter[str]]
    elsewhere: tuple[ComputedElsewhere, ...]

    def __repr__(self) -> str:
        values = (f"{name} {form_text(value)}" for name, value in self.items())
        return f"<Outputs: {', '.join(values) or 'none'}>"

    def _repr_html_(self) -> str:
        """Return a table of the outputs and one of the loops, for notebooks."""
        from stepper.html_tables import html_table  # the first picture goes without

        rows = [
            (name, form_text(value), np.array2string(value.reshape(-1), threshold=8)) for name, value in self.items()
        ]
        loops = [(one.path, f"{one.iterations:,} iterations", ", ".join(map(str, one.ended))) for one in self.loops]
        return html_table([*rows, *loops])


class ComputedElsewhere(Record):
    """An operation that a backend computed: its graph, in words, and the backend."""

    path: str
    layer: LayerSite
    computed_by: str


def run(
    model: ModelSource,
    inputs: Mapping[str | int, Any],
    rules: str | Rules = Rules.SPEC,
    max_iterations: int | None = None,
    states: Mapping[str, Any] | None = None,
    partner: Partner | None = None,
) -> Outputs:
    """Run a model once and return its outputs.

    `model` is a Model, a CompiledModel (which has its rules and its partner), or the path of a model. `inputs` maps
    names, tensor names or positions to arrays; `rules` is "spec" or "openvino"; `max_iterations` ends the run with
    LimitReached where one loop wants more; `states` are variables of an earlier run, as its outputs' `states` has them;
    `partner` computes the operations that it claims. Raises the errors of stepper.errors, each with one clear message.
    """
    compiled = model if isinstance(model, CompiledModel) else compile_model(model, rules, partner)
    machine = Machine(
        compiled,
        bind_inputs(compiled.model, inputs),
        max_iterations=max_iterations,
        states=bind_states(compiled, states),
        keep_values=False,
    )
    log = LoopLog()
    machine.observers = (log,)
    for _event in machine.run(Every.END):
        pass
    return collect(machine, log)


def collect(machine: Machine, log: LoopLog) -> Outputs:
    """Return the outputs of a machine that has finished."""
    assert machine.outputs is not None, "the machine has finished"
    # The caller may write into the outputs; a view might be one of an input, a constant or a variable.
    arrays = [array.copy() for array in machine.outputs]
    outputs = Outputs(zip(output_names(machine.compiled.model), arrays, strict=True))
    outputs.loops = log.summaries
    outputs.notes = tuple(machine.notes)
    outputs.states = states_of(machine.compiled, machine.states)
    compiled = machine.compiled
    outputs.computed_by = computed_elsewhere(compiled) if compiled.engine else {}
    outputs.elsewhere = tuple(
        ComputedElsewhere(program.name, layer_site(op.layer, str(compiled.model.path)), op.computed_by)
        for program, op in (operations_elsewhere(compiled) if compiled.engine else ())
    )
    return outputs


def output_names(model: Model) -> list[str]:
    """Return a unique name per model output: its tensor's first name, else its Result's name."""
    names: list[str] = []
    for result in model.graph.results:
        source = model.graph.sources[result.id][0]
        assert source is not None, "the reader has seen to it"
        tensor_names = model.graph.by_id[source.layer].outputs[source.output].names
        candidates = [*tensor_names, result.name, *(f"{result.name}#{index}" for index in range(len(names) + 1))]
        names.append(next(name for name in candidates if name and name not in names))
    return names


# From arrays of many calls to a model that is a loop over them, and its inputs.
#
#     model, inputs = stepper.over_calls("model.xml", {"x": frames}, carry={"hn": "h"})
#     debugger = stepper.Debugger(model, {**inputs, "h": zeros})
#
# What an array is follows from what the model takes in a call, which has rank r: of rank r + 1 it has an axis of calls
# (the first one, where nothing else is said); of rank r it has the parts of the calls one behind the other along an
# axis.


class PartsOfCalls(Record, eq=False):
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
    """Return the model as the body of a loop over calls, and its inputs that `calls` has, by position.

    `calls` maps inputs (name, tensor name, position) to arrays with the parts of all calls, to lists of arrays, or to
    PartsOfCalls. `carry` maps outputs to the inputs of the next call, or has pairs of both, in which an output may be
    several times. An input in none of the two is the same in all calls, and so is one with a list of equal arrays. An
    input in both begins with the value of the first call; an input that is only carried begins with the value given to
    the run. `count` is the number of calls if no input says so. Raises UsageError for an unknown name, and if inputs
    say different numbers of calls. Raises InputError for arrays without parts of calls.
    """
    model = opened(model)
    parameters = model.graph.parameters
    carried = tuple(
        CarriedOutput(output_position(model, result), inputs.position_of(parameters, key))
        for result, key in (carry.items() if isinstance(carry, Mapping) else carry or ())
    )
    begins = {one.input for one in carried}
    arrays: dict[int, Array] = {}
    counts: dict[int, int] = {}
    parts: list[CallParts] = []
    for position, value in inputs.by_position(parameters, mapping("calls", calls)).items():
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
    """Return the position of the output with this key: its name, Result's name, or position.

    Raises UsageError for an unknown key.
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
            each.append(inputs.converted(parameter, array))
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


# Outline of a model without a run: inputs, outputs, loops and their port maps, operations, missing kernels.
#
# Plain data for `stepper inspect` and for whoever wants to show a model; needs no .bin, but says more with one.


class TensorOutline(Record):
    """An input or output of the model: name, further tensor names, declared type and shape."""

    name: str
    tensor_names: tuple[str, ...]
    type: str
    shape: str


class PortEntry(Record):
    """Entry of a port map. The `role` of an input is sliced, merged, invariant, current iteration, not connected or not
    used. The `role` of an output is last value, concatenated or execution condition. `outer` is the index of the
    layer's port, and `around` are the layers outside that give the input, or read the output.
    """

    direction: Literal["input", "output"]
    role: str
    outer: int | None
    inner: LayerSite
    slicing: Slicing | None
    line: int
    around: tuple[LayerSite, ...] = ()


class BackEdgeOutline(Record):
    """A back edge: its Result, its Parameter, and its line."""

    result: LayerSite
    parameter: LayerSite
    line: int


class WithoutKernel(Record):
    """An operation that has no kernel: its type with its opset, the layer, and where that is, in words."""

    operation: str
    layer: LayerSite
    path: str


class LoopOutline(Record):
    """A TensorIterator, Loop or If, and what controls it.

    `opened_from` is the type of the sequence that the loop is in the file, None for a loop of the file.
    """

    path: str
    type: str
    layer: LayerSite
    opened_from: str | None
    control: Control
    entries: tuple[PortEntry, ...]
    back_edges: tuple[BackEdgeOutline, ...]
    operations: dict[str, int]


class Outline(Record):
    """The whole model."""

    name: str
    version: int
    weights: int | None
    inputs: tuple[TensorOutline, ...]
    outputs: tuple[TensorOutline, ...]
    loops: tuple[LoopOutline, ...]
    operations: dict[str, int]
    without_kernel: tuple[WithoutKernel, ...]
    departures: tuple[Departure, ...]
    variables: tuple[TensorOutline, ...] = ()
    sequences: tuple[LayerSite, ...] = ()
    """The layers that --open-sequences opens as loops."""


def outline(model: Model) -> Outline:
    """Return the outline of a model; every graph of it, outer before inner."""
    loops = [
        _loop(model, path, graph, layer) for path, graph in model.graphs() for layer in graph.layers if layer.bodies
    ]
    return Outline(
        name=model.name,
        version=model.version,
        weights=None if model.weights is None else model.weights.size,
        inputs=tuple(_input(parameter) for parameter in model.graph.parameters),
        outputs=tuple(_outputs(model)),
        loops=tuple(loops),
        operations=_counts([layer for _, graph in model.graphs() for layer in graph.layers]),
        without_kernel=tuple(
            WithoutKernel(
                f"{layer.type}-{layer.definition or layer.version}", layer_site(layer, str(model.path)), path_text(path)
            )
            for path, layer in unsupported_layers(model)
        ),
        departures=tuple(departures(use_of(layer) for _, graph in model.graphs() for layer in graph.layers)),
        variables=tuple(
            TensorOutline(facts.name, (), facts.type or "any", facts.shape)
            for facts in (variable.facts for variable in variables_of(model))
        ),
        sequences=tuple(layer_site(layer, str(model.path)) for layer in sequences_of(model)),
    )


def use_of(layer: Layer) -> Use:
    """Return an operation as a model uses it."""
    ports = (*layer.inputs[:1], *layer.outputs)
    if layer.type in ("Convert", "ConvertLike"):  # known by what they make
        ports = layer.outputs
    types = frozenset(port.element_type.name for port in ports if port.element_type is not None)
    return Use(layer.type, layer.definition, layer.attributes, types)


def _input(parameter: Layer) -> TensorOutline:
    names = tuple(name for name in parameter.outputs[0].names if name != parameter.name)
    return TensorOutline(parameter.name, names, _type(parameter_type(parameter)), str(parameter_shape(parameter)))


def _outputs(model: Model) -> list[TensorOutline]:
    found = []
    for name, result in zip(output_names(model), model.graph.results, strict=True):
        source = model.graph.sources[result.id][0]
        assert source is not None, "the reader has seen to it"
        port = model.graph.by_id[source.layer].outputs[source.output]
        others = tuple(dict.fromkeys(other for other in (*port.names, result.name) if other != name))
        found.append(TensorOutline(name, others, _type(port.element_type), str(PartialShape.of_dims(port.dims))))
    return found


def _type(element_type: ElementType | None) -> str:
    return "any" if element_type is None else element_type.name


def _counts(layers: list[Layer]) -> dict[str, int]:
    return dict(sorted(Counter(layer.type for layer in layers).items()))


def _loop(model: Model, path: tuple[Layer, ...], graph: Graph, layer: Layer) -> LoopOutline:
    file = str(model.path)
    entries = [entry for body in layer.bodies for entry in _entries(graph, layer, body, file)]
    back_edges = tuple(
        BackEdgeOutline(_inner(body, edge.from_layer, file), _inner(body, edge.to_layer, file), edge.line)
        for body in layer.bodies
        for edge in body.back_edges
    )
    inner = [inner for body in layer.bodies for inner in body.graph.layers]
    return LoopOutline(
        path=path_text((*path, layer)),
        type=f"{layer.type}-{layer.definition}",
        layer=layer_site(layer, file),
        opened_from=layer.opened_from,
        control=control(model, graph, layer),
        entries=tuple(entries),
        back_edges=back_edges,
        operations=_counts(inner),
    )


def _entries(graph: Graph, layer: Layer, body: Body, file: str) -> list[PortEntry]:
    side = {"body": "", "then_body": "then: ", "else_body": "else: "}[body.role]
    found = [
        PortEntry(
            "input",
            side + _input_role(layer, entry),
            entry.input,
            _inner(body, entry.parameter, file),
            entry.slicing,
            entry.line,
            _giving(graph, layer, entry.input, file),
        )
        for entry in body.inputs
    ]
    found += [
        PortEntry(
            "output",
            side + output_role(entry),
            entry.output,
            _inner(body, entry.result, file),
            entry.slicing,
            entry.line,
            _reading(graph, layer, entry.output, file),
        )
        for entry in body.outputs
    ]
    return found


def _giving(graph: Graph, layer: Layer, index: int | None, file: str) -> tuple[LayerSite, ...]:
    sources = graph.sources[layer.id]
    source = sources[index] if index is not None and index < len(sources) else None
    return () if source is None else (layer_site(graph.by_id[source.layer], file),)


def _reading(graph: Graph, layer: Layer, index: int | None, file: str) -> tuple[LayerSite, ...]:
    if index is None:
        return ()
    reading = {
        one.id for one, at in graph.readers.get(layer.id, ()) if graph.sources[one.id][at] == Source(layer.id, index)
    }
    return tuple(layer_site(graph.by_id[one], file) for one in sorted(reading))


def _inner(body: Body, identity: int, file: str) -> LayerSite:
    """Return a layer of a body; without name and type where the body has none of that id."""
    layer = body.graph.by_id.get(identity)
    return LayerSite(identity, "", "", file, 0) if layer is None else layer_site(layer, file)


def _input_role(layer: Layer, entry: InputMapping) -> str:
    if not layer.is_loop:
        return "input"
    try:
        roles = roles_of(layer)
    except RoleError as error:
        return f"cannot be: {error}"
    return roles.role_of(entry)
