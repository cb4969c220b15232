"""The selected operation as a node: its attributes, what it reads and what reads it, each with its value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from stepper import element_types
from stepper.debug.inspection.views import FrameView, Origin, ValueView
from stepper.element_types import Array
from stepper.ir.model import Layer
from stepper.ops.operands import shape_text
from tui.paint.link_pane import LinkPane
from tui.paint.links import Destination, linked, value_destination
from tui.paint.names import layer_name, operation_names
from tui.paint.rows import Row, clip, padded, printable
from tui.screens.graph.cells import value_text
from tui.state import State

_NAMES: Final = (14, 30)
_TYPE: Final = 16
_MOST_READERS: Final = 64
_WORDY: Final = {Origin.CONSTANT: "constant", Origin.PARAMETER: "parameter", Origin.FOLDED: "folded"}


class NodeProperties(LinkPane):
    """A row an input, then a row a reader."""

    kind: ClassVar[str] = "node"
    help_text: ClassVar[str] = (
        "The selected operation: its attributes, what it reads and what reads it, with types and values.\n"
        "Enter on an operation selects it."
    )

    def update(self, state: State) -> None:
        """Another operation begins at its first input."""
        before, self.state = self.state, state
        if state.cursor != before.cursor or state.frame is None:
            self.top = self._chosen = 0
        self.changed()

    def heading(self, width: int) -> list[Row]:
        """Return type and attributes."""
        frame, cursor = self.state.frame, self.state.cursor
        self.title = self.note = ""
        if frame is None or cursor is None:
            return []
        layer = frame.layers[cursor]
        self.title = layer.type
        said = [f"{name} {text}" for name, text in layer.attributes.items() if text]
        words = [*said, f"line {layer.line}"]
        self.note = clip(printable("  ".join(words)), max(width - len(self.title) - 4, 0))
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return a row for each input and each reader."""
        frame, cursor = self.state.frame, self.state.cursor
        if frame is None or cursor is None:
            return []
        room = min(max(width // 3, _NAMES[0]), _NAMES[1])
        found = [self._input(frame, value, room, width) for value in frame.operation(cursor).inputs]
        found += [self._reader(frame, layer, room, width) for layer in self._readers(frame, frame.layers[cursor])]
        return found

    def _readers(self, frame: FrameView, layer: Layer) -> Iterator[Layer]:
        readers = dict.fromkeys(reader.id for reader, _ in frame.graph.readers.get(layer.id, ()))
        yield from (frame.graph.by_id[reader] for reader in list(readers)[:_MOST_READERS])

    def _input(self, frame: FrameView, value: ValueView, room: int, width: int) -> Row:
        name = "not connected" if value.layer is None else self._called(frame, value.layer)
        text = value.absent if value.array is None else ""
        row = self._row("reads", name, value.array, text or _WORDY.get(value.origin, ""), room, width)
        return linked(row, self._destination(frame, value))

    def _destination(self, frame: FrameView, value: ValueView) -> Destination:
        """Return what selects the operation that gives a value; of a Parameter or Constant, what opens the value."""
        index = None if value.layer is None else self._index(frame, value.layer)
        return value_destination(frame.program, value) if index is None else Destination(f"select {index}")

    def _reader(self, frame: FrameView, layer: Layer, room: int, width: int) -> Row:
        index = self._index(frame, layer)
        if index is None:
            return self._row("read by", self._called(frame, layer), None, layer.type, room, width)
        array = frame.output(index).array if layer.outputs else None
        text = "" if array is not None else "not computed yet"
        row = self._row("read by", operation_names(frame.program)[index], array, text, room, width)
        return linked(row, Destination(f"select {index}"))

    def _row(self, word: str, name: str, array: Array | None, text: str, room: int, width: int) -> Row:
        type = "" if array is None else f"{element_types.name_of(array.dtype)}{shape_text(array.shape)}"
        left: Row = [(f" {word:<8}", "dim"), (padded(name, room + 1), ""), (padded(type, _TYPE + 1), "dim")]
        rest = width - 9 - room - 1 - _TYPE - 1
        shown = "" if array is None else value_text(array, max(rest - len(text) - 1, 0))
        return [*left, (f"{shown} " if shown else "", "bar"), (clip(text, max(rest - len(shown) - 1, 0)), "dim")]

    def _called(self, frame: FrameView, layer: Layer) -> str:
        index = self._index(frame, layer)
        if index is not None:
            return operation_names(frame.program)[index]
        return layer_name(layer)

    def _index(self, frame: FrameView, layer: Layer) -> int | None:
        slot = frame.program.slots.get((layer.id, 0), -1)
        index = frame.program.computed_at.get(slot)
        return index if index is not None and frame.layers[index].id == layer.id else None
