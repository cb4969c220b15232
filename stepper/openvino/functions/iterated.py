"""A model on many sets of inputs with one call: as the body of a Loop of OpenVINO's own, one set for each iteration.

Each set is computed as it would be alone, for its own shapes: nothing is carried from one to the next.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stepper.element_types import Array
from stepper.openvino.functions.compiled import fit
from stepper.openvino.layers import PreparedRequest
from stepper.openvino.runtime import Runtime
from stepper.openvino.texts.model_text import NativeText

if TYPE_CHECKING:
    import openvino


class IteratedText:
    """A model as a function from inputs of many sets, stacked on a new first axis, to outputs that are stacked so.

    `stacked` says of each input whether it is; one that is not is the same for all sets. It is compiled for the types
    and shapes of a set, and anew for others. RuntimeError with OpenVINO's words where it refuses.
    """

    def __init__(self, runtime: Runtime, text: NativeText, stacked: Sequence[bool]) -> None:
        self._runtime, self._text, self._stacked = runtime.for_size(0), text, tuple(stacked)
        self._request: PreparedRequest | None = None
        self._taken: list[tuple[tuple[int, ...], np.dtype[Any]]] = []

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """Return the outputs of all sets, in the order of the model's Results."""
        request, given = self._ready(inputs)
        return request.infer(given)

    def views(self, *inputs: Any, lends: bool = False) -> Sequence[Array]:  # blocks follow each other
        """Return the same, good until the next call."""
        request, given = self._ready(inputs)
        return request.views(given)

    def _ready(self, inputs: Sequence[Any]) -> tuple[PreparedRequest, Sequence[Any]]:
        """Return a request for sets of these types and shapes, and what it takes."""
        pairs = list(zip(inputs, self._stacked, strict=True))
        given = [(array.shape[1:] if is_stacked else array.shape, array.dtype) for array, is_stacked in pairs]
        if self._request is None or given != self._taken:
            self._request = None  # one at a time: a model may be large
            model = self._runtime.read(*self._text, is_kept=True)
            fit(model, [shape for shape, _ in given])
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
