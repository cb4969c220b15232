"""Compile a layer as its own model: Parameters, the layer with its attributes, Results.

Each layer and signature (element types and shapes of its inputs) has one compilation, kept as long as the backend.
Dimensions that the file leaves open stay open. Where OpenVINO knows a shape, it chooses other kernels, which differ in
some arithmetic. If the shapes of a layer keep changing anyway, the layer is compiled once more with all dimensions
open.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from stepper import element_types
from stepper.element_types import STRING_DTYPE, Array, DType, Shape
from stepper.engine.program import no_kernel
from stepper.errors import KernelError, UnsupportedOperation
from stepper.ir import weights
from stepper.ir.model import Calls, Layer
from stepper.openvino.runtime import FunctionKind, Judgement, NativeText, Runtime, complaint, feed, to_array, to_tensor
from stepper.processes.process_messages import WorkerEnded
from stepper.tensors.difference import is_within

if TYPE_CHECKING:
    import openvino


_MOST_SHAPES = 4
"""Compilations with fixed shapes for one layer, before one with open shapes is tried."""

_MOST_REQUESTS = 64
_LEAST_LENT = 2**20
"""Bytes of inputs that are worth not to be copied."""

_MOST_NUMBERS = 1024
"""Elements of an integer input that is made a Constant where OpenVINO demands one."""

_ESCAPED = str.maketrans(
    {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "\n": "&#10;", "\r": "&#13;", "\t": "&#9;"}
)

Signature = tuple[Any, ...]


class LayerInOpenVINO:
    """Compute a layer of a model with OpenVINO: a function from inputs to outputs in port order.

    `constants` are the inputs that never change. OpenVINO gets them as Constants, from which it may choose or pack.
    Raises KernelError if OpenVINO refuses the layer on these inputs. Raises UnsupportedOperation if the layer has no
    kernel of ours (`is_last_resort`).

    `trial` is the layer in another process. It gets the inputs before each compilation here: if OpenVINO crashes, hangs
    or runs out of memory, it does so there.
    """

    def __init__(
        self,
        runtime: Runtime,
        layer: Layer,
        constants: Sequence[Array | None],
        *,
        is_last_resort: bool,
        trial: Callable[..., object] | None = None,
    ) -> None:
        self._trial = trial
        self._runtime, self._layer, self._constants = runtime, layer, tuple(constants)
        self._is_last_resort = is_last_resort
        changing = [port for port, constant in zip(layer.inputs, constants, strict=True) if constant is None]
        self._declared = [port.dims for port in changing] if any(-1 in port.dims for port in changing) else None
        self._tensors: dict[int, openvino.Tensor] = {}
        self._requests: dict[Signature, PreparedRequest] = {}
        self._open: dict[Signature, PreparedRequest | None] = {}

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """Return the layer's outputs for these inputs (the constant ones among them, which are not looked at)."""
        given = [array for array, constant in zip(inputs, self._constants, strict=True) if constant is None]
        signature = tuple((array.dtype, shape) for array, shape in zip(given, self._shapes(given), strict=True))
        request = self._requests.get(signature)
        if request is None:
            if reason := fatal(self._layer, inputs):
                raise self._refused(reason)
            request = self._request(signature, given, must_be_open=needs_open_shapes(self._layer, inputs))
        try:
            return request.infer(given)
        except RuntimeError as error:
            raise KernelError(f"OpenVINO fails at it: {complaint(error)}") from None

    def _request(self, signature: Signature, given: list[Any], *, must_be_open: bool) -> PreparedRequest:
        """Return a request for a signature that has none yet."""
        settled = self._demanded(given)
        if any(number is not None for number in settled):
            return self._with_numbers_settled(given, settled)
        if must_be_open or len(self._requests) >= _MOST_SHAPES:
            if (served := self._with_open_shapes(given)) is not None:
                return served
            if must_be_open:
                raise self._refused("it has no elements to choose from, or no indices")
        try:
            return self._keep(signature, self._compiled(given, self._shapes(given)))
        except RuntimeError as error:
            if self._declared is not None:
                self._declared = None
                fixed = tuple((array.dtype, array.shape) for array in given)
                return self._requests.get(fixed) or self._request(fixed, given, must_be_open=False)
            first = 1 if self._constants[0] is None else 0  # the first input is what is computed, others say how
            small = [array if array.size <= _MOST_NUMBERS else None for array in given]
            settled = [None] * first + small[first:]
            try:
                return self._with_numbers_settled(given, settled)
            except KernelError:
                raise self._refused(complaint(error)) from None

    def _shapes(self, given: list[Any]) -> list[Shape]:
        """Return the shapes for which to compile: those of the arrays, but -1 if the file leaves a dimension open."""
        if self._declared is None:
            return [array.shape for array in given]
        return [
            tuple(-1 if open == -1 else size for open, size in zip(dims, array.shape, strict=True))
            if len(dims) == array.ndim
            else array.shape
            for dims, array in zip(self._declared, given, strict=True)
        ]

    def _demanded(self, given: list[Any]) -> list[Any]:
        """Return the inputs that the plugin reads as if they were Constants."""
        indices = [index for index, constant in enumerate(self._constants) if constant is None]
        return [
            array if must_be_constant(self._layer, index) else None for index, array in zip(indices, given, strict=True)
        ]

    def _keep(self, key: Signature, request: PreparedRequest) -> PreparedRequest:
        if len(self._requests) >= _MOST_REQUESTS:
            self._requests.pop(next(iter(self._requests)))
        self._requests[key] = request
        return request

    def _with_open_shapes(self, given: list[Any]) -> PreparedRequest | None:
        ranks = tuple((array.dtype, array.ndim) for array in given)
        if ranks not in self._open:
            try:
                self._open[ranks] = self._compiled(given, [(-1,) * array.ndim for array in given])
            except RuntimeError:
                self._open[ranks] = None
        return self._open[ranks]

    def _with_numbers_settled(self, given: list[Any], settled: list[Any]) -> PreparedRequest:
        """Return a request made for just these numbers, which are Constants in it. KernelError if it is refused."""
        key = tuple(
            (array.dtype, array.shape, None if number is None else np.asarray(number).tobytes())
            for array, number in zip(given, settled, strict=True)
        )
        if (found := self._requests.get(key)) is not None:
            return found
        try:
            return self._keep(key, self._compiled(given, [array.shape for array in given], settled))
        except RuntimeError as error:
            raise self._refused(complaint(error)) from None

    def _compiled(
        self, given: list[Any], shapes: Sequence[Shape], settled: Sequence[Array | None] | None = None
    ) -> PreparedRequest:
        if self._trial is not None:
            try:
                self._trial(*given)
            except WorkerEnded as error:
                raise self._refused(str(error), says="") from None
        model = self._model(given, shapes, settled)
        return PreparedRequest(self._runtime, model, [number is not None for number in settled or ()])

    def _refused(self, reason: str, says: str = "OpenVINO refuses it: ") -> Exception:
        if self._is_last_resort:
            return UnsupportedOperation(f"{no_kernel(self._layer)}, and {says}{reason}")
        return KernelError(f"{says}{reason} (to compute it with numpy: --engine-for 'NAME=numpy')")

    def _model(
        self, given: list[Any], shapes: Sequence[Shape], settled: Sequence[Array | None] | None = None
    ) -> openvino.Model:
        """Return the layer as a model for these inputs, for these shapes (-1: open); `settled` ones are Constants."""
        changing = iter(zip(given, shapes, settled or [None] * len(given), strict=True))
        inputs, constants = [], []
        for constant in self._constants:
            array, shape, number = (constant, constant.shape, constant) if constant is not None else next(changing)
            constants.append(number)
            dims = ["?" if dim < 0 and number is None else str(dim) for dim in shape]
            inputs.append(LayerInput(element_types.of(array).name, dims))
        blob = b""
        for index, number in enumerate(constants):
            if number is not None and number.size <= _MOST_NUMBERS and number.dtype != STRING_DTYPE:
                content = weights.content(np.asarray(number))
                inputs[index] = inputs[index]._replace(offset=len(blob), size=len(content))
                blob, constants[index] = blob + content, None
        text = layer_text(self._layer, inputs)
        model = self._runtime.read(text, np.frombuffer(blob, np.uint8), is_kept=False)
        indices = [index for index, entry in enumerate(inputs) if entry.offset is None]
        _settle(model, [None if constants[k] is None else self._constant_tensor(k, constants[k]) for k in indices])
        return model

    def _constant_tensor(self, index: int, value: Any) -> openvino.Tensor:
        """Return the tensor of a large constant, which compilations share, or of one settled for them."""
        if self._constants[index] is None:
            return to_tensor(value)
        if index not in self._tensors:
            self._tensors[index] = to_tensor(value)
        return self._tensors[index]


