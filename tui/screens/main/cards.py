"""The cards that stand below the graph in place of the value: why the run stopped, and what a command answered."""

from __future__ import annotations

import textwrap
from typing import ClassVar, Final

import numpy as np

from stepper.debug.causes.cause import Location, NonFinite, Trigger
from stepper.debug.causes.locations import address_at
from stepper.debug.causes.texts import brief, chain_facts, further, how_sentence, name_of, title
from stepper.debug.inspection.views import ValueView
from stepper.element_types import Array
from stepper.engine.program import mark_of
from stepper.ir.model import LayerSite
from stepper.ops.operands import form_text
from stepper.plain_values import storable
from stepper.tensors.number_text import fitted
from stepper.tensors.statistics import statistics
from tui.paint.link_pane import LinkPane
from tui.paint.links import Destination, LinkedValue, key_words, linked, value_destination
from tui.paint.names import layer_name, operation_names
from tui.paint.rows import Row, clip, printable, spread
from tui.screens.main.value import MOST_AT_ONCE, vector_rows
from tui.state import State
from tui.theme import GLYPHS

_WIDE: Final = 66
"""Cells from which on types and shapes have room."""
_KEYS: Final = (
    ("why {op}", "origin"),
    ("reverse-next", "one op back"),
    ("explain", "explain"),
    ("reverse-continue", "to the last stop"),
    ("continue", "continue"),
)
"""Commands, whose keys are named, and what they lead to."""


def is_stop(state: State) -> bool:
    """True if there is something to say about why the run stands here."""
    return bool(state.failure) or (state.stop is not None and state.stop.is_interrupted)


class StopCard(LinkPane):
    """Where, how many of how many elements, the inputs, and what was found. The one heading that is red."""

    DEFAULT_CSS = "StopCard { border-top: solid $error; }"
    kind: ClassVar[str] = "stop"
    help_text: ClassVar[str] = (
        "Why the run stopped: the operation, what is in its output, what is in its inputs.\n"
        "Down and up choose a value, a place or a fact; Enter opens the value, or goes to the place."
    )

    def heading(self, width: int) -> list[Row]:
        """The cause of the stop, in red."""
        state = self.state
        cause = None if state.stop is None else state.stop.cause
        words, note = "error of the run", ""
        if not state.failure and cause is not None:
            words, note = title(cause, is_short=width < _WIDE), name_of(cause)
            if width < _WIDE:
                note = (str(cause.number) if cause.trigger is Trigger.BREAKPOINT else note).rjust(2)
        room = width - 9 - len(note)
        head: Row = [
            (GLYPHS["focus"] if self.has_focus else " ", "bad"),
            ("stop   ", "bad"),
            (clip(printable(words), room), "bad"),
        ]
        return [spread(head, [(note, "note")], width)]

    def rows(self, width: int) -> list[Row]:
        """Return the facts, one a line."""
        if self.state.failure:
            lines = [printable(line) for line in self.state.failure.splitlines()]
            wrapped = [part for line in lines for part in textwrap.wrap(line, width - 4) or [""]]
            rows: list[Row] = [[("  ", ""), (line, "")] for line in wrapped[:8]]
            return [*rows, [], self._keys(width)]
        rows = self._operation_rows(width)
        how = self._how_rows(width)
        return [*rows, *(how or self._detail_rows(width)), [], self._keys(width)]

    def _detail_rows(self, width: int) -> list[Row]:
        """Return the facts beside the heading."""
        stop = self.state.stop
        texts = [text for cause in (() if stop is None else stop.causes) for text in further(cause)]
        return [row for text in texts[:3] for row in _fact("found", printable(text), width)]

    def _how_rows(self, width: int) -> list[Row]:
        """How a NaN or an Inf appears, and where what is dirty in the inputs was born."""
        cause = None if self.state.stop is None else self.state.stop.cause
        if not isinstance(cause, NonFinite):
            return []
        facts = [("how", how_sentence(cause), self._here())]
        birth = self._going_to(cause.chain.links[-1].location) if cause.chain.links else Destination()
        facts += [(word, text, birth) for word, text in chain_facts(cause.chain, self._short_name)]
        if cause.last_clean is not None:
            clean = f"the last finite op is {brief(cause.last_clean, self._short_name)}"
            facts.append(("clean", clean, self._going_to(cause.last_clean)))
        return [
            linked(row, target) for word, text, target in facts if text for row in _fact(word, printable(text), width)
        ]

    def _here(self) -> Destination:
        """Return what opens the value at which the run stopped."""
        frame = self.state.frames[-1] if self.state.frames else None
        if frame is None or frame.last < 0 or not frame.layers[frame.last].outputs:
            return Destination()
        return Destination("open {op}", LinkedValue(frame.program, frame.layers[frame.last]))

    def _going_to(self, location: Location) -> Destination:
        """Return what goes to the moment of a place."""
        found = address_at(location, self.host.driver.compiled)
        return Destination() if found is None else Destination(f"goto {found}")

    def _short_name(self, site: LayerSite) -> str:
        """Return an operation's name as the lists write it; of one in a graph that does not run, its own."""
        for frame in reversed(self.state.frames):
            for index, layer in enumerate(frame.layers):
                if (layer.id, layer.name, layer.line) == (site.id, site.name, site.line):
                    return operation_names(frame.program)[index]
        return site.name

    def _keys(self, width: int) -> Row:
        shown = _KEYS if width >= _WIDE else _KEYS[:3]
        words = key_words(shown, self.kind, self.host.keymap)
        return [("  ", ""), *(cell for word in words for cell in (*word, ("   ", "")))]

    def _operation_rows(self, width: int) -> list[Row]:
        state = self.state
        frame = state.frames[-1] if state.frames else None
        if frame is None or state.view is None or state.view.done is None or frame.last < 0:
            return []
        name = operation_names(frame.program)[frame.last]
        iteration = "" if frame.iteration is None else f"@{frame.iteration}"
        rows: list[Row] = []
        by = state.view.done.computed_by
        rows += _fact(mark_of(by), f"computed by {by}", width) if by else []
        for output in state.view.done.outputs[:1]:
            row: Row = [(f"  {clip(name, 24)}", "strong"), (iteration, ""), ("  ", "")]
            rows.append(linked([*row, *_described(output.array, width, with_place=True)], self._here()))
        for place, value in enumerate(state.view.done.inputs[:3]):
            row = [("  " + ("its inputs" if not place else "").ljust(12), "dim"), (f"{_source(value)}  ", "")]
            rows.append(linked([*row, *_described(value.array, width)], value_destination(frame.program, value)))
            if value.array is not None and _is_odd(value.array):
                rows += [[("  ", ""), *line] for line in vector_rows(self, value.array, width - 4)[:3]]
        return rows


