"""A model's text in the runtime: compiled for the types and shapes of the inputs that come, and run on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stepper.element_types import Array
from stepper.openvino.native_text import NativeText
from stepper.openvino.runtime import Runtime
from stepper.openvino.tensors import to_tensor

if TYPE_CHECKING:
    import openvino


class CompiledText:
    """A model as a function from its inputs to its outputs, in this process.

    It is compiled for the shapes that its Parameters declare, and anew for inputs that these exclude. What has open
    dimensions is thus one compiled model for all sizes, as the body of a loop is in the runtime: what a kernel keeps
    from a smaller size shows. Each call begins with the variables in `states`, all others as the model has them.
    RuntimeError with OpenVINO's words where it refuses, KernelError for inputs of other
    types.
    """

    def __init__(self, runtime: Runtime, text: NativeText, states: Mapping[str, Array] | None = None) -> None:
        self._runtime, self._text, self._states = runtime, text, dict(states or {})
        self._request: openvino.InferRequest | None = None
        self._shapes: list[openvino.PartialShape] = []

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """Return the outputs, in the order of the model's Results."""
        if self._request is None or not self._takes(inputs):
            self._request = None  # one at a time: a model may be large
            model = self._runtime.read(*self._text, is_kept=True)
            _fit(model, inputs)
            self._shapes = [port.get_partial_shape() for port in model.inputs]
            self._request = self._runtime.request(model)
        self._set_variables(self._request)
        return tuple(self._runtime.infer(self._request, inputs))

    def _set_variables(self, request: openvino.InferRequest) -> None:
        """Have variables not go on from the call before."""
        variables = request.query_state()
        if variables:
            request.reset_state()
        for variable in variables:
            if variable.name in self._states:
                variable.state = to_tensor(self._states[variable.name])

    def _takes(self, inputs: Sequence[Any]) -> bool:
        import openvino

        pairs = zip(self._shapes, inputs, strict=True)
        return all(shape.compatible(openvino.PartialShape(list(array.shape))) for shape, array in pairs)


def _fit(model: openvino.Model, inputs: Sequence[Any]) -> None:
    """Let the Parameters have the shapes that come, where the declared ones exclude them (a body's are not binding)."""
    import openvino

    shapes = {}
    for port, array in zip(model.inputs, inputs, strict=True):
        if not port.get_partial_shape().compatible(openvino.PartialShape(list(array.shape))):
            shapes[port] = openvino.PartialShape(list(array.shape))
    if shapes:
        model.reshape(shapes)
