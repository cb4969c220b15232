"""A layer as a function in OpenVINO's worker process."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stepper.element_types import Array
from stepper.ir.model import Layer
from stepper.openvino.acts import DefineLayer, layer_facts
from stepper.openvino.runtime import Runtime
from stepper.openvino.worker import shared_worker
from stepper.processes.functions import RemoteFunction
from stepper.wording import excerpt


def remote_layer(
    runtime: Runtime, layer: Layer, constants: Sequence[Array | None], *, is_last_resort: bool
) -> RemoteFunction:
    """Return a layer in the other process: a function from those of its inputs that are not constants."""
    places = tuple(index for index, constant in enumerate(constants) if constant is not None)

    def define(key: int) -> tuple[DefineLayer, list[Any]]:
        definition = DefineLayer(key, runtime.facts, layer_facts(layer), places, is_last_resort)
        return definition, [constants[place] for place in places]

    subject = f"{layer.type} '{excerpt(layer.name)}' (layer {layer.id}, line {layer.line})"
    return RemoteFunction(shared_worker(), define, subject, runtime.limits)
