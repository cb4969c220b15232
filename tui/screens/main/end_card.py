"""The end of the run: the outputs, what ended each loop, where NaN and Inf are, what the other rules do; the keys."""

from __future__ import annotations

from collections import Counter
from typing import ClassVar, Final

import numpy as np

from stepper.element_types import Array
from stepper.engine.run import LoopSummary
from stepper.ops.operands import form_text
from stepper.plain_values import storable
from stepper.tensors.statistics import Statistics, statistics
from stepper.wording import counted
from tui.paint.link_pane import LinkPane
from tui.paint.links import Destination, key_words, linked
from tui.paint.pane import Host
from tui.paint.rows import Row, clip, clip_end, elements, printable, width_of, wrapped
from tui.screens.main.value import MOST_AT_ONCE
from tui.state import State, TimelineEventKind
from tui.theme import key_text

_WORD: Final = 12
_MOST_LOOPS: Final = 6
_MOST_NOTES: Final = 3
_KEYS: Final = (
    ("reverse-step", "back, into loops as well"),
    ("reverse-to-anomaly", "to the last anomaly"),
    ("reverse-continue", "to the last stop"),
    ("edge first", "to the start"),
    ("view events", "what happened"),
    ("export", "export"),
    ("rerun", "run anew"),
)
"""Commands, whose keys are named, and what they lead to."""


def has_ended(state: State) -> bool:
    """True if the run is at its end."""
    return state.view is not None and state.view.outputs is not None


