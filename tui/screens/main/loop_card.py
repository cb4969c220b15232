"""The loop in eight lines: which iteration, of how many, what ends it, and what the condition said so far."""

from __future__ import annotations

from typing import ClassVar, Final, NamedTuple

from stepper.debug.inspection.views import LoopView
from stepper.debug.run_summary import RunSummary
from stepper.engine.loops import EndReason
from stepper.wording import counted
from tui.paint.link_pane import LinkPane
from tui.paint.links import Destination, linked, value_destination
from tui.paint.names import layer_name
from tui.paint.rows import Cell, Row, clip, printable, spread
from tui.screens.main.frames import COUNTED, loop_title, verdict_words
from tui.state import Running
from tui.theme import GLYPHS

_DOTS: Final = {
    "0": "75557",
    "1": "26227",
    "2": "71747",
    "3": "71717",
    "4": "55711",
    "5": "74717",
    "6": "74757",
    "7": "71122",
    "8": "75757",
    "9": "75717",
    "-": "00700",
}
"""Three by five dots a digit, one octal figure a row."""
_MOST_ENDED: Final = 4
_HALVES: Final = {"██": "█", "█ ": "▀", " █": "▄", "  ": " "}


_WORDS: Final = 26
"""Columns for the words beside the number."""


def digits(text: str) -> list[str]:
    """Return a number three rows high, in half blocks."""
    lines = [
        " ".join("".join("█" if int(_DOTS[letter][row]) >> bit & 1 else " " for bit in (2, 1, 0)) for letter in text)
        for row in range(5)
    ]
    lines.append(" " * len(lines[0]))
    pairs = [(lines[row], lines[row + 1]) for row in (0, 2, 4)]
    return ["".join(_HALVES[a + b] for a, b in zip(upper, lower, strict=True)) for upper, lower in pairs]


def _drawn(text: str, width: int) -> list[str]:
    """Return a number three rows high, large where the words beside it have room."""
    big = digits(text)
    return big if len(big[0]) + _WORDS <= width else [text, " " * len(text), " " * len(text)]


class _Reason(NamedTuple):
    """A reason for which a loop can end; `is_detail`: it says more of the reason before it."""

    text: str
    is_detail: bool = False