class LayerInput(NamedTuple):
    """An input of a layer: element type, dimensions (`?`: open), and where its bytes are if it is a small Constant."""

    type: str
    dims: Sequence[str]
    offset: int | None = None
    size: int = 0


class PreparedRequest:
    """A compiled model with its inputs' tensors, which are written anew for each call.

    Inputs are of the types of its Parameters; `skipped` are inputs that it has as Constants.
    """

    def __init__(self, runtime: Runtime, model: openvino.Model, skipped: Sequence[bool] = ()) -> None:
        self._request = runtime.request(model)
        self._skipped = skipped
        self._lock = threading.Lock()  # the twins of a machine share it, and may run in several threads
        self._kept: tuple[list[openvino.Tensor], ...] = ([], [])  # of this call and the one before
        self._inputs = None if any(port.get_partial_shape().is_dynamic for port in model.inputs) else self._views()
        self._outputs = [_wide_dtype(port.get_element_type()) for port in self._request.model_outputs]
        self._lent: list[openvino.Tensor] = []
        """Tensors of the first call that are memory of its arguments: kept, for an output may share it."""
        self._has_lent = False

    def _views(self) -> list[Array] | None:
        """Return the memory of the inputs as arrays; None where some of it is none that numpy knows."""
        tensors = list(self._request.input_tensors)
        dtypes = [_wide_dtype(tensor.element_type) for tensor in tensors]
        known = [dtype for dtype in dtypes if dtype is not None]
        if len(known) < len(tensors) or not all(tensor.size for tensor in tensors):
            return None
        return [tensor.data.view(dtype) for tensor, dtype in zip(tensors, known, strict=True)]

    def variables(self) -> Sequence[openvino.VariableState]:
        """Return the variables of the model."""
        found: Sequence[openvino.VariableState] = self._request.query_state()
        return found

    def forget(self) -> None:
        """Let all variables begin anew."""
        self._request.reset_state()

    def infer(self, inputs: Sequence[Any]) -> tuple[Array, ...]:
        """Return the outputs. RuntimeError with OpenVINO's words."""
        with self._lock:
            return tuple([np.array(view) for view in self._computed(inputs)])

    def views(self, inputs: Sequence[Any], *, lends: bool = False) -> Sequence[Array]:
        """Return the same, good until the next call, which the caller sees to. RuntimeError with OpenVINO's words.

        `lends`: nobody else has the inputs. Those of the first call are not copied then, for most requests have no
        other, and to write into memory that is new takes longer than to compute.
        """
        with self._lock:
            if lends and not self._lent and not self._skipped and _can_be_lent(inputs):
                import openvino

                self._lent = [openvino.Tensor(array, shared_memory=True) for array in inputs]
                for index, tensor in enumerate(self._lent):
                    self._request.set_input_tensor(index, tensor)
                self._has_lent = True
                return self._inferred()
            return self._computed(inputs)

    def _take_back(self) -> None:
        """Give the request tensors of its own in the place of those that were lent."""
        import openvino

        for index, lent in enumerate(self._lent):
            self._request.set_input_tensor(index, openvino.Tensor(lent.element_type, lent.shape))
        if self._inputs is not None:
            self._inputs = self._views()
        self._has_lent = False

    def _computed(self, inputs: Sequence[Any]) -> list[Array]:
        if self._has_lent:
            self._take_back()
        if self._skipped:
            inputs = [array for array, skipped in zip(inputs, self._skipped, strict=True) if not skipped]
        request = self._request
        if self._inputs is None:
            self._kept = (self._kept[-1], feed(request, inputs))
        else:
            for view, array in zip(self._inputs, inputs, strict=True):
                view[...] = array
        return self._inferred()

    def _inferred(self) -> list[Array]:
        self._request.start_async()
        self._request.wait()
        return [self._output(index, dtype) for index, dtype in enumerate(self._outputs)]

    def _output(self, index: int, dtype: DType | None) -> Array:
        tensor = self._request.get_output_tensor(index)
        return to_array(tensor) if dtype is None or not tensor.size else tensor.data.view(dtype)


