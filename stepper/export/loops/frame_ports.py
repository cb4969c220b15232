"""Ports on the rim of the frame of a loop or If: which inputs and outputs have one, and what stands beside it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from stepper.engine.loops import Control, ControlOrigin, control, control_inputs
from stepper.export.figures.content import FigureContent
from stepper.export.figures.figure import FramePort
from stepper.export.figures.labels import references_of, shortened
from stepper.export.figures.loop_facts import has_limit
from stepper.export.figures.operands import constant_text
from stepper.export.options import ConstantStyle
from stepper.ir.model import Body, Graph, Layer, Source
from stepper.wording import excerpt

_LONGEST = 20


class WayToEnd(NamedTuple):
    """An input that ends a loop: its trip count, or slices, which are used up."""

    input: int
    words: str


class FramePorts:
    """The ports of one layer with bodies that stands in the graph `outer`."""

    def __init__(self, content: FigureContent, layer: Layer, outer: Graph) -> None:
        self._content, self._layer, self._outer = content, layer, outer
        self._names = references_of(outer)
        found = Control() if content.model is None else control(content.model, outer, layer)
        self._controls: dict[int, tuple[str, ControlOrigin | None]] = {}
        if layer.type == "Loop":
            trip_count, condition = control_inputs(layer, layer.bodies[0], outer)
            if trip_count is not None:
                self._controls[trip_count] = "trip count", found.trip_count
            if condition is not None:
                self._controls[condition] = "condition", found.condition
        elif layer.type == "If":
            self._controls[0] = "condition", found.condition
        self._slices = found.slices_of

    @property
    def ways_to_end(self) -> tuple[WayToEnd, ...]:
        """The inputs that end the loop."""
        for index, (word, origin) in self._controls.items():
            if word == "trip count" and has_limit(origin):
                return (WayToEnd(index, "count reached: ends"),)
        return tuple(WayToEnd(index, "last slice: ends") for index in self._slices[:1])

    def drawn(self, inner: Callable[[Body, int], str], marks: Mapping[int, tuple[str, ...]]) -> tuple[FramePort, ...]:
        """Return all ports; `inner` gives the box of a Parameter or Result, `marks` the end marks by input."""
        return (*self._inputs(inner, marks), *self._outputs(inner))

    def to_mark(self, way: WayToEnd, mark: str) -> FramePort:
        """Return the port of an input that ends the loop, from which a wire leads to the mark alone."""
        source = self._outer.sources[self._layer.id][way.input]
        words = () if source is None else tuple(self._words(way.input, source))
        return FramePort(way.input, words, (mark,))

    def _inputs(self, inner: Callable[[Body, int], str], marks: Mapping[int, tuple[str, ...]]) -> Iterator[FramePort]:
        for index, source in enumerate(self._outer.sources[self._layer.id]):
            ends = [
                inner(body, entry.parameter)
                for body in self._layer.bodies
                for entry in body.inputs
                if entry.input == index
            ]
            ends += marks.get(index, ())
            if source is not None and (ends or self._is_drawn(index)):
                yield FramePort(index, tuple(self._words(index, source)), tuple(dict.fromkeys(ends)))

    def _is_drawn(self, index: int) -> bool:
        """True for a control input that is not the usual constant: no limit, or true."""
        if index not in self._controls:
            return False
        word, origin = self._controls[index]
        if word == "trip count":
            return origin is not None and origin.value is None
        return origin is None or origin.value is not True

    def _words(self, index: int, source: Source) -> Iterator[str]:
        producer = self._outer.by_id[source.layer]
        written = producer.type == "Constant" and self._content.constants is not ConstantStyle.BOX
        if index in self._controls:
            word, origin = self._controls[index]
            value = "" if not written or origin is None or origin.value is None else f" {str(origin.value).lower()}"
            yield word + value
            return
        port = f"input {index}"
        model = self._content.model
        if written and model is not None and self._content.constants is ConstantStyle.INLINE:
            yield f"{port} = {constant_text(model, producer)}"
            yield f"{port} = {constant_text(model, producer, names=False)}"
        elif not written:
            yield f"{port} '{shortened(excerpt(self._names[producer.id]), _LONGEST)}'"
        yield port
        yield str(index)

    def _outputs(self, inner: Callable[[Body, int], str]) -> Iterator[FramePort]:
        for index in range(len(self._layer.outputs)):
            ends = [
                inner(body, entry.result)
                for body in self._layer.bodies
                for entry in body.outputs
                if entry.output == index
            ]
            if ends:
                yield FramePort(index, (f"output {index}", str(index)), tuple(dict.fromkeys(ends)), is_output=True)