class LoopCard(LinkPane):
    """The innermost loop around what is looked at."""

    follows_selection: ClassVar[bool] = False
    looks_ahead: ClassVar[bool] = True
    kind: ClassVar[str] = "loop"
    title = "loop"
    shows_running: ClassVar[bool] = True
    help_text: ClassVar[str] = (
        "The iteration, counted from 0; how many there may be; what ends the loop.\n"
        "Enter opens the condition; outside of loops it goes into the first iteration of the one that comes next."
    )

    def rows(self, width: int) -> list[Row]:
        """Return the card; outside of loops, which one comes next."""
        loop = self.state.loop
        if loop is None:
            self.note = ""
            return self._outside(width)
        self.note = loop_title(loop, self.state.frames, width - 8)
        rows = [*self._from_afar(width), *self._iteration_rows(loop, width), []]
        rows += self._end_rows(loop, width)
        rows += self._condition_rows(loop, width)
        return [*rows, []]

    def heading(self, width: int) -> list[Row]:
        """Return the loop's name at the right."""
        loop = self.state.loop
        self.note = "" if loop is None else loop_title(loop, self.state.frames, width - 8)
        return super().heading(width)

    def _from_afar(self, width: int) -> list[Row]:
        """Return what comes next, where the card is of a run that is looked at from outside of it."""
        if not self.state.is_far:
            return []
        following = self._following(width)
        words = "below, as it will run" if following else "below, as it ran"
        return [following or [(" no loop follows", "dim")], [(f" {words}", "dim")], []]

    def _following(self, width: int) -> Row:
        """Return the name of the loop that comes next in the frame that is looked at; nothing where there is none."""
        frame = self.host.state.frame
        ahead = () if frame is None else frame.layers[frame.last + 1 :]
        following = next((layer for layer in ahead if layer.is_loop), None)
        if following is None:
            return []
        name = clip(layer_name(following), width - 14)
        kind = f" · {following.type}"
        row: Row = [(" next is ", "dim"), (name, ""), (kind if len(name) + len(kind) < width - 10 else "", "dim")]
        return linked(row, Destination("iter +1"))

    def _outside(self, width: int) -> list[Row]:
        if self.state.ending is not None:
            return _ended_rows(self.state.ending, width)
        running = self.state.running
        if running is not None and running.glance.loop is not None:
            big = _drawn("-" if running.glance.iteration is None else str(running.glance.iteration), width)
            name = clip(layer_name(running.glance.loop), width - len(big[0]) - 6)
            words: list[Row] = [[("iteration of", "dim")], [(name, "")], self._speed(running)]
            return [*([(f" {line}   ", "accent"), *row] for line, row in zip(big, words, strict=True)), []]
        following = self._following(width)
        return [[(" no loop here", "dim")], *([following] if following else []), []]

    def _iteration_rows(self, loop: LoopView, width: int) -> list[Row]:
        iteration = self.state.seen_to if self.state.is_far else self.state.iteration
        trip = loop.trip
        maximum = trip.limit if trip.limit is not None and trip.limit <= COUNTED else None
        big = _drawn("-" if iteration is None else str(iteration), width)
        if trip.total is not None:
            limit = f"  of {trip.total}"
        else:
            limit = "  without a limit" if maximum is None else f"  of at most {maximum}"
        maximum = maximum if trip.total is None else trip.total
        done = max(trip.executed, iteration or 0)
        if self.state.running is not None:
            second: Row = self._speed(self.state.running)
        elif trip.ended is not None:
            second = [(f"{done} done", ""), (" · ended", "dim")]
        else:
            left = "" if maximum is None else f" · {max(maximum - done - 1, 0)} may follow"
            second = [(f"{done} done", ""), (left, "dim")]
        bar = self._progress(done, maximum, width - len(big[0]) - 5)
        return [
            [(f" {big[0]}   ", "accent"), (loop.level.word, "dim"), (limit, "")],
            [(f" {big[1]}   ", "accent"), *second],
            [(f" {big[2]}   ", "accent"), *bar],
        ]

    @staticmethod
    def _speed(running: Running) -> Row:
        rate = running.rate
        return [("running", "accent"), ("" if rate is None else f"  {rate:,.0f} a second", "dim")]

    def _progress(self, done: int, maximum: int | None, room: int) -> Row:
        if not maximum or room < 2:
            return []
        cells = min(maximum, room)
        at = min(done * cells // maximum, cells - 1)
        return [("━" * at, "bar"), ("━", "accent"), ("╌" * (cells - at - 1), "faint")]

    def _end_rows(self, loop: LoopView, width: int) -> list[Row]:
        reasons = [_Reason(str(loop.trip.ended))] if loop.trip.ended is not None else self._ways_to_end(loop)
        word = "ended: " if loop.trip.ended is not None else "ends when "
        if loop.trip.ended is EndReason.INITIAL_CONDITION:
            word, reasons = "did not begin: ", [_Reason("condition was false")]
        target = self._condition_target(loop)
        rows: list[Row] = [] if reasons else [[(" never ends: ", "dim"), ("it is always true", "")]]
        for place, reason in enumerate(reasons):
            lead = word if not place else ("   " if reason.is_detail else "or ").rjust(len(word))
            row: Row = [(f" {lead}", "dim"), (clip(reason.text, width - len(word) - 2), "")]
            rows.append(linked(row, target) if place == 0 else row)
        return rows

    def _condition_target(self, loop: LoopView) -> Destination:
        """Return what opens the value that the condition reads."""
        result = next((entry.inner for entry in loop.outputs if entry.role.is_condition), None)
        return Destination() if result is None else value_destination(self.state.loop_program, result)

    def _ways_to_end(self, loop: LoopView) -> list[_Reason]:
        """Return the reasons for which a loop can end; a limit that is as good as none is not spoken of."""
        trip, condition = loop.trip, loop.condition
        reasons: list[_Reason] = []
        result = next((entry.inner for entry in loop.outputs if entry.role.is_condition), None)
        if condition is not None and result is not None and result.layer is not None and not condition.is_constant:
            reasons.append(_Reason(f"{layer_name(result.layer)} is false"))
            if trip.by_condition is not None and trip.by_condition.iterations <= COUNTED:
                last, text = trip.by_condition.iterations - 1, printable(trip.by_condition.text)
                reasons.append(_Reason(f"by {last}, for {text}", is_detail=True))
        elif trip.total == 1 and trip.maximum != 1:
            reasons.append(_Reason("it is always false"))
        if trip.maximum is not None and trip.maximum <= COUNTED and trip.total in (None, trip.maximum):
            reasons.append(_Reason(_by_count(trip.maximum, loop)))
        return reasons

    def _condition_rows(self, loop: LoopView, width: int) -> list[Row]:
        condition, trip = loop.condition, loop.trip
        if condition is None:
            return []
        room = width - 13
        done = trip.executed
        past = GLYPHS["true"] * done
        if trip.ended is not None and not condition.value and past:
            past = past[:-1] + GLYPHS["false"]
        if trip.ended is EndReason.INITIAL_CONDITION:
            past = GLYPHS["false"]
        shown = past[-(room - 2) :] if room > 2 else ""
        limit = trip.limit if trip.total is None else trip.total
        most = limit if limit is not None and limit <= COUNTED else done + 8
        free = "" if trip.ended is not None else GLYPHS["free"] * max(0, min(most - done - 1, room - len(shown) - 1))
        now: Cell = ("" if trip.ended is not None else GLYPHS["now"], "accent")
        strip: Row = [(" condition ", "dim"), (shown, "bar"), now, (free, "faint")]
        rows: list[Row] = [linked(strip, self._condition_target(loop))]
        if condition.upcoming is not None:
            is_last = loop.is_last_by_count or not condition.upcoming
            rows.append([("           ", ""), (verdict_words(loop, condition)[0], "edit" if is_last else "")])
        elif trip.ended is None:
            last = "entered with true" if done == 0 else "last: true"
            rows.append([("           ", ""), (last, "dim")])
        return rows


def _by_count(count: int, loop: LoopView) -> str:
    """How so many iterations come about."""
    if loop.condition is not None:
        return f"trip count {count} is reached"
    is_sliced = any(entry.slice is not None for entry in loop.inputs)
    return f"all {count} slices are used" if is_sliced else f"iteration {count - 1} is done"


def _ended_rows(ending: RunSummary, width: int) -> list[Row]:
    """At the end of the run: each loop, and how many iterations it had in all."""
    rows: list[Row] = [[(" all loops have ended" if ending.loops else " no loop has run", "dim")]]
    for loop in ending.loops[:_MOST_ENDED]:
        count = counted(loop.iterations, loop.word)
        name = f"{loop.kind} '{loop.name}'"
        rows.append(spread([(f" {clip(printable(name), width - len(count) - 3)}", "")], [(f"{count} ", "dim")], width))
    return [*rows, []]