def _can_be_lent(inputs: Sequence[Any]) -> bool:
    """Return True for large arrays whose memory OpenVINO can take as it lies there."""
    return sum(array.nbytes for array in inputs) >= _LEAST_LENT and all(
        array.dtype.kind in "biuf" and array.size > 0 and array.flags.c_contiguous and array.flags.aligned
        for array in inputs
    )


def _wide_dtype(native: openvino.Type) -> DType | None:
    """Return the dtype of a type whose tensors lie in memory as numpy's do; None for strings and packed ones."""
    element_type = element_types.by_name(native.get_type_name())
    return None if element_type is None or element_type.bits < 8 else element_type.dtype


def layer_text(layer: Layer, inputs: Sequence[LayerInput]) -> str:
    """Return the IR of a model of one layer with Parameters, or Constants, for its inputs."""
    layers = [input_text(index, entry) for index, entry in enumerate(inputs)]
    edges = [edge_text(index, 0, len(inputs), index) for index in range(len(inputs))]
    layers.append(operation_text(len(inputs), layer, [entry.type for entry in inputs]))
    for index in range(len(layer.outputs)):
        layers.append(result_text(len(inputs) + 1 + index))
        edges.append(edge_text(len(inputs), len(inputs) + index, len(inputs) + 1 + index, 0))
    return net_text(layers, edges)


