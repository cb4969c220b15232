"""A model's text in the runtime: compiled for the types and shapes of the inputs that come, and run on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stepper import element_types
from stepper.element_types import Array
from stepper.errors import KernelError
from stepper.ir.model import Calls
from stepper.openvino.layers import PreparedRequest
from stepper.openvino.runtime import Runtime
from stepper.openvino.tensors import to_array, to_tensor
from stepper.openvino.texts.model_text import NativeText

if TYPE_CHECKING:
    import openvino


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
        self._taken: list[tuple[tuple[int, ...], np.dtype[Any]]] = []

    def __call__(self, *inputs: Any) -> tuple[Array, ...]:
        """Return the outputs, in the order of the model's Results."""
        return self._ready(inputs).infer(inputs)

    def views(self, *inputs: Any, lends: bool = False) -> Sequence[Array]:
        """Return the same, good until the next call; `lends`: nobody else has the inputs."""
        return self._ready(inputs).views(inputs, lends=lends)

    def _ready(self, inputs: Sequence[Any]) -> PreparedRequest:
        """Return a request for these inputs, with the variables that they begin with."""
        given = [(array.shape, array.dtype) for array in inputs]
        request = self._request
        if request is None or given != self._taken:
            shapes = [array.shape for array in inputs]
            if request is None or not self._takes(shapes):
                self._request = None  # one at a time: a model may be large
                self._request = request = self._compiled(shapes)
                self._has_variables = bool(request.variables())
            self._check_types(inputs)
            self._taken = given
        if self._has_variables:
            self._set_variables(request)
        return request

    def going_on(self, calls: Iterable[Sequence[Any]]) -> Iterator[tuple[Array, ...]]:
        """Yield the outputs of calls, each of which begins with the variables as the one before has left them."""
        first = self._states
        try:
            for inputs in calls:
                yield self(*inputs)
                if self._request is not None and self._has_variables:
                    # a request that is compiled anew, for another shape, would have none of them
                    self._states = {one.name: np.array(to_array(one.state)) for one in self._request.variables()}
        finally:
            self._states = first

    def _check_types(self, inputs: Sequence[Any]) -> None:
        for wanted, array in zip(self._types, inputs, strict=True):
            if element_types.of(array).name != wanted:
                raise KernelError(f"OpenVINO expects {wanted}, not {element_types.of(array)}")

    def _compiled(self, shapes: Sequence[tuple[int, ...]]) -> PreparedRequest:
        """Return a request for these shapes; for those before, too, unless OpenVINO refuses that."""
        if self._shapes:
            try:
                return self._compiled_for(_opened(self._shapes, shapes))
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

    def _set_variables(self, request: PreparedRequest) -> None:
        """Have variables not go on from the call before."""
        request.forget()
        for variable in request.variables():
            if variable.name in self._states:
                variable.state = to_tensor(self._states[variable.name])

    def _takes(self, shapes: Sequence[tuple[int, ...]]) -> bool:
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


def _opened(earlier: Sequence[openvino.PartialShape], shapes: Sequence[tuple[int, ...]]) -> list[list[int]]:
    """Return shapes with -1 for each dimension that is open already, or was another one."""
    found = []
    for before, shape in zip(earlier, shapes, strict=True):
        same = before.rank.is_static and len(before) == len(shape)
        dims = zip(before, shape, strict=True) if same else ()
        found.append([size if dim == size else -1 for dim, size in dims] if same else list(shape))
    return found


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
