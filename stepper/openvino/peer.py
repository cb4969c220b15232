"""OpenVINO as the other side of a comparison: the whole model, one operation alone, one body alone.

    peer = OpenVINOPeer(model)                        # the model that is stepped through; openvino is imported here
    peer.run(machine_inputs)                          # the runtime's own run, with its fusions; outputs as in the file
    peer.begin_counting(machine_inputs)()             # {(3,): 12, (3, 7): 40}: by the keys of the loops
    peer.operation(graph, layer)(*inputs)             # one operation: what it makes of the same inputs, nothing else
    peer.body(graph)(*parameters)                     # one iteration of a body (program.graph): Results in file order

`operation` separates an error made in an operation from one that came in with its inputs; `body` separates one made in
an iteration from one that was carried into it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from itertools import chain, islice
from typing import Any, NamedTuple, Protocol

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array
from stepper.errors import ExecutionError, KernelError
from stepper.ir.constants import constant_shape, constant_type, constant_value
from stepper.ir.model import Graph, Layer, LoopKey, Model, Source
from stepper.openvino import native_text
from stepper.openvino.layers import (
    LayerInOpenVINO,
    LayerInput,
    edge_text,
    fatal,
    function_of,
    input_text,
    must_be_constant,
    net_text,
    operation_text,
    result_text,
)
from stepper.openvino.partner import remote_layer
from stepper.openvino.program import shared_worker
from stepper.openvino.runtime import (
    AS_IT_IS,
    DefineModel,
    FunctionKind,
    Judgement,
    NativeText,
    Runtime,
    complaint,
    ensure_installed,
    weights_of,
)
from stepper.operation_types import STATEFUL
from stepper.processes.process_messages import ENDED, WorkerLimit
from stepper.processes.worker import RemoteFunction
from stepper.tensors.tolerances import Tolerance
from stepper.wording import excerpt

# Operations of one graph in one model, each on its own: nothing flows from one to another.
#
# Each gets its inputs from Parameters, and all that it gives are Results. What OpenVINO makes of each alone is so known
# after one compilation, not after hundreds; nothing can be fused, and no error is carried from one to the next.

_OPEN = "?"
_DEEPEST = 16
_NAMED = re.compile(r"\blayer([0-9]+)\b")


Outputs = Callable[[], Sequence[Array]]
"""Waits for what was begun."""


class BegunFunction(Protocol):
    """A function that may be begun, so that it computes beside others where it is in another process."""

    def __call__(self, *inputs: Any) -> Sequence[Array]:
        """Return its outputs."""

    def begin(self, *inputs: Any) -> Outputs:
        """Begin to compute, and return what waits for the outputs."""


class JointOperations(NamedTuple):
    """A function from the values of `sources` to `outputs`; what `begin` returns waits for them.

    It takes our values of `compared`, too, outputs that are no source: None is given for what agrees with ours.
    """

    layers: tuple[Layer, ...]
    sources: tuple[Source, ...]
    outputs: tuple[Source, ...]
    begin: Callable[..., Callable[[], Sequence[Array | None]]]
    compared: tuple[Source, ...] = ()


_MOST_JOINED = 32
"""Operations of a model that computes each alone: what OpenVINO takes for one grows with the square of their number."""


def _side_by_side(parts: Sequence[JointOperations]) -> JointOperations:
    """Return several as one."""
    sources = tuple(dict.fromkeys(source for part in parts for source in part.sources))
    place = {source: k for k, source in enumerate(sources)}

    def begin(*arguments: Any) -> Callable[[], Sequence[Array | None]]:
        ours = iter(arguments[len(sources) :])
        begun = [
            part.begin(*(arguments[place[source]] for source in part.sources), *islice(ours, len(part.compared)))
            for part in parts
        ]
        return lambda: [value for wait in begun for value in wait()]

    layers, outputs, compared = (
        tuple(chain.from_iterable(one))
        for one in zip(*((part.layers, part.outputs, part.compared) for part in parts), strict=True)
    )
    return JointOperations(layers, sources, outputs, begin, compared)


class OperationRefused(ExecutionError):
    """OpenVINO refuses one of several operations; `layer` is which, None where it does not say."""

    def __init__(self, message: str, layer: Layer | None) -> None:
        super().__init__(message)
        self.layer = layer


class SeparateText:
    """The text of operations of a graph as one model.

    Types are those of `values`, which has our value of each source; shapes too, but for dimensions that the file leaves
    open. What is computed from Constants and ranks alone is so there, too: of a reduction over all axes, say, OpenVINO
    must know how many there are. Operations that cannot join are left out, and outputs that nobody reads: with the
    indices of a MaxPool, say, OpenVINO takes a kernel that is a hundred times as slow, and not the one that it takes in
    the model.
    """

    def __init__(self, model: Model, graph: Graph, layers: Sequence[Layer], values: Mapping[Source, Any]) -> None:
        self._model, self._graph, self._values = model, graph, values
        self._constant: dict[int, bool] = {}
        self._ids: dict[Source, tuple[int, int]] = {}
        self._texts: list[str] = []
        self._edges: list[str] = []
        self.layers = [layer for layer in layers if self._can_join(layer)]
        self.sources: list[Source] = []
        self.outputs = [
            source
            for layer in self.layers
            for source in (Source(layer.id, output) for output in range(len(layer.outputs)))
            if source in graph.read_outputs
        ]
        self._identities: dict[int, Layer] = {}
        self.native = NativeText(self._text(), weights_of(model))

    def named_in(self, message: str) -> Layer | None:
        """Return the layer that a message of OpenVINO is about, by the name that it has in the text."""
        found = (self._identities.get(int(match[1])) for match in _NAMED.finditer(message))
        return next((layer for layer in found if layer is not None), None)

    def _can_join(self, layer: Layer) -> bool:
        """Return True but for a layer that is refused, or asked for otherwise: with numbers in the place of inputs."""
        inputs: list[Any] = []
        for index, source in enumerate(self._graph.sources[layer.id]):
            value = None if source is None else self._values[source]
            if source is None or value is None or value.dtype == STRING_DTYPE:
                return False
            if must_be_constant(layer, index) and not self._is_constant(source.layer):
                return False
            inputs.append(value)
        return bool(inputs) and not layer.bodies and not fatal(layer, inputs)

    def _is_constant(self, identity: int, depth: int = 0) -> bool:
        """Return True if a layer gives what follows from Constants of the file and from ranks, and nothing else."""
        if identity not in self._constant:
            layer, sources = self._graph.by_id[identity], self._graph.sources[identity]
            if layer.type == "Constant":
                found = "offset" in layer.attributes and self._model.weights is not None
            elif self._is_rank(layer):
                found = True
            elif depth == _DEEPEST or not sources or layer.bodies or layer.type in STATEFUL:
                found = False
            else:
                found = all(one is not None and self._is_constant(one.layer, depth + 1) for one in sources)
            self._constant[identity] = found
        return self._constant[identity]

    def _is_rank(self, layer: Layer) -> bool:
        """Return True for the shape of a shape that we have."""
        source = self._graph.sources[layer.id][0] if layer.type == "ShapeOf" else None
        is_of_shape = source is not None and self._graph.by_id[source.layer].type == "ShapeOf"
        return source is not None and is_of_shape and (value := self._values[source]) is not None and value.size > 0

    def _ranked(self, identity: int) -> Iterator[Source]:
        """Yield the shapes on whose extents a constant layer rests."""
        layer, sources = self._graph.by_id[identity], self._graph.sources[identity]
        for source in sources:
            assert source is not None, "_is_constant has seen to it"
            if self._is_rank(layer):
                yield source
            else:
                yield from self._ranked(source.layer)

    def _text(self) -> str:
        for source, dims in self._parameters().items():
            self._ids[source] = len(self._texts), 0
            self._texts.append(input_text(len(self._texts), LayerInput(_type(self._values[source]), dims)))
            self.sources.append(source)
        written: dict[int, tuple[int, int]] = {}
        for layer in self.layers:
            identity = self._operation(layer)
            self._identities[identity] = layer
            written[layer.id] = identity, len(layer.inputs)
        results = [(written[layer][0], written[layer][1] + output) for layer, output in self.outputs]
        for identity, (operation, port) in enumerate(results, len(self._texts)):
            self._texts.append(result_text(identity))
            self._edges.append(edge_text(operation, port, identity, 0))
        return net_text(self._texts, self._edges)

    def _parameters(self) -> dict[Source, list[str]]:
        """Return the dimensions of each input that is not constant, open where an operation has them so.

        Those without extent are, too: what begins empty grows, and some kernels divide by an extent that they know.
        """
        found: dict[Source, list[str]] = {}
        for layer in self.layers:
            for source, port in zip(self._graph.sources[layer.id], layer.inputs, strict=True):
                assert source is not None, "_can_join has seen to it"
                if self._is_constant(source.layer):
                    for shape in self._ranked(source.layer):
                        found.setdefault(shape, [str(dim) for dim in self._values[shape].shape])
                    continue
                dims = found.get(source) or [str(dim) if dim else _OPEN for dim in self._values[source].shape]
                if len(port.dims) == len(dims):
                    dims = [_OPEN if size == -1 else dim for size, dim in zip(port.dims, dims, strict=True)]
                found[source] = dims
        return found

    def _operation(self, layer: Layer) -> int:
        """Write a layer, and before it the constant ones that lead to it; its id."""
        sources = [source for source in self._graph.sources[layer.id] if source is not None]
        ends = [self._ids.get(source) or self._written(source) for source in sources]
        identity = len(self._texts)
        self._texts.append(operation_text(identity, layer, [self._type_of(source) for source in sources]))
        self._edges += [edge_text(*end, identity, index) for index, end in enumerate(ends)]
        return identity

    def _written(self, source: Source) -> tuple[int, int]:
        """Write a constant layer; the id and port where a value of it comes out."""
        layer = self._graph.by_id[source.layer]
        if layer.type == "Constant":
            element_type, shape = constant_type(layer), constant_shape(layer)
            assert element_type is not None and shape is not None, "the reader has seen to it"
            offset, size = int(layer.attributes["offset"]), int(layer.attributes["size"])
            end = len(self._texts), 0
            entry = LayerInput(element_type.name, [str(dim) for dim in shape], offset, size)
            self._texts.append(input_text(end[0], entry))
        else:
            end = self._operation(layer), len(layer.inputs) + source.output
        self._ids[source] = end
        return end

    def _type_of(self, source: Source) -> str:
        if source in self._values:
            return _type(self._values[source])
        layer = self._graph.by_id[source.layer]
        found = constant_type(layer) if layer.type == "Constant" else layer.outputs[source.output].element_type
        return "dynamic" if found is None else found.name


def _type(value: Any) -> str:
    return element_types.of(value).name


Function = Callable[..., Sequence[Array]]

_LEAST_KEPT = 2**14
"""Characters of the IR of what is kept: some 40 operations."""

_MOST_KEPT = 2**26
"""Bytes of weights, which are kept with it."""

_MOST_AT_ONCE = 2**28
"""Bytes of a model's weights up to which memory holds a second compilation beside the first."""


