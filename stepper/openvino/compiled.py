"""A model's text in the runtime: compiled for the types and shapes of the inputs that come, and run on them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stepper.element_types import Array
from stepper.openvino.native_text import NativeText
from stepper.openvino.runtime import Runtime

if TYPE_CHECKING:
    import openvino


class CompiledText:
    """A model as a function from its inputs to its outputs, in this process; compiled anew where their shapes change.

    RuntimeError with OpenVINO's words where it refuses, KernelError for inputs of other types.
    """

    def __init__(self, runtime: Runtime, text: NativeText) -> None:
        self._runtime, self._text = runtime, text
        self._requests: dict[Any, openvino.InferRequest] = {}

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """The outputs, in the order of the model's Results."""
        return tuple(self._runtime.infer(self._request(inputs), inputs))

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
