"""OpenVINO as the other side of a comparison: the whole model, one operation alone, one body alone.

    peer = OpenVINOPeer(model)                        # the model that is stepped through; openvino is imported here
    run = peer.run(machine_inputs)                    # the runtime's own run, with its fusions and its arithmetic
    run.outputs                                       # in the order of the model's Results
    run.iterations                                    # {(3,): 12, (3, 7): 40}: by the keys of the loops
    peer.operation(graph, layer)(*inputs)             # one operation: what it makes of the same inputs, nothing else
    peer.body(graph)(*parameters)                     # one iteration of a body (program.graph): Results in file order

`operation` separates an error made in an operation from one that came in with its inputs; `body` separates one made in
an iteration from one that was carried into it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct

from stepper.element_types import Array
from stepper.errors import ExecutionError, KernelError
from stepper.ir.constants import constant_value
from stepper.ir.model import Graph, Layer, LoopKey, Model
from stepper.openvino import native_text
from stepper.openvino.layers import LayerInOpenVINO
from stepper.openvino.native_text import NativeText
from stepper.openvino.runtime import Runtime, complaint, ensure_installed

if TYPE_CHECKING:
    import openvino

Function = Callable[..., tuple[Array, ...]]


class PeerRun(Struct, frozen=True):
    """What the runtime gave. `iterations` is how many each loop ran in all its executions together.

    There are none where the runtime refuses the model with its loops counted (`uncounted` then has its words).
    """

    outputs: tuple[Array, ...]
    iterations: Mapping[LoopKey, int]
    uncounted: str = ""


class OpenVINOPeer:
    """A model in OpenVINO. Compilations are kept: of the model, of each body, of each operation and signature.

    UsageError where OpenVINO is not installed or has no such device.
    """

    def __init__(self, model: Model, runtime: Runtime | None = None) -> None:
        ensure_installed("comparing with OpenVINO")
        self.model, self.runtime = model, runtime or Runtime()
        assert self.runtime.core, "its device is there"
        self._whole: _Compiled | None = None
        self._bodies: dict[int, _Compiled] = {}
        self._operations: dict[tuple[int, int], LayerInOpenVINO] = {}

    def run(self, inputs: Sequence[Array], *, count: bool = True) -> PeerRun:
        """The whole model on arrays in the order of its Parameters. `count`: the iterations of its loops, too.

        They are counted in a run of their own, for counting changes what OpenVINO may fuse. ExecutionError where it
        refuses or fails.
        """
        if self._whole is None:
            self._whole = _Compiled(self.runtime, native_text.whole(self.model), "the model")
        outputs = self._whole(*inputs)
        if not count:
            return PeerRun(outputs, {})
        text, paths = native_text.counted(self.model)
        if not paths:
            return PeerRun(outputs, {})
        numbers = [np.array([number], np.int32) for number in (0, 1)]
        try:
            found = _Compiled(self.runtime, text, "the model with its iterations counted")(*inputs, *numbers)
        except ExecutionError as error:
            return PeerRun(outputs, {}, str(error))
        counts = [int(value[0]) for value in found[len(outputs) :]]
        return PeerRun(outputs, dict(zip(paths, counts, strict=True)))

    def operation(self, graph: Graph, layer: Layer) -> Function:
        """One operation of a graph, as a function of all its inputs; those from Constants are settled by the model.

        The function raises KernelError where OpenVINO refuses it. Loops, Ifs and variables are not to be asked for.
        """
        key = (id(graph), layer.id)
        if key not in self._operations:
            sources = [None if source is None else graph.by_id[source.layer] for source in graph.sources[layer.id]]
            constants = [
                constant_value(self.model, source) if source is not None and source.type == "Constant" else None
                for source in sources
            ]
            self._operations[key] = LayerInOpenVINO(self.runtime, layer, constants, is_last_resort=False)
        return self._operations[key]

    def body(self, graph: Graph) -> Function:
        """One of the model's bodies, as a function of its Parameters' values, in file order; gives its Results.

        UsageError for a body that the file does not have; the function raises ExecutionError where OpenVINO refuses.
        """
        if id(graph) not in self._bodies:
            self._bodies[id(graph)] = _Compiled(self.runtime, native_text.body(self.model, graph), "the body")
        return self._bodies[id(graph)]


class _Compiled:
    """A model's text in the runtime; compiled for the inputs' types and shapes, anew where these change."""

    def __init__(self, runtime: Runtime, text: NativeText, what: str) -> None:
        self._runtime, self._text, self._what = runtime, text, what
        self._requests: dict[Any, openvino.InferRequest] = {}

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        try:
            return tuple(self._runtime.infer(self._request(inputs), inputs))
        except (RuntimeError, KernelError) as error:
            raise ExecutionError(f"OpenVINO refuses {self._what}: {complaint(error)}") from None

    def _request(self, inputs: Sequence[Any]) -> openvino.InferRequest:
        signature = tuple((array.dtype, array.shape) for array in inputs)
        if signature not in self._requests:
            model = self._runtime.read(*self._text, is_kept=True)
            _fit(model, inputs)
            self._requests = {signature: self._runtime.request(model)}  # one at a time: a model may be large
        return self._requests[signature]


def _fit(model: openvino.Model, inputs: Sequence[Any]) -> None:
    """Let the Parameters have the shapes that come, where the declared ones exclude them (a body's are not binding)."""
    import openvino

    shapes = {}
    for port, array in zip(model.inputs, inputs, strict=True):
        if not port.get_partial_shape().compatible(openvino.PartialShape(list(array.shape))):
            shapes[port] = openvino.PartialShape(list(array.shape))
    if shapes:
        model.reshape(shapes)