class OpenVINOPeer:
    """A model in OpenVINO. Compilations are kept: of the model, of each body, of each operation and signature.

    OpenVINO runs in a process of its own, but with a runtime whose extensions are Python classes; where it crashes
    there, functions raise WorkerEnded, and WorkerLimit where a limit of time or memory is met. `notes` then has a
    sentence for each. UsageError where OpenVINO is not installed, has no such device or that no such precision.
    """

    def __init__(
        self,
        model: Model,
        runtime: Runtime | None = None,
        states: Mapping[str, Array] | None = None,
        *,
        keeps: bool = False,
    ) -> None:
        """`states` are the variables of an earlier run with which each run of the whole model begins.

        `keeps`: what is compiled is kept for later runs, but for that by which a difference is made sure: the model in
        `run_anew`, and one operation by itself.
        """
        ensure_installed("comparing with OpenVINO")
        self.model, self.runtime = model, runtime or Runtime()
        self._whole_text = native_text.whole(model) if keeps else None  # OpenVINO may still be loading
        self.runtime.check(waits=False)
        self.states, self._keeps = dict(states or {}), keeps
        self.notes: list[str] = []
        self._whole: dict[float | None, BegunFunction] = {}
        self._bodies: dict[int, BegunFunction] = {}
        self._operations: dict[tuple[int, int], Function] = {}

    def give_up(self) -> None:
        """End the other process with what it is computing; the next request starts another."""
        if self.runtime.is_remote:
            shared_worker().close()

    def run(self, inputs: Sequence[Array], *, seconds: float | None = None) -> Sequence[Array]:
        """Return the outputs of the whole model on arrays in the order of its Parameters.

        `seconds` is how long a run may take, else that is the runtime's own limit. ExecutionError where OpenVINO
        refuses or fails, WorkerLimit where it does not end in time.
        """
        return self.begin(inputs, seconds=seconds)()

    def begin(self, inputs: Sequence[Array], *, seconds: float | None = None) -> Outputs:
        """Begin such a run, and return what waits for its outputs."""
        if seconds not in self._whole:
            text = self._whole_text or native_text.whole(self.model)
            self._whole = {seconds: self._whole_model(text, seconds, self._kept(text, self.runtime))}
        return self._whole[seconds].begin(*inputs)

    def run_anew(self, inputs: Sequence[Array], *, seconds: float | None = None) -> Sequence[Array] | None:
        """Run the model compiled anew; None if `run` already compiles it so. Raises as `run` does."""
        text = native_text.whole(self.model)
        if self._kept(text, self.runtime) == self.runtime:
            return None
        return self._whole_model(text, seconds, self.runtime)(*inputs)

    def _whole_model(self, text: NativeText, seconds: float | None, runtime: Runtime) -> BegunFunction:
        title = f"the model {excerpt(self.model.path.name)}"
        return self._text(text, title, "the model", seconds, runtime, kind=_as_called(self.model))

    def begin_counting(
        self, inputs: Sequence[Array], *, seconds: float | None = None
    ) -> Callable[[], Mapping[LoopKey, int]]:
        """Begin to count iterations; return what waits for how many each loop ran in all its executions together.

        There are none where OpenVINO refuses that. They are counted in a run of their own, for counting changes what
        OpenVINO may fuse. (What it says of a loop before it is compiled is no count: passes may drop what a loop was to
        be sliced by.)
        """
        if (calls := self.model.calls) is not None:
            loops = [layer for layer in self.model.graph.layers if layer.is_over_calls]
            return lambda: {(loop.id,): calls.count for loop in loops}
        if not any(layer.is_loop for _path, graph in self.model.graphs() for layer in graph.layers):
            return dict
        text, paths = native_text.counted(self.model)
        if not paths:
            return dict
        numbers = [np.array([number], np.int32) for number in (0, 1)]
        what = "the model with its iterations counted"
        runtime = self.runtime.for_size(_size_of(text) + sum(value.nbytes for value in inputs))
        outputs = self._text(text, what, what, seconds, runtime).begin(*inputs, *numbers)

        def counted() -> Mapping[LoopKey, int]:
            try:
                found = outputs()[-len(paths) :]
            except (ExecutionError, WorkerLimit):
                return {}
            return dict(zip(paths, (int(value[0]) if value.size else 0 for value in found), strict=True))

        return counted

    def begin_again(
        self, inputs: Sequence[Array], text: NativeText | None = None, properties: Mapping[str, str] | None = None
    ) -> Outputs:
        """Begin a run of the whole model compiled otherwise: from another text, or with further properties.

        Return what waits for its outputs. A large one begins only then, for each is a model of its own in memory.
        ExecutionError where OpenVINO refuses or fails.
        """
        settings = "".join(f", compiled with {name}={value}" for name, value in (properties or {}).items())
        subject = f"the model {excerpt(self.model.path.name)}{settings or ', changed' * (text is not None)}"
        runtime = self.runtime.with_properties(properties or {})
        if text is not None and self.model.calls is not None:
            raise ExecutionError(f"{subject}: a changed model is not called many times")
        whole = text or native_text.whole(self.model)
        function = self._text(whole, subject, "the model", None, runtime, kind=_as_called(self.model))
        return function.begin(*inputs) if _size_of(whole) <= _MOST_AT_ONCE else partial(function, *inputs)

    def operation(self, graph: Graph, layer: Layer) -> Function:
        """Return one operation of a graph, as a function of all its inputs; Constants settled by the model.

        The function raises KernelError where OpenVINO refuses it. Loops, Ifs and variables are not to be asked for.
        """
        key = (id(graph), layer.id)
        if key not in self._operations:
            sources = [None if source is None else graph.by_id[source.layer] for source in graph.sources[layer.id]]
            constants = [
                constant_value(self.model, source) if source is not None and source.type == "Constant" else None
                for source in sources
            ]
            self._operations[key] = self._layer(layer, constants)
        return self._operations[key]

    def body(self, graph: Graph) -> BegunFunction:
        """Return one of the model's bodies, as a function of its Parameters' values, in file order; gives its Results.

        UsageError for a body that the file does not have; the function raises ExecutionError where OpenVINO refuses.
        """
        if id(graph) not in self._bodies:
            text = native_text.body(self.model, graph)
            self._bodies[id(graph)] = self._text(text, self._body_title(graph), "the body", None, states={})
        return self._bodies[id(graph)]

    def _body_title(self, graph: Graph) -> str:
        owner = next((path[-1] for path, found in self.model.graphs() if found is graph and path), None)
        place = "" if owner is None else f" of {owner.type} '{excerpt(owner.name)}' (layer {owner.id})"
        return f"the body{place} alone"

    def iterated_body(self, graph: Graph, stacked: Sequence[bool]) -> BegunFunction:
        """Return one of the model's bodies as `body` does, for many iterations at once.

        Those Parameters' values are stacked on a new first axis that `stacked` says; the Results all are. UsageError
        for a body that the file does not have; the function raises what OpenVINO raises, and of that nothing is noted.
        """
        text = native_text.body(self.model, graph)
        runtime = self._kept(text, self.runtime)
        return self._function(text, self._body_title(graph), None, runtime, {}, FunctionKind(tuple(stacked)))

    def together(
        self,
        graph: Graph,
        layers: Sequence[Layer],
        values: Mapping[Source, Any],
        stacked: Container[Source] | None = None,
        judge: Mapping[Source, Tolerance] | None = None,
    ) -> JointOperations:
        """Return operations of a graph, each alone on its inputs, as one function; those that can be computed so.

        `values` are those of their inputs, and of shapes whose rank these follow from, by which types and shapes are
        chosen. `stacked`: the function takes these of many iterations at once, stacked on a new first axis, and its
        outputs are stacked so. `judge`: outputs are compared with ours, within these tolerances. Waiting for them
        raises OperationRefused where OpenVINO refuses one of them, and ends as others do; of that, nothing is noted.
        """
        if len(layers) > _MOST_JOINED:
            parts = [layers[begin : begin + _MOST_JOINED] for begin in range(0, len(layers), _MOST_JOINED)]
            return _side_by_side([self.together(graph, part, values, stacked, judge) for part in parts])
        text = SeparateText(self.model, graph, layers, values)
        title = f"{len(text.layers)} operations of the model {excerpt(self.model.path.name)}"
        many = () if stacked is None else tuple(source in stacked for source in text.sources)
        runtime = self.runtime.for_size(sum(value.nbytes for value in values.values() if value is not None))
        if stacked is None:  # sets that are computed one after the other get one thread
            runtime = runtime.beside_another()
        runtime = self._kept(text.native, runtime)
        judged, compared = _judgements(text, judge)
        kind = FunctionKind(many, judged=judged, taken=len(text.sources))
        function = self._function(text.native, title, None, runtime, {}, kind)

        @contextmanager
        def refused() -> Iterator[None]:
            try:
                yield
            except (RuntimeError, KernelError) as error:
                raise OperationRefused(f"OpenVINO refuses {title}", text.named_in(str(error))) from None

        begin = _Told(function, refused).begin

        def begin_judged(*arguments: Any) -> Callable[[], Sequence[Array | None]]:
            begun = begin(*arguments)

            def outputs() -> Sequence[Array | None]:
                agrees, *others = begun()
                given = iter(others)
                return [None if is_fine else next(given) for is_fine in agrees]

            return outputs

        layers, sources, outputs = tuple(text.layers), tuple(text.sources), tuple(text.outputs)
        return JointOperations(layers, sources, outputs, begin_judged if judged else begin, compared)

    def _kept(self, text: NativeText, runtime: Runtime) -> Runtime:
        """Return the runtime for a text: it keeps what takes long to compile and is not large."""
        is_worth_it = self._keeps and len(text.text) >= _LEAST_KEPT and _size_of(text) <= _MOST_KEPT
        return runtime.keeping() if is_worth_it else runtime

    def _layer(self, layer: Layer, constants: Sequence[Array | None]) -> Function:
        if not self.runtime.is_remote:
            return LayerInOpenVINO(self.runtime, layer, constants, is_last_resort=False)
        remote = remote_layer(self.runtime, layer, constants, is_last_resort=False)

        def compute(*inputs: Any) -> tuple[Array, ...]:
            given = [array for array, constant in zip(inputs, constants, strict=True) if constant is None]
            with self._noted():
                return remote(*given)

        return compute

    def _text(
        self,
        text: NativeText,
        subject: str,
        what: str,
        seconds: float | None,
        runtime: Runtime | None = None,
        states: Mapping[str, Array] | None = None,
        kind: FunctionKind = AS_IT_IS,
    ) -> BegunFunction:
        """Return a text as a function in the other process. `subject` is for what ends that, `what` for a refusal."""
        states = self.states if states is None else states

        @contextmanager
        def told() -> Iterator[None]:
            try:
                with self._noted():
                    yield
            except (RuntimeError, KernelError) as error:
                raise ExecutionError(f"OpenVINO refuses {what}: {complaint(error)}") from None

        return _Told(self._function(text, subject, seconds, runtime or self.runtime, states, kind), told)

    def _function(
        self,
        text: NativeText,
        subject: str,
        seconds: float | None,
        runtime: Runtime,
        states: Mapping[str, Array],
        kind: FunctionKind = AS_IT_IS,
    ) -> BegunFunction:
        """Return a text as a function, which raises what OpenVINO raises."""
        if not runtime.is_remote:
            return _InThisProcess(function_of(kind, runtime, text, states))
        limits = replace(runtime.limits, running=seconds)
        return RemoteFunction(shared_worker(), partial(_definition, runtime, text, states, kind), subject, limits)

    @contextmanager
    def _noted(self) -> Iterator[None]:
        try:
            yield
        except ENDED as error:
            if str(error) not in self.notes:
                self.notes.append(str(error))
            raise