def input_text(identity: int, entry: LayerInput) -> str:
    """Return a Parameter, or a Constant where the bytes of the input are known."""
    data = f'element_type="{entry.type}" shape="{",".join(entry.dims)}"'
    if entry.offset is not None:
        data += f' offset="{entry.offset}" size="{entry.size}"'
    kind = "Parameter" if entry.offset is None else "Const"
    parts = f'<data {data}/><output><port id="0" precision="{entry.type}"/></output>'
    return f'<layer id="{identity}" name="in{identity}" type="{kind}" version="opset1">{parts}</layer>'


def operation_text(identity: int, layer: Layer, types: Sequence[str]) -> str:
    """Return a layer with its own attributes and inputs of these types; its outputs are numbered after its inputs."""
    ports = "".join(f'<port id="{index}" precision="{type}"/>' for index, type in enumerate(types))
    outputs = ""
    for index, output in enumerate(layer.outputs):
        precision = "dynamic" if output.element_type is None else output.element_type.name
        dims = "".join(f"<dim>{dim}</dim>" for dim in output.dims)
        outputs += f'<port id="{len(types) + index}" precision="{precision}">{dims}</port>'
    attributes = " ".join(f"{name}={_quoted(text)}" for name, text in layer.attributes.items())
    head = f"type={_quoted(layer.type)} version={_quoted(layer.version)}"
    parts = f"<data {attributes}/>" if attributes else ""
    parts += f"<input>{ports}</input>" if ports else ""
    return f'<layer id="{identity}" name="layer{identity}" {head}>{parts}<output>{outputs}</output></layer>'


def _quoted(text: str) -> str:
    """Return the value of an attribute in XML. (xml.sax.saxutils has it too, and loads half of the web with it.)"""
    return f'"{text.translate(_ESCAPED)}"'


def result_text(identity: int) -> str:
    """Return a Result."""
    head = f'<layer id="{identity}" name="out{identity}" type="Result" version="opset1">'
    return f'{head}<input><port id="0"/></input></layer>'


def net_text(layers: Sequence[str], edges: Sequence[str]) -> str:
    """Return the IR of a model."""
    return f'<net name="layer" version="11"><layers>{"".join(layers)}</layers><edges>{"".join(edges)}</edges></net>'


def edge_text(from_layer: int, from_port: int, to_layer: int, to_port: int) -> str:
    """Return an edge."""
    return f'<edge from-layer="{from_layer}" from-port="{from_port}" to-layer="{to_layer}" to-port="{to_port}"/>'