class EndCard(LinkPane):
    """In place of the value, where no operation is left to have one."""

    DEFAULT_CSS = "EndCard { border-top: solid $foreground 14%; max-height: 60%; }"
    kind: ClassVar[str] = "end"
    title = "end of the run"
    help_text: ClassVar[str] = (
        "The outputs of the model, how many iterations each loop ran and what ended it, NaN and Inf in the outputs,\n"
        "the stops on the way, and what the other rule book would do otherwise. Enter on an output opens it, on the\n"
        "loops it goes to the last iteration, on NaN and Inf back to where the last one was made."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._known: tuple[tuple[Array, ...], list[Statistics | None]] | None = None

    def heading(self, width: int) -> list[Row]:
        """Return how many ticks it took."""
        tick = self.state.view.tick if self.state.view is not None else 0
        hidden = 0 < self.size.height < self.count(width) + 1
        keys = key_text("↓ ↑" if self.has_focus else "Tab, ↓", ascii=self.look.ascii)
        more = f"{keys} scroll   " if hidden else ""
        self.note = f"{more}{tick:,} ticks "
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """Return the facts, one a line."""
        state = self.state
        outputs = state.view.outputs if state.view is not None else None
        if outputs is None:
            return []
        rows = self._output_rows(outputs, width)
        has_loop = state.ending is not None and state.ending.last is not None
        for word, lines, line in (
            ("loops", self._loop_lines(), "open" if has_loop else ""),
            ("NaN, Inf", self._odd_lines(outputs), "reverse-to-anomaly"),
            ("on the way", self._stop_lines(), "view events"),
            ("notes", self._note_lines(width), ""),
        ):
            target = Destination(line)
            for place, (text, tone) in enumerate(lines):
                for part in wrapped(text, width - _WORD - 2):
                    head = "" if place or part != text[: len(part)] else word
                    rows.append(linked([(f" {head:<{_WORD}}", "dim"), (part, tone)], target))
        return [*rows, *self._keys(width)]

    # --- the outputs ---------------------------------------------------------------------------------------------

    def _output_rows(self, outputs: tuple[Array, ...], width: int) -> list[Row]:
        names = [clip(printable(name), 16) for name in self.state.output_names]
        room = max([_WORD - 1, *map(len, names)])
        rows: list[Row] = []
        for name, output in zip(names, outputs, strict=True):
            kind = form_text(output)
            shown = elements(storable(output), width - room - len(kind) - 5)
            row: Row = [(f" {name:<{room}} ", "strong"), (f"{kind}  ", "dim"), (shown, "bar")]
            rows.append(linked(row, Destination(f"open-output {len(rows)}")))
        return rows

    def _statistics(self, outputs: tuple[Array, ...]) -> list[Statistics | None]:
        if self._known is None or self._known[0] is not outputs:
            self._known = outputs, [statistics(one) if one.size <= MOST_AT_ONCE else None for one in outputs]
        return self._known[1]

    def _odd_lines(self, outputs: tuple[Array, ...]) -> list[tuple[str, str]]:
        lines: list[tuple[str, str]] = []
        for name, array, found in zip(self.state.output_names, outputs, self._statistics(outputs), strict=True):
            if found is None:
                lines.append((f"{printable(name)}: not looked through, {array.size:,} elements", "dim"))
                continue
            counts = (("NaN", found.nan), ("Inf", found.infinite))
            words = [f"{count:,} {word}" for word, count in counts if count]
            if words:
                first = np.argwhere(~np.isfinite(storable(array).astype(np.float64)))[0]
                place = f"first [{','.join(map(str, first.tolist()))}]"
                lines.append((f"{printable(name)}: {', '.join(words)} of {found.size:,}, {place}", "bad"))
        return lines or [("none in the outputs", "")]

    # --- what happened -------------------------------------------------------------------------------------------

    def _loop_lines(self) -> list[tuple[str, str]]:
        ending = self.state.ending
        if ending is None:
            return []
        lines = [(_loop_text(loop), "") for loop in ending.loops[:_MOST_LOOPS]]
        more = len(ending.loops) - _MOST_LOOPS
        lines += [(f"and {more} more", "dim")] if more > 0 else []
        if ending.is_partial:
            lines.append(("those that ended before, or in another branch, are not counted", "dim"))
        return lines or [("none", "dim")]

    def _stop_lines(self) -> list[tuple[str, str]]:
        """How often which breakpoint has stopped the run, and edits."""
        stops = Counter(event.breakpoint for event in self.state.events if event.kind is TimelineEventKind.STOP)
        edits = sum(event.kind is TimelineEventKind.EDIT for event in self.state.events)
        words = [f"breakpoint {number} stopped {_times(count)}" for number, count in stops.items()]
        words += [f"edited {_times(edits)}"] if edits else []
        return [(", ".join(words), "")] if words else []

    def _note_lines(self, width: int) -> list[tuple[str, str]]:
        """Return each text once, with how many places there are."""
        ending = self.state.ending
        texts = Counter(note.text for note in ending.notes) if ending is not None else Counter()
        lines = []
        for text, count in list(texts.items())[:_MOST_NOTES]:
            lines.append((clip_end(printable(text) + (f" ({count} places)" if count > 1 else ""), 2 * width), ""))
        more = len(texts) - _MOST_NOTES
        return [*lines, *([(f"and {more} more", "dim")] if more > 0 else [])]

    def _keys(self, width: int) -> list[Row]:
        rows: list[Row] = [[], [(" ", "")]]
        for button in key_words(_KEYS, "operations", self.host.keymap):
            more: Row = [*button, ("   ", "")]
            if width_of(rows[-1]) + width_of(more) - 3 > width:
                rows.append([(" ", "")])
            rows[-1] = [*rows[-1], *more]
        return rows


def _loop_text(loop: LoopSummary) -> str:
    reasons = ", ".join(
        f"{reason} ({count:,}×)" if loop.executions > 1 else str(reason) for reason, count in loop.ended.items()
    )
    name = printable(loop.path.removeprefix("model > "))
    if loop.executions == 1:
        return f"{name}: {counted(loop.iterations, loop.word)}, {reasons}"
    spread = f"{loop.fewest:,}" if loop.fewest == loop.most else f"{loop.fewest:,} to {loop.most:,}"
    return f"{name}: entered {loop.executions:,} times, {spread} iterations each, {loop.iterations:,} in all; {reasons}"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count:,} times"