class _InThisProcess:
    """A function of this process; what is begun is computed when its outputs are asked for."""

    def __init__(self, function: Function) -> None:
        self._function = function

    def __call__(self, *inputs: Any) -> Sequence[Array]:
        return self._function(*inputs)

    def begin(self, *inputs: Any) -> Outputs:
        return partial(self._function, *inputs)


class _Told:
    """A function, and in which words it tells of what goes wrong."""

    def __init__(self, function: BegunFunction, told: Callable[[], AbstractContextManager[None]]) -> None:
        self._function, self._told = function, told

    def __call__(self, *inputs: Any) -> Sequence[Array]:
        with self._told():
            return self._function(*inputs)

    def begin(self, *inputs: Any) -> Outputs:
        begun = self._function.begin(*inputs)

        def outputs() -> Sequence[Array]:
            with self._told():
                return begun()

        return outputs


def _judgements(
    text: SeparateText, judge: Mapping[Source, Tolerance] | None
) -> tuple[tuple[Judgement, ...], tuple[Source, ...]]:
    """Return how the outputs are judged, and which of them must be given for that beside the sources."""
    if judge is None or any(output not in judge for output in text.outputs):
        return (), ()
    places = {source: place for place, source in enumerate(text.sources)}
    compared = tuple(output for output in text.outputs if output not in places)
    places.update((output, place) for place, output in enumerate(compared, len(places)))
    return tuple(Judgement(places[output], judge[output]) for output in text.outputs), compared


def _definition(
    runtime: Runtime, text: NativeText, states: Mapping[str, Array], kind: FunctionKind, key: int
) -> tuple[DefineModel, tuple[Array, ...]]:
    definition = DefineModel(key, runtime, text.text, text.weights_path, tuple(states), kind)
    return definition, tuple(states.values())


def _size_of(text: NativeText) -> int:
    return 0 if text.weights is None else text.weights.nbytes


def _as_called(model: Model) -> FunctionKind:
    """Return how the whole model is a function: many calls of it where it is a loop over them."""
    if model.calls is None:
        return AS_IT_IS
    graph = model.graph
    loop = next(layer for layer in graph.layers if layer.is_over_calls)
    of_all = {Source(loop.id, one.output) for one in loop.bodies[0].outputs if one.output is not None and one.slicing}
    joined = [place for place, result in enumerate(graph.results) if graph.sources[result.id][0] in of_all]
    return FunctionKind(calls=model.calls, joined=tuple(joined))
