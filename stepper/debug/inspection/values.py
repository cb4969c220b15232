"""Values and operations of a frame as a stop shows them: where each comes from, and its array if it has one now."""

from __future__ import annotations

from stepper.debug.inspection.views import OperationView, Origin, ValueView
from stepper.debug.iterations import slots
from stepper.engine.frames import Frame
from stepper.engine.program import Operation, Program
from stepper.ir.model import Layer, Source


def value_view(frame: Frame, source: Source | None, name: str = "") -> ValueView:
    """Return the value of an output of a layer in this frame; known by the layer's name unless another is given."""
    if source is None:
        return ValueView(name, None, 0, Origin.NOTHING, "not connected", None, "not connected")
    program = frame.program
    layer = program.graph.by_id[source.layer]
    slot = program.slots.get((source.layer, source.output), -1)
    return ValueView(
        name=name or layer.name,
        layer=layer,
        output=source.output,
        origin=_origin(program, layer, slot),
        source=source_text(layer, source.output),
        array=slots.current(frame, slot),
        absent=slots.why_absent(frame, slot),
    )


def _origin(program: Program, layer: Layer, slot: int) -> Origin:
    if layer.type == "Constant":
        return Origin.CONSTANT
    if layer.type == "Parameter":
        return Origin.PARAMETER
    return Origin.OPERATION if slot in program.computed_at else Origin.FOLDED


def source_text(layer: Layer, output: int) -> str:
    """Which layer computes a value, in words: `LSTMCell 'cell', output 1`."""
    port = f", output {output}" if len(layer.outputs) > 1 else ""
    return f"{layer.type} '{layer.name}'{port}"


def result_view(frame: Frame, result: Layer) -> ValueView:
    """Return the value of a Result, known by the Result's name."""
    return value_view(frame, frame.program.graph.sources[result.id][0], result.name)


def input_view(frame: Frame, layer: Layer, index: int) -> ValueView:
    """Return the value at an input of a layer."""
    sources = frame.program.graph.sources[layer.id]
    return value_view(frame, sources[index] if index < len(sources) else None)


def operation_view(frame: Frame, index: int) -> OperationView:
    """Return the operation at this place in the order of the frame's graph."""
    operation: Operation = frame.program.operations[index]
    layer = operation.layer
    return OperationView(
        layer=layer,
        index=index,
        inputs=tuple(value_view(frame, source) for source in frame.program.graph.sources[layer.id]),
        outputs=tuple(
            value_view(frame, Source(layer.id, output), _output_name(layer, output))
            for output in range(len(layer.outputs))
        ),
        computed_by=operation.computed_by,
    )


def _output_name(layer: Layer, output: int) -> str:
    return layer.name if len(layer.outputs) == 1 else f"{layer.name}:{output}"
