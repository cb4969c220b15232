"""Subjects of rules: a model, a layer, a loop or an If with all that the file says of it.

Types and shapes are as declared; OpenVINO infers them anew (measured), and they agree in what it writes.

Kinds of layers: what most rules of layers look at is the same for thousands of layers, and is looked at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from itertools import chain
from math import prod
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from stepper.diagnosis.rule import Detail, RuleHit, outside
from stepper.element_types import Array, ElementType
from stepper.engine.compiler import ancestors, can_change, shaped_from
from stepper.engine.loops import RoleError, Roles, control_inputs, roles_of, slice_walk
from stepper.engine.rules import Rules
from stepper.errors import KernelError, ModelError, TensorTooLarge
from stepper.ir.constants import check_constant, constant_shape, constant_type, constant_value, small_constant
from stepper.ir.model import (
    NO_LAYER,
    Body,
    Dimension,
    Graph,
    InputMapping,
    Layer,
    LayerSite,
    Model,
    PartialShape,
    Port,
    Source,
    layer_site,
    parameter_shape,
    parameter_type,
)
from stepper.ir.weights import Weights
from stepper.ir.xml import FilePlace
from stepper.operation_types import FAMILIES, VIEWS
from stepper.ops import registry
from stepper.ops.registry import read_attribute

# Trials of single operations: what their kernels make of zeros of the declared shapes, or why they refuse them.


DECIDING: Final[Mapping[str, tuple[int, ...]]] = {
    type: inputs
    for inputs, types in {
        (): (
            "Clamp Concat DepthToSpace GatherElements GatherND LogSoftmax MatMul ScatterNDUpdate Select "
            "Softmax SpaceToDepth"
        ),
        (1,): (
            "CumSum MVN NormalizeL2 OneHot ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax "
            "ReduceMean ReduceMin ReduceProd ReduceSum Reshape Reverse Split Squeeze Tile TopK Transpose "
            "Unsqueeze"
        ),
        (1, 2): "Broadcast Pad Roll VariadicSplit",
        (1, 2, 3): "BatchToSpace SpaceToBatch StridedSlice",
        (1, 2, 3, 4): "Slice",
        (2,): "Gather",
        (3,): "ScatterElementsUpdate ScatterUpdate",
    }.items()
    for type in types.split()
}
"""Operations that are tried, and their inputs whose values decide what shape comes out."""
_ENLARGING = ("Broadcast", "OneHot", "Pad", "Tile")
_MOST_ELEMENTS = 1 << 16


class _Operand(NamedTuple):
    """Type and shape of an input, and its bytes where it is a Constant."""

    type: np.dtype[np.generic]
    shape: tuple[int, ...]
    value: bytes | None

    def array(self) -> Array:
        if self.value is None:
            return np.broadcast_to(np.zeros((), self.type), self.shape)
        return np.frombuffer(self.value, self.type).reshape(self.shape)


class LayerOutcome(NamedTuple):
    """Shapes that an operation gives, or why there are none."""

    shapes: tuple[tuple[int, ...], ...] = ()
    refusal: str = ""


@lru_cache(maxsize=4096)
def _tried(
    type: str, definition: int, attributes: tuple[tuple[str, str], ...], operands: tuple[_Operand, ...], outputs: int
) -> LayerOutcome | None:
    """Return what an operation makes of zeros and of what is constant; None where that is left to a run."""
    kernel = registry.find(type, definition)
    if kernel is None or kernel.stateful:
        return None
    least, most = kernel.accepted_inputs()
    if len(operands) < least or (most is not None and len(operands) > most):
        return None
    try:
        with np.errstate(all="ignore"):
            made = kernel.bind(dict(attributes))(*(one.array() for one in operands))
    except TensorTooLarge:
        return None
    except KernelError as error:
        return LayerOutcome(refusal=str(error))
    except (ArithmeticError, IndexError, TypeError, ValueError):
        return None  # what a kernel did not foresee: the run says what it says
    given = made if isinstance(made, tuple | list) else (made,)
    return LayerOutcome(tuple(np.shape(one) for one in given)[:outputs])


@lru_cache(maxsize=4096)
def refusal(type: str, definition: int, attributes: tuple[tuple[str, str], ...], inputs: int, outputs: int) -> str:
    """Return why an operation with these attributes, and so many inputs and outputs, is none; empty if it is one."""
    kernel = registry.find(type, definition)
    if kernel is None:
        return ""
    least, most = kernel.accepted_inputs()
    if inputs < least or (most is not None and inputs > most):
        expected = str(least) if least == most else f"{least} or more" if most is None else f"{least} to {most}"
        return f"it has {inputs} inputs, expected {expected}"
    if outputs > 1 and not kernel.several_outputs:
        return f"it has {outputs} output ports, expected one"
    try:
        kernel.bind(dict(attributes))
    except KernelError as error:
        return str(error)
    return ""


# Subjects of rules: a model, a layer, a loop or an If with all that the file says of it.


PASSING = (*VIEWS, "Convert")
"""Operations that give the elements of their first input, one for one."""
_DEEPEST = 32
REAL = ("f16", "bf16", "f32", "f64")
"""Types of real numbers."""
COMPARISONS = ("Less", "LessEqual", "Greater", "GreaterEqual", "Equal", "NotEqual")
_MOST_LOOKED_THROUGH = 1_000_000
_SMALL = 256


def integer_attribute(layer: Layer, name: str, default: str = "") -> int | None:
    """Return an attribute that is an integer of 64 bits; None for any other text."""
    try:
        found: int = read_attribute(name, layer.attributes.get(name, default), int)
    except KernelError:
        return None
    return found


class LayerSubject:
    """A layer in its graph, and what the file says of what goes into it."""

    def __init__(self, model: Model, path: tuple[Layer, ...], graph: Graph, layer: Layer) -> None:
        self.model, self.path, self.graph, self.layer = model, path, graph, layer
        self.sources = graph.sources[layer.id]
        """Where the inputs come from; there may be fewer than ports."""

    def site(self, layer: Layer) -> LayerSite:
        """Return a layer as a finding has it."""
        return layer_site(layer, str(self.model.path))

    def hit(self, **details: Detail | Layer) -> RuleHit:
        """Return a hit at the layer itself."""
        return outside(self.layer, **details)

    def source(self, index: int | None) -> Source | None:
        """Return where an input comes from; None for one that is not there, or that no edge reaches."""
        return self.graph.source(self.layer.id, index)

    def maker(self, index: int | None) -> Layer:
        """Return the layer that gives an input; the layer itself where none does."""
        source = self.source(index)
        return self.layer if source is None else self.graph.layer_of(source)

    def tensor(self, index: int | None) -> Declared:
        """Return what is declared of an input."""
        return declared(self.graph, self.source(index))

    def constant(self, index: int | None) -> Array | None:
        """Return the value of an input, where it is computed from Constants by what changes no element but its type."""
        return known_value(self.model, self.graph, self.source(index))

    def value_of(self, layer: Layer) -> Array | None:
        """Return the value of a Constant of the graph; None for others, and for one that is not in the .bin."""
        return known_value(self.model, self.graph, Source(layer.id, 0))

    @cached_property
    def own_value(self) -> Array | None:
        """The value of a Constant of real numbers; None for others, and for large ones."""
        layer = self.layer
        if (small := small_constant(layer, self.model.weights)) is not None:
            return small if small.dtype.kind == "f" else None
        if not layer.outputs:
            return None
        kind, shape = constant_type(layer), constant_shape(layer)
        if kind is None or shape is None or kind.name not in REAL or prod(shape) > _MOST_LOOKED_THROUGH:
            return None
        return self.value_of(layer)

    @cached_property
    def magnitude(self) -> float:
        """The largest magnitude in a Constant of real numbers, NaN if it has one; 0 for others."""
        value = self.own_value
        if value is None or not value.size:
            return 0.0
        return _magnitude(value.tobytes(), value.dtype) if value.nbytes <= _SMALL else float(np.abs(value).max())

    @cached_property
    def outcome(self) -> LayerOutcome | None:
        """Shapes that the layer makes of what the file declares of its inputs, and of those that are constant.

        None where that is open, or much.
        """
        layer, deciding, operands = self.layer, DECIDING.get(self.layer.type), list[_Operand]()
        if deciding is None or layer.definition is None or layer.opened_from is not None:
            return None
        if len(self.sources) < len(layer.inputs):
            return None
        for index in range(len(self.sources)):
            kind, shape = self.tensor(index).type, self.tensor(index).static
            if kind is None or shape is None or not 0 < prod(shape) <= _MOST_ELEMENTS or kind.dtype.kind == "T":
                return None
            value = self.constant(index) if index in deciding or (index and kind.dtype.kind in "iu") else None
            if value is None:
                if index in deciding:
                    return None
                operands.append(_Operand(kind.dtype, shape, None))
            elif value.size == prod(shape):
                operands.append(_Operand(value.dtype, shape, value.tobytes()))
            else:
                return None
        enlarges = layer.type in _ENLARGING
        if any(
            prod(max(one, 0) for one in port.dims) > _MOST_ELEMENTS or (enlarges and min(port.dims, default=-1) < 0)
            for port in layer.outputs
        ):
            return None
        attributes = tuple(layer.attributes.items())
        return _tried(layer.type, layer.definition, attributes, tuple(operands), len(layer.outputs))


@lru_cache(maxsize=4096)
def _magnitude(raw: bytes, dtype: np.dtype[Any]) -> float:
    return float(np.abs(np.frombuffer(raw, dtype)).max())


class ModelSubject:
    """The whole of a model."""

    def __init__(self, model: Model) -> None:
        self.model = model

    def constants(self) -> Iterator[tuple[tuple[Layer, ...], Graph, Layer]]:
        """Yield the Constants of all graphs, each with where it stands."""
        for path, graph in self.model.graphs():
            for layer in graph.layers:
                if layer.type == "Constant":
                    yield path, graph, layer


class Declared:
    """Type and shape of a value as the file declares them; None: open."""

    def __init__(self, element_type: ElementType | None, shape: PartialShape | None) -> None:
        self.type, self.shape = element_type, shape
        self.dimensions = None if shape is None else shape.dimensions

    @property
    def rank(self) -> int | None:
        """Return the number of dimensions, where it is known."""
        return None if self.dimensions is None else len(self.dimensions)

    def dimension(self, axis: int) -> Dimension | None:
        """Return one dimension, from the end where the axis is negative; None where there is none, or none is known."""
        dimensions = self.dimensions
        return None if dimensions is None or not -len(dimensions) <= axis < len(dimensions) else dimensions[axis]

    def size(self, axis: int) -> int | None:
        """Return the size of a dimension, where it is one number."""
        found = self.dimension(axis)
        return None if found is None or found.least != found.most else found.least

    @property
    def static(self) -> tuple[int, ...] | None:
        """Return the shape where all of it is known."""
        return None if self.shape is None else self.shape.static

    @property
    def may_be_one_element(self) -> bool:
        """True unless the declared shape has none or several elements."""
        return self.dimensions is None or all(one.least <= 1 and one.most != 0 for one in self.dimensions)


def different_types(one: Declared, other: Declared) -> tuple[str, str] | None:
    """Return the names of two element types that are known and differ."""
    if one.type is None or other.type is None or one.type == other.type:
        return None
    return one.type.name, other.type.name


def declared(graph: Graph, source: Source | None) -> Declared:
    """Return what is declared of what a layer gives."""
    layer = graph.layer_of(source)
    if source is None or layer is NO_LAYER:
        return Declared(None, None)
    if layer.type == "Parameter":
        return of_parameter(layer)
    if layer.type == "Constant":
        shape = constant_shape(layer)
        return Declared(constant_type(layer), None if shape is None else PartialShape.of_dims(shape))
    return of_port(layer.outputs[source.output])


def of_port(port: Port) -> Declared:
    """Return what is declared at a port; the shape of a port without dims is open, as not every writer has them."""
    return Declared(port.element_type, PartialShape.of_dims(port.dims) if port.dims else None)


def of_parameter(layer: Layer) -> Declared:
    """Return what is declared of a Parameter; nothing where that cannot be read."""
    try:
        return Declared(parameter_type(layer), parameter_shape(layer))
    except (ValueError, IndexError):
        return Declared(None, None)


def known_value(model: Model, graph: Graph, source: Source | None) -> Array | None:
    """Return numbers that are a Constant, or that only changed their type or shape; None for any other value."""
    found = known_chain(graph, source)
    if found is None:
        return None
    constant, chain = found
    value = small_constant(constant, model.weights)
    if value is None:
        try:
            check_constant(FilePlace(model.path), constant, model.weights)
            value = constant_value(model, constant)
        except ModelError:
            return None
    for layer in reversed(chain):
        target = layer.outputs[0].element_type
        if layer.type == "Convert" and target is not None and _are_numbers(value.dtype) and _are_numbers(target.dtype):
            with np.errstate(all="ignore"):
                value = np.asarray(value).astype(target.dtype)
    return value if _are_numbers(value.dtype) else None


def _are_numbers(dtype: np.dtype[Any]) -> bool:
    return dtype.kind != "T" and dtype.names is None


def known_chain(graph: Graph, source: Source | None) -> tuple[Layer, tuple[Layer, ...]] | None:
    """Return the Constant from which a value comes, and what it passes, the last first; None if it is computed."""
    chain: list[Layer] = []
    layer = graph.layer_of(source)
    while layer.type in PASSING and len(chain) < _DEEPEST:
        chain.append(layer)
        layer = graph.maker(layer)
    return (layer, tuple(chain)) if layer.type == "Constant" and len(chain) < _DEEPEST else None


class BodySubject(LayerSubject):
    """A layer with a body: what is inside, and who reads it there."""

    index = 0
    """Index of the body among the bodies of the layer."""

    @property
    def body(self) -> Body:
        """Return the body with its port map."""
        return self.layer.bodies[self.index]

    @property
    def inner(self) -> Graph:
        """Return the graph of the body."""
        return self.body.graph

    def given_to(self, result: int) -> Source | None:
        """Return what a Result of the body reads."""
        return self.inner.source(result)

    def of_result(self, result: int) -> Declared:
        """Return what is declared of what a Result reads."""
        return declared(self.inner, self.given_to(result))

    def inner_constant(self, source: Source | None) -> Array | None:
        """Return a value of the body, where it is computed from Constants by what changes no element but its type."""
        return known_value(self.model, self.inner, source)

    def is_read(self, parameter: int) -> bool:
        """True if anything in the body reads a Parameter."""
        return bool(self.inner.readers.get(parameter))

    def origin(self, source: Source | None) -> Source | None:
        """Return a value before it only changed its shape."""
        return shaped_from(self.inner, source)

    def ancestors(self, *values: Source | None) -> frozenset[int]:
        """Return the ids of all layers of the body on which values depend, their own among them."""
        return ancestors(self.inner, *values)


_OF_ONE = {"LogicalNot", "IsNaN", "IsInf", "IsFinite"}
ELEMENTWISE = frozenset(FAMILIES["elementwise"] + FAMILIES["comparison"]) - {
    *("Select", "Xor"),
    *_OF_ONE,
}
"""Operations on two operands of one type; the smaller operand is broadcast."""
_BROADCASTING = ELEMENTWISE | {
    *_OF_ONE,
    *("Convert", "Abs", "Negative", "Sqrt", "Exp", "Log", "Floor", "Ceiling", "Relu", "Sigmoid", "Tanh", "Clamp"),
}
"""Operations whose result is at least as large as each operand."""


class LoopSubject(BodySubject):
    """A TensorIterator or a Loop."""

    @property
    def is_loop(self) -> bool:
        """True for a Loop, False for a TensorIterator."""
        return self.layer.type == "Loop"

    @cached_property
    def role_error(self) -> RoleError | None:
        """The fault of the Parameter of the iteration number."""
        try:
            roles_of(self.layer)
        except RoleError as error:
            return error
        return None

    @cached_property
    def roles(self) -> Roles:
        """Return the role of each input; no roles if the iteration number has no fitting place."""
        return Roles((), (), (), {}, (), ()) if self.role_error is not None else roles_of(self.layer)

    @cached_property
    def control_inputs(self) -> tuple[int | None, int | None]:
        """Indices of trip count and initial condition among the inputs of a Loop."""
        if not self.is_loop or len(self.layer.inputs) < 2:
            return None, None
        return control_inputs(self.layer, self.body, self.graph)

    @cached_property
    def condition_result(self) -> int | None:
        """Id of the Result that says whether there is another iteration."""
        return self.body.condition

    @property
    def condition(self) -> Source | None:
        """Value that this Result reads."""
        return None if self.body.condition is None else self.given_to(self.body.condition)

    @cached_property
    def decides(self) -> frozenset[int]:
        """Ids of the layers of the body on which the condition depends."""
        return self.ancestors(self.condition)

    @cached_property
    def trip_count(self) -> int | None:
        """The trip count, where it is a constant."""
        value = self.constant(self.control_inputs[0])
        return int(value.reshape(-1)[0]) if value is not None and value.size and value.dtype.kind in "iu" else None

    @cached_property
    def initial_condition(self) -> bool | None:
        """The initial condition, where it is a constant."""
        value = self.constant(self.control_inputs[1])
        return bool(value.reshape(-1)[0]) if value is not None and value.size else None

    @cached_property
    def body_condition(self) -> bool | None:
        """The condition of the body, where it is a constant."""
        value = self.inner_constant(self.condition)
        return bool(value.reshape(-1)[0]) if value is not None and value.size else None

    def can_change(self, result: int) -> bool:
        """Return True if what a Result is given may be another value in the next iteration."""
        return can_change(self.inner, self.roles, self.given_to(result))

    def outer(self, entry: InputMapping) -> Declared:
        """Return what is declared of the value that an entry brings in."""
        return self.tensor(entry.input)

    def fed(self, parameter: int) -> Declared:
        """Return what is declared of the value that a Parameter takes or begins with."""
        return self.tensor(next((one.input for one in self.roles.fed if one.parameter == parameter), None))

    def least_shape(self, source: Source | None, depth: int = _DEEPEST) -> tuple[int, ...]:
        """Return sizes that a value surely has, as what comes in from outside says; 1 or 0 dimensions where open."""
        layer = self.inner.layer_of(source)
        if layer is NO_LAYER or not depth:
            return ()
        if layer.type == "Parameter":
            entry = next((one for one in self.roles.fed if one.parameter == layer.id), None)
            found = of_parameter(layer) if entry is None or entry.slicing is not None else self.outer(entry)
        elif layer.type in _BROADCASTING:
            operands = [self.least_shape(one, depth - 1) for one in self.inner.sources[layer.id]]
            return _broadcast(operands)
        else:
            found = declared(self.inner, source)
        return tuple(one.least if one.least == one.most else 1 for one in found.dimensions or ())

    def name(self, identity: int) -> LayerSite:
        """Return a layer of the body as a finding has it."""
        return self.site(self.inner.by_id[identity])

    def slices(self, entry: InputMapping) -> int | None:
        """Return how many slices an input has, by the size of its axis; None where that is open or wrong."""
        slicing, outer = entry.slicing, self.outer(entry)
        if slicing is None or outer.size(slicing.axis) is None:
            return None
        shape = tuple(one.least for one in outer.dimensions or ())
        try:
            return slice_walk(slicing, shape, Rules.SPEC, is_loop=self.is_loop).count
        except KernelError:
            return None


def _broadcast(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(shape)) + shape for shape in shapes]
    return tuple(max(sizes) for sizes in zip(*padded, strict=True))


class IfSubject(LayerSubject):
    """An If."""

    def sides(self) -> Iterator[BodySubject]:
        """Yield the facts of each side."""
        for index in range(2):
            side = BodySubject(self.model, self.path, self.graph, self.layer)
            side.index = index
            yield side


_Key: TypeAlias = tuple[Any, ...]
_Place: TypeAlias = tuple[tuple[Layer, ...], Graph, Layer]


class LayerKinds:
    """The layers of a model by their type, and those of a type by their kind.

    Layers of one kind have the same attributes and ports, all in a body or none, and read values of the same types and
    shapes, which operations of the same types make; where those are known whole numbers (axes, shapes, indices) also
    the same numbers. Constants of one kind have the same bytes. Names, lines and who reads them may differ.
    """

    def __init__(self, model: Model) -> None:
        self.model = model
        self._subjects: dict[int, LayerSubject] = {}

    @cached_property
    def _groups(self) -> Mapping[str, Mapping[_Key, list[_Place]]]:
        found: dict[str, dict[_Key, list[_Place]]] = {}
        for path, graph in self.model.graphs():
            constants = {one.id: _constant(one, self.model.weights) for one in graph.layers if one.type == "Constant"}
            values = _values(graph, constants)
            for layer in graph.layers:
                try:
                    key = (
                        bool(path),
                        *(constants[layer.id] if layer.type == "Constant" else _key(graph, layer, values)),
                    )
                except LookupError:  # of a broken file: like no other
                    key = (id(layer),)
                of_type = found.get(layer.type)
                if of_type is None:
                    of_type = found[layer.type] = {}
                alike = of_type.get(key)
                if alike is None:
                    of_type[key] = [(path, graph, layer)]
                else:
                    alike.append((path, graph, layer))
        return found

    def _of_types(self, types: Iterable[str]) -> Iterator[list[_Place]]:
        wanted = [self._groups[one] for one in types or self._groups if one in self._groups]
        return chain.from_iterable(groups.values() for groups in wanted)

    def subject(self, place: _Place) -> LayerSubject:
        """Return a layer with what is around it: one for each, as it keeps what it has found."""
        found = self._subjects.get(id(place[2]))
        if found is None:
            found = self._subjects[id(place[2])] = LayerSubject(self.model, *place)
        return found

    def subjects(self, types: Iterable[str]) -> Iterator[LayerSubject]:
        """Yield all layers of these types; of all types where none is named."""
        return map(self.subject, chain.from_iterable(self._of_types(types)))

    def kinds(self, types: Iterable[str]) -> Iterator[tuple[LayerSubject, Iterator[LayerSubject]]]:
        """Yield the first layer of each kind, and all of them."""
        for places in self._of_types(types):
            yield self.subject(places[0]), map(self.subject, places)


def reads(*types: str) -> Callable[[LayerSubject], bool]:
    """Return a test of a layer: whether it reads what an operation of one of these types makes."""

    def suspects(facts: LayerSubject) -> bool:
        return any(facts.graph.layer_of(source).type in types for source in facts.sources)

    return suspects


def _constant(layer: Layer, weights: Weights | None) -> _Key:
    """Return type, shape and bytes of a Constant; of a large one where the bytes are."""
    attributes = dict(layer.attributes)
    offset, size = attributes.pop("offset", ""), attributes.pop("size", "")
    if weights is not None and len(size) <= 2 and size.isdecimal() and offset.isdecimal() and len(offset) < 19:
        content: bytes | str = weights.raw(int(offset), int(size))
    else:
        content = offset
    return (content, size, attributes.get("element_type"), layer.version, *attributes.items(), *_ports(layer.outputs))


def _ports(ports: tuple[Port, ...]) -> list[Any]:
    """Return the declared types and shapes: of a type that is which it is, as there is one of each."""
    if len(ports) == 1:
        return [id(ports[0].element_type), ports[0].dims]
    return [part for port in ports for part in (id(port.element_type), port.dims)]


def _values(graph: Graph, constants: Mapping[int, _Key]) -> dict[int, _Key]:
    """Return what the kind of a reader has of a value, by its layer: of those that may be known.

    Of real numbers that is not what they are, as those are weights: each layer has its own.
    """
    found: dict[int, _Key] = {}
    for layer in graph.layers:
        if (key := constants.get(layer.id)) is not None:
            found[layer.id] = key[2:] if key[2] in REAL else key
        elif layer.type == "Parameter":
            found[layer.id] = (*layer.attributes.items(), *_ports(layer.outputs))
        elif layer.type in PASSING and known_chain(graph, Source(layer.id, 0)) is not None:
            found[layer.id] = (id(layer),)
    return found


def _key(graph: Graph, layer: Layer, values: Mapping[int, _Key]) -> _Key:
    """Return what a layer shares with those of its kind."""
    if layer.bodies:
        return (id(layer),)
    inputs, outputs = layer.inputs, layer.outputs
    parts: list[Any] = [layer.version, layer.definition, layer.opened_from, len(inputs), len(outputs)]
    parts += layer.attributes.items()
    parts += _ports(inputs)
    parts += _ports(outputs)
    for source in graph.sources[layer.id]:
        if source is None:
            parts.append(None)
        elif source.layer in values:
            parts.append(values[source.layer])
        else:
            maker = graph.by_id[source.layer]
            port = maker.outputs[source.output]
            parts += (maker.type, id(port.element_type), port.dims)
    return tuple(parts)
