"""Ways to compute in fewer bits, and the partner that computes so."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final

import ml_dtypes
import numpy as np

from stepper.element_types import Array, is_floating
from stepper.engine.program import CompiledModel, Operation, Partner
from stepper.ir.model import Graph, Layer, Model
from stepper.openvino.partner import NUMPY_BF16, NUMPY_F16, OpenVINOPartner
from stepper.ops import registry
from stepper.ops.emulation import EMULATED, rounded


class Narrowing(StrEnum):
    """Ways to compute in fewer bits.

    F16 and BF16: each result is rounded, and so is what is read; sums of products are made in f32. I8_WEIGHTS: the
    weights have 8 bits, all else is as before.
    """

    F16 = "f16"
    BF16 = "bf16"
    I8_WEIGHTS = "i8-weights"

    @property
    def dtype(self) -> np.dtype[Any] | None:
        """The type of each result; None where results stay as they are."""
        return _DTYPES.get(self)


_DTYPES: Final[Mapping[Narrowing, np.dtype[Any]]] = MappingProxyType({
    Narrowing.F16: np.dtype(np.float16),
    Narrowing.BF16: np.dtype(ml_dtypes.bfloat16),
})  # fmt: skip
_ENGINES: Final = MappingProxyType({Narrowing.F16: NUMPY_F16, Narrowing.BF16: NUMPY_BF16})

LOSSES: Final = MappingProxyType({Narrowing.F16: 0.01, Narrowing.BF16: 0.05, Narrowing.I8_WEIGHTS: 0.05})
"""How far an output may be off, relative to its norm, unless another number is asked for."""

LayerKey = tuple[int, int, str]
"""A layer: its line, its id and its name. Of a sequence that was opened for both directions, both have the same."""


def layer_key(layer: Layer) -> LayerKey:
    """Return the key of a layer; the same for a copy with other attributes."""
    return layer.line, layer.id, layer.name


class NarrowPartner:
    """Computes all operations but the `kept` ones in fewer bits, and those as the `plain` partner does.

    What comes out of a Parameter, a loop or an If is in fewer bits for those as well: OpenVINO converts each port of a
    body, whatever is marked.
    """

    def __init__(self, model: Model, narrowing: Narrowing, kept: Collection[LayerKey], plain: Partner | None) -> None:
        self._dtype = EMULATED[narrowing]
        self._narrow = OpenVINOPartner(_ENGINES[narrowing])
        self._plain: Partner = plain or OpenVINOPartner()
        graphs = [graph for _path, graph in model.graphs()]
        self._kept = {
            layer_key(layer): crossing_inputs(graph, layer)
            for graph in graphs
            for layer in graph.layers
            if layer_key(layer) in kept
        }

    @property
    def description(self) -> str:
        """The engine, in words."""
        return self._narrow.description

    def computes(self, layer: Layer, *, has_kernel: bool) -> bool:
        """Return True for what is narrowed or reads what is, and for what the plain partner computes."""
        crossing = self._kept.get(layer_key(layer))
        partner = self._narrow if crossing is None else self._plain
        return bool(crossing) or partner.computes(layer, has_kernel=has_kernel)

    def bind(self, layer: Layer, constants: Sequence[Array | None]) -> tuple[Callable[..., tuple[Any, ...]], str]:
        """Return the function of a layer, and who computes it."""
        crossing = self._kept.get(layer_key(layer))
        if crossing is None:
            return self._narrow.bind(layer, constants)
        kernel = None if layer.definition is None else registry.find(layer.type, layer.definition)
        if self._plain.computes(layer, has_kernel=kernel is not None) or kernel is None:
            function, who = self._plain.bind(layer, constants)
        else:
            function, who = in_tuple(kernel.bind(layer.attributes), several=kernel.several_outputs), KEPT
        dtype = self._dtype

        def compute(*inputs: Any) -> tuple[Any, ...]:
            given = (rounded(one, dtype) if index in crossing else one for index, one in enumerate(inputs))
            return function(*given)

        return compute, who


KEPT: Final = "numpy, of ports in fewer bits"
"""Who computes an operation that is left in f32 and reads a Parameter or a loop."""

_PORTS: Final = frozenset({"Parameter", "Loop", "TensorIterator", "If"})


def crossing_inputs(graph: Graph, layer: Layer) -> frozenset[int]:
    """Return the indices of the inputs that come out of a Parameter, a loop or an If."""
    sources = enumerate(graph.sources[layer.id])
    return frozenset(index for index, one in sources if one is not None and graph.by_id[one.layer].type in _PORTS)


def in_tuple(function: Callable[..., Any], *, several: bool) -> Callable[..., tuple[Any, ...]]:
    """Return a kernel's function that gives a tuple, also of one output."""
    return function if several else lambda *inputs: (function(*inputs),)


def narrowed_operations(compiled: CompiledModel) -> list[Operation]:
    """Return the operations, in their order, that fewer bits may change: those that take or give floats."""
    found: dict[LayerKey, Operation] = {}
    for program in compiled.programs:
        for operation in (*program.folded, *program.operations):
            if not operation.plans and _is_of_floats(operation.layer):
                found.setdefault(layer_key(operation.layer), operation)
    return list(found.values())


def _is_of_floats(layer: Layer) -> bool:
    """Return True if a port is of floats, or of a type that the file does not say."""
    types = [port.element_type for port in (*layer.inputs, *layer.outputs)]
    return any(one is None or is_floating(one.dtype) for one in types)
