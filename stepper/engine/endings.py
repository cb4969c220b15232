"""Layers that decide a loop's begin and end: its trip count, its initial condition and its body's condition."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from stepper.engine.roles import control_inputs
from stepper.errors import ModelError
from stepper.ir.constants import constant_value
from stepper.ir.model import Body, Graph, Layer, LayerSite, Model, layer_site
from stepper.ir.xml import EXECUTION_CONDITION


class ControlOrigin(Struct, frozen=True):
    """The layer that computes a value, and the value if it is a Constant whose content is known.

    `output` is the index of the layer's output, None if it has only one. `value` is that of a single element; `shape`
    stands for it if there are more.
    """

    layer: LayerSite
    output: int | None
    value: bool | int | float | None = None
    shape: tuple[int, ...] | None = None


class Control(Struct, frozen=True):
    """Control of a loop's begin and end, or of the side of an If.

    `trip_count` None: no limit. `condition` is the initial one of a Loop (None: the first iteration runs) or that of an
    If; `goes_on` is that of a Loop's body, after each iteration. `slices_of` are the inputs whose slices a
    TensorIterator counts.
    """

    trip_count: ControlOrigin | None = None
    condition: ControlOrigin | None = None
    goes_on: ControlOrigin | None = None
    slices_of: tuple[int, ...] = ()


def control(model: Model, graph: Graph, layer: Layer) -> Control:
    """Return what controls a layer of `graph` that has bodies, as far as the file says."""
    if layer.type == "If":
        return Control(condition=_origin(model, graph, layer, 0))
    body = layer.bodies[0]
    if layer.type == "TensorIterator":
        sliced = dict.fromkeys(entry.input for entry in body.inputs if entry.slicing is not None)
        return Control(slices_of=tuple(index for index in sliced if index is not None))
    trip_count, condition = control_inputs(layer, body, graph)
    return Control(
        trip_count=_origin(model, graph, layer, trip_count),
        condition=_origin(model, graph, layer, condition),
        goes_on=_goes_on(model, body),
    )


def _goes_on(model: Model, body: Body) -> ControlOrigin | None:
    result = next((entry.result for entry in body.outputs if entry.purpose == EXECUTION_CONDITION), None)
    layer = None if result is None else body.graph.by_id.get(result)
    return None if layer is None else _origin(model, body.graph, layer, 0)


def _origin(model: Model, graph: Graph, layer: Layer, index: int | None) -> ControlOrigin | None:
    source = None if index is None or index >= len(layer.inputs) else graph.sources[layer.id][index]
    if source is None:
        return None
    producer = graph.by_id[source.layer]
    value, shape = _content(model, producer)
    output = source.output if len(producer.outputs) > 1 else None
    return ControlOrigin(layer_site(producer, str(model.path)), output, value, shape)


def _content(model: Model, layer: Layer) -> tuple[bool | int | float | None, tuple[int, ...] | None]:
    if layer.type != "Constant":
        return None, None
    try:
        value: Any = constant_value(model, layer)
    except ModelError:
        return None, None
    return (value.reshape(-1)[0].item(), None) if value.size == 1 else (None, value.shape)
