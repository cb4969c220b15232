"""Which value is looked at: it stays the same while the run moves, and is found again in every new picture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepper.engine.program import legend
from stepper.records import Record
from tui.paint.names import carried_name, layer_name, operation_names

if TYPE_CHECKING:
    from stepper.debug.inspection.views import FrameView, ValueView
    from stepper.element_types import Array
    from stepper.engine.program import CompiledModel, Program
    from stepper.ir.model import Layer
    from tui.state import State


class Subject(Record, eq=False):
    """A value of an operation: `place` counts its outputs, then its inputs. Without a program, outputs of the model.

    With a `layer` it is the output of that, such as a Parameter, and `operation` has no meaning.
    """

    program: Program | None
    operation: int
    place: int
    layer: Layer | None = None

    @property
    def key(self) -> tuple[int, int, int, int]:
        """Tells it from others."""
        if self.layer is not None:
            return id(self.program), -1, 0, self.layer.id
        return id(self.program), self.operation, self.place, -1


class ShownValue(Record, eq=False):
    """A subject at a moment. `array` is None where there is none; `is_old`: it is of the iteration before.

    `role` says what it is of its operation; `why` why there is none, or why it is old. `address` is how it is written
    at the prompt (empty for outputs of the model), `run` the place of its loop. `source` is the id of the layer that
    computes it, and which of its outputs it is.
    """

    name: str
    role: str
    array: Array | None
    why: str = ""
    is_old: bool = False
    address: str = ""
    iteration: int | None = None
    run: str = ""
    others: int = 1
    source: tuple[int, int] | None = None


def frame_of(state: State, program: Program | None) -> FrameView | None:
    """Return the frame in which a graph runs now."""
    return next((frame for frame in state.frames if frame.program is program), None)


def chosen(state: State, before: Subject | None, beside: int | None) -> Subject | None:
    """Return the value to show: that of before, unless something else was selected meanwhile.

    `beside` is the operation that was selected already when the value was opened.
    """
    frame, cursor = state.frame, state.cursor
    if frame is None or cursor is None:
        ended = state.view is not None and state.view.outputs is not None
        if not ended or (before is not None and before.program is None):
            return before
        return Subject(None, 0, 0)
    if before is None or before.program is None:
        return Subject(frame.program, cursor, 0)
    own = None if before.layer is not None else before.operation
    if frame.program is before.program and state.selected not in (None, own, beside):
        return Subject(frame.program, cursor, 0)
    return before


def shown(state: State, subject: Subject, compiled: CompiledModel) -> ShownValue:
    """Return the subject as it is now."""
    if subject.program is None:
        return _model_output(state, subject.place)
    frame = frame_of(state, subject.program)
    layer = subject.layer or subject.program.operations[subject.operation].layer
    if frame is None:
        where = subject.program.path[-1].name if subject.program.path else state.model
        return ShownValue(layer_name(layer), "", None, f"'{where}' does not run here")
    if subject.layer is not None:
        value = frame.value(subject.layer.id)
        return _held(frame, value, _source_name(frame, value), str(value.origin), 1, compiled)
    view = frame.operation(subject.operation)
    values = [*view.outputs, *view.inputs]
    place = subject.place if subject.place < len(values) else 0
    if not values:
        return ShownValue(layer_name(layer), "", None, "it has neither inputs nor outputs")
    return _shown(frame, subject, values[place], place, len(view.outputs), len(values), compiled)


def _shown(
    frame: FrameView, subject: Subject, value: ValueView, place: int, outputs: int, count: int, compiled: CompiledModel
) -> ShownValue:
    name = operation_names(frame.program)[subject.operation]
    if place < outputs:
        role = f"output {place}" if outputs > 1 else "output"
        by = frame.program.operations[subject.operation].computed_by
        role += f", {legend(by)}" if by else ""
        title = f"{name}:{place}"
    else:
        role = f"input {place - outputs} of {name}: {value.origin}"
        title = _source_name(frame, value)
    return _held(frame, value, title, role, count, compiled)


def _held(frame: FrameView, value: ValueView, title: str, role: str, count: int, compiled: CompiledModel) -> ShownValue:
    """Return a value as the frame has it now."""
    if value.layer is None:
        return ShownValue(title, role, None, "not connected", others=count)
    array, why, old = value.array, value.absent, False
    iteration = frame.iteration
    if array is None:
        kept = frame.kept(value.layer.id, value.output)
        if kept is not None and iteration is not None and iteration > 0:
            array, old, iteration = kept, True, iteration - 1
    address = frame.address_of(value.layer, value.output, compiled)
    run = f"{id(frame.program)}/{frame.depth}"
    source = value.layer.id, value.output
    return ShownValue(title, role, array, why, old, address, iteration, run, count, source)


def _source_name(frame: FrameView, value: ValueView) -> str:
    layer = value.layer
    if layer is None:
        return value.name
    index = next((at for at, other in enumerate(frame.layers) if other.id == layer.id), None)
    if index is not None:
        return f"{operation_names(frame.program)[index]}:{value.output}"
    return carried_name(layer) if layer.type == "Parameter" else layer_name(layer)


def _model_output(state: State, place: int) -> ShownValue:
    outputs = state.view.outputs if state.view is not None else None
    if not outputs:
        return ShownValue("output", "", None, "the run has not ended")
    place = min(place, len(outputs) - 1)
    return ShownValue(f"output {place}", "output of the model", outputs[place], others=len(outputs))


def is_same(one: Array | None, other: Array | None) -> bool:
    """True if two views are of the same elements in memory, so that nothing need be looked at again."""
    if one is None or other is None or one is other:
        return one is other
    same = one.__array_interface__["data"] == other.__array_interface__["data"]
    return same and one.shape == other.shape and one.strides == other.strides and one.dtype == other.dtype