def _source(value: ValueView) -> str:
    return printable(value.name) if value.layer is None else clip(layer_name(value.layer), 24)


def _fact(word: str, sentence: str, width: int) -> list[Row]:
    """Return a sentence behind its word, in two lines at most."""
    parts = textwrap.wrap(sentence, max(width - 14, 20))[:2]
    return [[("  " + (word if not place else "").ljust(12), "dim"), (part, "")] for place, part in enumerate(parts)]


def _count(array: Array) -> tuple[int, int]:
    """Return how many elements are NaN, and how many infinite."""
    if array.size > MOST_AT_ONCE:
        return 0, 0
    found = statistics(array)
    return found.nan, found.infinite


def _described(array: Array | None, width: int, *, with_place: bool = False) -> Row:
    """Type, shape, and what is not ordinary in it; `with_place`: where the first such element is."""
    if array is None:
        return [("no value", "dim")]
    row: Row = [(form_text(array) if width >= _WIDE else "", "dim")]
    if array.size > MOST_AT_ONCE:
        return row
    found = statistics(array)
    if found.nan or found.infinite:
        row.append((": " if width >= _WIDE else "", "dim"))
        for word, count in (("NaN", found.nan), ("Inf", found.infinite)):
            if count:
                row += [(f"{count} {word}", "bad"), (f" of {found.size}  ", "dim")]
        if with_place:
            first = np.argwhere(~np.isfinite(storable(array).astype(np.float64)))[0]
            row += [("first ", "dim"), (f"[{','.join(str(int(at)) for at in first)}]", "")]
        return row
    if found.min is not None and found.max is not None:
        shown = fitted(found.min) if found.size == 1 else f"{fitted(found.min)} to {fitted(found.max)}"
        row += [(": " if width >= _WIDE else "", "dim"), (shown, "")]
    return row


def _is_odd(array: Array) -> bool:
    if array.size > MOST_AT_ONCE or not array.ndim:
        return False
    found = statistics(array)
    return found.finite < found.size