def _settle(model: openvino.Model, constants: Sequence[openvino.Tensor | None]) -> None:
    """Put Constants in the place of those Parameters for which there is one."""
    import openvino

    for parameter, value in zip(list(model.get_parameters()), constants, strict=True):
        if value is not None:
            constant = openvino.op.Constant(value)
            parameter.output(0).replace(constant.output(0))
            model.remove_parameter(parameter)
    if any(value is not None for value in constants):
        model.validate_nodes_and_infer_types()


# Faults of the CPU plugin that would end the whole process, each seen with OpenVINO 2026.4.1: none can be caught.

_CONSTANT_FROM = {"Gather": 2, "SliceScatter": 2, "RDFT": 1, "IRDFT": 1}
"""Types, and the first of the inputs that must be Constants: axes and ranges that are read as if they were."""


def must_be_constant(layer: Layer, index: int) -> bool:
    """Return True if this input of the layer must be given as a Constant."""
    first = _CONSTANT_FROM.get(layer.type)
    return first is not None and index >= first


def needs_open_shapes(layer: Layer, inputs: Sequence[Any]) -> bool:
    """Return True if the layer must be compiled without knowing these shapes: kernels may divide by size 0."""
    return layer.type == "Gather" and any(0 in array.shape for array in inputs[:2])


def fatal(layer: Layer, inputs: Sequence[Any]) -> str:
    """Return why OpenVINO must not be asked to compute this layer on these inputs; empty where it may be."""
    if layer.type == "LRN" and len(inputs) > 1 and 0 in inputs[1].shape:
        return "OpenVINO reads beyond the axes of an LRN that has none"
    if layer.type == "AvgPool" and (layer.definition or 0) >= 16 and "dilations" not in layer.attributes:
        return "OpenVINO reads the dilations of an AvgPool that has none"
    return ""


# A model's text in the runtime: compiled for the types and shapes of the inputs that come, and run on them.


class CompiledText:
    """A model as a function from its inputs to its outputs, in this process.

    It is compiled for the shapes that its Parameters declare, and anew for inputs that these exclude; dimensions that
    change from one call to another are open from then on. What has open dimensions is thus one compiled model for all
    sizes, as the body of a loop is in the runtime: what a kernel keeps from a smaller size shows. Each call begins with
    the variables in `states`, all others as the model has them. RuntimeError with OpenVINO's words where it refuses,
    KernelError for inputs of other types.
    """

    def __init__(self, runtime: Runtime, text: NativeText, states: Mapping[str, Array] | None = None) -> None:
        self._runtime, self._text = runtime, text
        self._states: Mapping[str, Any] = dict(states or {})
        self._request: PreparedRequest | None = None
        self._shapes: list[openvino.PartialShape] = []
        self._types: list[str] = []
        self._has_variables = False
        self._taken: list[tuple[Shape, DType]] = []

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """Return the outputs, in the order of the model's Results."""
        request, given = self._ready(inputs)
        return request.infer(given)

    def views(self, *inputs: Any, lends: bool = False) -> Sequence[Array]:
        """Return the same, good until the next call; `lends`: nobody else has the inputs."""
        request, given = self._ready(inputs)
        return request.views(given, lends=lends and given is inputs)

    def _ready(self, inputs: Sequence[Any]) -> tuple[PreparedRequest, Sequence[Any]]:
        """Return a request for these inputs, with the variables that they begin with, and what it takes."""
        given = [(array.shape, array.dtype) for array in inputs]
        request = self._request
        if request is None or given != self._taken:
            shapes = [array.shape for array in inputs]
            if request is None or not self._takes(shapes):
                self._request = None  # one at a time: a model may be large
                self._request = request = self._compiled(shapes)
                self._has_variables = bool(request.variables())
            for wanted, array in zip(self._types, inputs, strict=True):
                if element_types.of(array).name != wanted:
                    raise KernelError(f"OpenVINO expects {wanted}, not {element_types.of(array)}")
            self._taken = given
        if self._has_variables:
            # Have variables not go on from the call before.
            request.forget()
            for variable in request.variables():
                if variable.name in self._states:
                    variable.state = to_tensor(self._states[variable.name])
        return request, inputs

    def going_on(self, calls: Iterable[Sequence[Any]]) -> Iterator[tuple[Array, ...]]:
        """Yield the outputs of calls; each call starts with the variables of the call before."""
        first = self._states
        try:
            for inputs in calls:
                yield self(*inputs)
                if self._request is not None and self._has_variables:
                    # a request that is compiled anew, for another shape, would have none of them
                    self._states = {one.name: np.array(to_array(one.state)) for one in self._request.variables()}
        finally:
            self._states = first

    def _compiled(self, shapes: Sequence[Shape]) -> PreparedRequest:
        """Return a request for these shapes; for those before, too, unless OpenVINO refuses that."""
        if self._shapes:
            try:
                # Shapes with -1 for each dimension that is open already, or was another one.
                found = []
                for before, shape in zip(self._shapes, shapes, strict=True):
                    same = before.rank.is_static and len(before) == len(shape)
                    dims = zip(before, shape, strict=True) if same else ()
                    found.append([size if dim == size else -1 for dim, size in dims] if same else list(shape))
                return self._compiled_for(found)
            except RuntimeError:
                pass
        return self._compiled_for(shapes)

    def _compiled_for(self, shapes: Sequence[Sequence[int]]) -> PreparedRequest:
        model = self._read(shapes)
        self._shapes = [port.get_partial_shape() for port in model.inputs]
        self._types = [port.get_element_type().get_type_name() for port in model.inputs]
        return PreparedRequest(self._runtime, model)

    def _read(self, shapes: Sequence[Sequence[int]]) -> openvino.Model:
        """Return the model for these shapes."""
        model = self._runtime.read(*self._text, is_kept=True)
        fit(model, shapes)
        return model

    def _takes(self, shapes: Sequence[Shape]) -> bool:
        import openvino

        pairs = zip(self._shapes, shapes, strict=True)
        return all(taken.compatible(openvino.PartialShape(list(shape))) for taken, shape in pairs)


class CalledText:
    """A model that is called many times as a function from the inputs of its loop over calls to that loop's outputs.

    `joined` are the outputs that are those of all calls, joined along the first axis.
    """

    def __init__(self, text: CompiledText, calls: Calls, joined: Sequence[int]) -> None:
        self._text, self._calls, self._joined = text, calls, joined

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """Return the outputs, in the order of the model's Results."""
        pieces: list[list[Array]] = []
        carried: dict[int, Array] = {}

        def each() -> Iterator[Sequence[Any]]:
            for number in range(self._calls.count):
                given = list(inputs)
                for parts in self._calls.parts:
                    given[parts.input] = parts.part(inputs[parts.input], number)
                for position, value in carried.items():
                    given[position] = value
                yield given

        for outputs in self._text.going_on(each()):
            pieces = pieces or [[] for _ in outputs]
            for position, (kept, value) in enumerate(zip(pieces, outputs, strict=True)):
                if position not in self._joined:
                    kept.clear()
                kept.append(np.atleast_1d(value) if position in self._joined else value)
            carried.update({one.input: outputs[one.output] for one in self._calls.carried})
        return tuple(np.concatenate(kept) if _can_join(kept) else kept[-1] for kept in pieces)


def _can_join(pieces: Sequence[Array]) -> bool:
    return len(pieces) > 1 and len({(piece.ndim, piece.shape[1:]) for piece in pieces}) == 1


def fit(model: openvino.Model, shapes: Sequence[Sequence[int]]) -> None:
    """Let the Parameters have these shapes, where the declared ones exclude them (a body's are not binding)."""
    import openvino

    found = {}
    for port, dims in zip(model.inputs, shapes, strict=True):
        shape = openvino.PartialShape(list(dims))
        if not port.get_partial_shape().compatible(shape) or -1 in dims:
            found[port] = shape
    if found:
        model.reshape(found)


# A model on many sets of inputs with one call: as the body of a Loop of OpenVINO's own, one set for each iteration.
#
# Each set is computed as it would be alone, for its own shapes: nothing is carried from one to the next.


class IteratedText(CompiledText):
    """A model as a function from inputs of many sets, stacked on a new first axis, to outputs that are stacked so.

    `stacked` says of each input whether it is; one that is not is the same for all sets. It is compiled for the types
    and shapes of a set, and anew for others. RuntimeError with OpenVINO's words where it refuses.
    """

    def __init__(self, runtime: Runtime, text: NativeText, stacked: Sequence[bool]) -> None:
        super().__init__(runtime.for_size(0), text)
        self._stacked = tuple(stacked)

    def _ready(self, inputs: Sequence[Any]) -> tuple[PreparedRequest, Sequence[Any]]:
        """Return a request for sets of these types and shapes, and what it takes."""
        pairs = list(zip(inputs, self._stacked, strict=True))
        given = [(array.shape[1:] if is_stacked else array.shape, array.dtype) for array, is_stacked in pairs]
        if self._request is None or given != self._taken:
            self._request = None  # one at a time: a model may be large
            model = self._read([shape for shape, _ in given])
            self._request, self._taken = PreparedRequest(self._runtime, _looped(model, self._stacked)), given
        count = next(array.shape[0] for array, is_stacked in pairs if is_stacked)
        return self._request, [*inputs, np.array(count, np.int64)]


def _looped(model: openvino.Model, stacked: Sequence[bool]) -> openvino.Model:
    """Return the model as the body of a Loop; its inputs, and how many sets there are."""
    import openvino
    from openvino import opset8

    axis = opset8.constant(np.array([0], np.int64))
    yes = opset8.constant(np.array(True))
    count = opset8.parameter(openvino.PartialShape([]), openvino.Type.i64)
    outer, inner = [], []
    for parameter, is_stacked in zip(list(model.get_parameters()), stacked, strict=True):
        shape, type = parameter.get_partial_shape(), parameter.get_element_type()
        if not is_stacked:
            outer.append(opset8.parameter(shape, type))
            inner.append(parameter)
            continue
        outer.append(opset8.parameter(openvino.PartialShape([openvino.Dimension(), *shape]), type))
        piece = opset8.parameter(openvino.PartialShape([openvino.Dimension(1), *shape]), type)
        alone = opset8.squeeze(piece, axis).output(0)
        for reader in list(parameter.output(0).get_target_inputs()):
            reader.replace_source_output(alone)
        inner.append(piece)
    results = [opset8.result(opset8.unsqueeze(result.input_value(0), axis)) for result in model.get_results()]
    loop = opset8.loop(count, yes)
    loop.set_function(openvino.Model([*results, opset8.result(yes)], inner, "set"))
    loop.set_special_body_ports([-1, len(results)])
    for parameter, given, is_stacked in zip(inner, outer, stacked, strict=True):
        if is_stacked:
            loop.set_sliced_input(parameter, given.output(0), 0, 1, 1, -1, 0)
        else:
            loop.set_invariant_input(parameter, given.output(0))
    outputs = [loop.get_concatenated_slices(result.output(0), 0, 1, 1, -1, 0) for result in results]
    return openvino.Model([opset8.result(output) for output in outputs], [*outer, count], "sets")


# A model whose outputs are compared where they are made, so that of what agrees nothing is handed over.


class JudgedText:
    """A function that takes `taken` arguments, and more to compare with: which outputs agree, and then the others.

    `lends`: its arguments are nobody else's.
    """

    def __init__(self, text: CompiledText, judged: Sequence[Judgement], taken: int, *, lends: bool) -> None:
        self._text, self._judged, self._taken, self._lends = text, tuple(judged), taken, lends

    def __call__(self, *arguments: Any) -> tuple[Array, ...]:
        """Return booleans, True for each output that is within its tolerance, and the outputs that are not."""
        outputs = self._text.views(*arguments[: self._taken], lends=self._lends)
        agrees = [
            is_within(arguments[judged.place], output, judged.tolerance)
            for output, judged in zip(outputs, self._judged, strict=True)
        ]
        others = [np.array(output) for output, is_fine in zip(outputs, agrees, strict=True) if not is_fine]
        return np.array(agrees, np.bool_), *others


# The function of a model that is wanted, in this process.


def function_of(
    kind: FunctionKind, runtime: Runtime, text: NativeText, states: Mapping[str, Array], *, lends: bool = False
) -> Callable[..., tuple[Array, ...]]:
    """Return a function of this kind of a model's text; `lends`: arguments of its calls are nobody else's."""
    function = IteratedText(runtime, text, kind.stacked) if kind.stacked else CompiledText(runtime, text, states)
    if kind.judged:
        return JudgedText(function, kind.judged, kind.taken, lends=lends)
    if kind.calls is not None and not kind.stacked:
        return CalledText(function, kind.calls, kind.joined)
    return function
