"""The operations in the order of execution: gutter, name, the elements of the value, a statistic, a mark."""

from __future__ import annotations

import math
from functools import partial
from typing import ClassVar, Final

from rich.style import Style
from textual import events

from stepper.debug.inspection.views import FrameView
from stepper.debug.iterations.cell_store import HistoryView
from stepper.debug.moments.texts import truth_text
from stepper.tensors.difference import Change, Difference
from stepper.tensors.number_text import fitted
from stepper.tensors.statistics import FITTING
from tui.paint.folding import Listing, OperationEntry
from tui.paint.links import key_words
from tui.paint.names import layer_name, listed_mark, marked_name, nothing_inside, operation_names, statistic_text
from tui.paint.pane import Host, Pane
from tui.paint.rows import (
    Row,
    Token,
    cell_len,
    clip,
    clip_end,
    clip_head,
    padded,
    printable,
    shape_of,
    spark,
    spread,
    width_of,
)
from tui.pictures.one_line import LineCell, LinePictures
from tui.state import State
from tui.theme import GLYPHS, break_glyph
from tui.worker.requests import ShowValues

_NUMBER: Final = 7
"""Cells of the number of A, and of that of now, with a blank before."""
_DIFFERS: Final = 8
"""Cells of the difference, with a blank before and a mark behind."""


class Operations(Pane):
    """One row an operation. The moment is just after that which is marked.

    Done ones show this iteration; pending ones faintly the one before.
    """

    DEFAULT_CSS = "Operations { height: 1fr; }"
    kind: ClassVar[str] = "operations"
    title = "operations"
    help_text: ClassVar[str] = (
        "The operations of the body in their order. ▸ is the moment: its value is there. Each row: the elements\n"
        "of the value (neighbours share a cell where they are many), of a single number the last iterations as bars;\n"
        "the statistic of this iteration (of the one before where it is still to come); what is remarkable. With\n"
        "a statistic of whole values, bars of that. * behind a name: its value was changed by hand (# in\n"
        "ASCII). Behind the name of what OpenVINO computes stands ov."
    )

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._named: tuple[Listing, int] | None = None
        self._pictures = LinePictures()
        self._wanted: tuple[Listing, tuple[int, ...]] | None = None

    def listing(self) -> Listing | None:
        """Return the rows of the frame that is looked at."""
        frame = self.state.frame
        return None if frame is None else self.host.folding.listing(frame.program)

    def fold(self) -> str:
        """Unfold the group of the selected operation, or fold it again."""
        frame, cursor = self.state.frame, self.state.cursor
        if frame is None or cursor is None:
            return "nothing is selected"
        if not self.host.folding.toggle(frame.program, cursor):
            return nothing_inside(frame.layers[cursor])
        self._centre()
        self.changed()
        return ""

    def update(self, state: State) -> None:
        """The moment stays at two thirds of the height; what is selected is seen."""
        self.note = state.statistic if state.beside is None and state.frame is not None else ""
        before, self.state = self.state, state
        if _moment(before) != _moment(state) or not self._is_seen():
            self._centre()
        self.changed()

    def changed(self) -> None:
        """Ask for the values of the operations that are to be seen."""
        super().changed()
        frame, listing = self.state.frame, self.listing()
        if frame is None or listing is None or not self.is_mounted or not self.size.height:
            return
        wanted = listing.operations_near(self.top, self.size.height)
        if self._wanted is None or self._wanted[0].program is not frame.program or self._wanted[1] != wanted:
            self._wanted = listing, wanted
            self.host.driver.adjust(ShowValues("list", frame.program, wanted))

    def notify_style_update(self) -> None:
        """Another theme."""
        self._pictures.forget()
        super().notify_style_update()

    def heading(self, width: int) -> list[Row]:
        """Return the title, beside A those of the columns."""
        if self.state.beside is None and self.state.frame is not None:
            statistic = self.state.statistic
            self.note = self._seen_rows(width - len(self.title) - len(statistic) - 3) + statistic
        rows = super().heading(width)
        if self.state.beside is None or self.state.frame is None:
            return rows
        mark, (title, tone), *_ = rows[0]
        left: Row = [mark, (clip(title, max(width - 2 * _NUMBER - _DIFFERS - 2, 3)), tone)]
        words = ("now".rjust(_NUMBER), "accent"), ("differ".rjust(_DIFFERS - 1) + " ", "note")
        columns: Row = [(" " * (_NUMBER - 3), ""), (" A ", "a-on"), *words]
        return [spread(left, columns, width), *rows[1:]]

    def _seen_rows(self, room: int) -> str:
        """Return which rows are in sight, of how many; empty where all are."""
        listing, lines = self.listing(), self.size.height - 1
        total = 0 if listing is None else len(listing.entries)
        if not 0 < lines < total:
            return ""
        last = min(self.top + lines, total)
        told = (f"{self.top + 1:,}–{last:,} of {total:,}  ", f"{last:,} of {total:,}  ", f"of {total:,}  ")
        return next((one for one in told if len(one) <= room), "")

    def _is_seen(self) -> bool:
        row = self._cursor_row()
        return row is None or self.top <= row < self.top + self.size.height - 1

    def _cursor_row(self) -> int | None:
        listing, cursor = self.listing(), self.state.cursor
        frame = self.state.frame
        if listing is not None and frame is not None and _shown_moment(frame) is None and self.state.selected is None:
            return len(listing.entries)
        return None if listing is None or cursor is None else listing.row_of[cursor]

    def _centre(self) -> None:
        listing, row = self.listing(), self._cursor_row()
        room = self.size.height - 1
        if listing is not None and row is not None:
            self.top = max(0, min(row - room * 2 // 3, self.count(self.size.width) - room))
        elif listing is None:
            self.top = 0

    def on_resize(self, _event: events.Resize) -> None:
        """Rows depend on the width, and which of them are seen on the height."""
        self._centre()
        self.changed()

    def count(self, width: int) -> int:
        """Return as many as there are operations, and groups of them."""
        listing = self.listing()
        if listing is None:
            return len(self._outside())
        return len(listing.entries) + _has_end(self.state)

    def _outside(self) -> list[Row]:
        """Return the sentences where there is no operation: how to go back."""
        if self.state.view is None:
            return [[]]
        ways = (("reverse-next", "goes back into the run"), ("reverse-step", "goes back into its loops"))
        rows = key_words(ways[:1] if self.state.is_loopless else ways, self.kind, self.host.keymap)
        last = None if self.state.ending is None else self.state.ending.last
        if last is not None:
            text = f"{clip(layer_name(last.layer), 18)}@{last.iteration}, its last"
            rows += key_words([("open", text)], self.kind, self.host.keymap)
        return [[("  ", ""), *row] for row in rows]

    def row(self, index: int, width: int) -> Row:
        """Return one operation, or a group of them."""
        frame, listing = self.state.frame, self.listing()
        if frame is None or listing is None:
            return self._outside()[index]
        if index == len(listing.entries):
            return self._end_row(frame, width)
        entry = listing.entries[index]
        return self._group_row(frame, entry, width) if entry.is_folded else self._row(frame, entry.indices[0], width)

    def _end_row(self, frame: FrameView, width: int) -> Row:
        """Return the row of the moment at which the iteration is over, and how the loop ended if it was the last."""
        loop, is_here = self.state.loop, frame.closed
        ended = loop.trip.ended if loop is not None and is_here and self.state.depth == self.state.loop_depth else None
        text = f"end of iteration {frame.iteration}" + ("" if ended is None else f": {ended}")
        text = padded(clip_end(text, width - 3), width - 2)
        if not is_here:
            return [(GLYPHS["pending"], "faint"), (" ", ""), (text, "faint")]
        tone = "now" if self.state.selected is None else ""
        return [(GLYPHS["now"], tone or "accent"), (" ", tone), (text, tone)]

    def _group_row(self, frame: FrameView, entry: OperationEntry, width: int) -> Row:
        """Return a folded group: what it is called, how many operations, and whether the moment is inside."""
        here = _shown_moment(frame) in entry.indices
        selected = self.state.cursor in entry.indices
        tone = "now" if here and selected else "cursor" if selected else ""
        gutter = GLYPHS["now"] if here else " " if frame.is_done(entry.indices[-1]) else GLYPHS["pending"]
        marked = any(self.state.breaks_at(index) for index in entry.indices)
        words = f"{len(entry.indices)} shape ops"
        if any(frame.is_edited(index) for index in entry.indices):
            words += f" {self.look.edited}"
        if here:
            words = f"{entry.indices.index(frame.moment) + 1} of {words}"
        name = clip(entry.title, max(width - len(words) - 6, 6))
        row: Row = [
            (gutter, tone or ("accent" if here else "faint")),
            (GLYPHS["break"] if marked else " ", tone if tone == "now" else "bad"),
            (f"{GLYPHS['fold']} {name} ", tone if tone == "now" else f"dim {tone}".strip()),
            (words, tone if tone == "now" else f"note {tone}".strip()),
        ]
        return [*row, (" " * max(width - width_of(row), 0), tone)]

    def _row(self, frame: FrameView, index: int, width: int) -> Row:
        tones = self._tones(frame, index)
        fade, tone = tones
        beside_a = self.state.beside is not None
        mark_width = 5 if width >= 34 else 2
        shape_width = 9 if width >= 46 else 0
        # Width goes first to names, then to the history.
        free = width - 2 - shape_width - mark_width - 8
        least, most = (6, 10) if width >= 34 else (7, 7)
        bars = max(min(most, free - self._longest_name() - 3 * bool(frame.edited)), least)
        numbers = 2 * _NUMBER + _DIFFERS if beside_a else bars + mark_width + 8
        room = width - 2 - numbers - shape_width
        is_here = index == _shown_moment(frame)
        is_chosen = index == self.state.cursor
        gutter = GLYPHS["now"] if is_here else GLYPHS["focus"] if is_chosen else self._gutter(frame, index)
        row: Row = [(gutter, tone if tone == "now" else "accent" if is_here or is_chosen else "faint")]
        row += [self._break(index, tone), *self._names(frame, index, room, tone)]
        if shape_width:
            held = frame.held(index)
            shape = "" if held is None else shape_of(held.shape)
            row.append((padded(shape, shape_width - 1, right=True) + " ", _quiet(tone)))
        if beside_a:
            return row + self._beside_a(frame, index, tone)
        return row + self._numbers(frame, index, bars, mark_width, tone, fade)

    def _beside_a(self, frame: FrameView, index: int, tone: str) -> Row:
        """Return the number of A, that of now, and how far now is from A."""
        a = self.state.a
        found = None if a is None else a.operations.get(index)
        done = frame.is_done(index)
        history = self.state.history
        values = [] if history is None or not done else history.of(index, frame.iteration or 0, 1)
        now = values[-1] if values else None
        theirs = None if found is None else found.number
        text, mark = difference_cell(None if found is None or not done else found.difference, self.look.arrow)
        under = " cursor" if "cursor" in tone else ""
        is_now, written = tone == "now", partial(statistic_text, program=frame.program, index=index)

        def toned(value: float | None, plain: str) -> str:
            bad = value is not None and not math.isfinite(value)
            return "now" if is_now else f"{'bad' if bad else plain}{under}".strip()

        return [
            (written(theirs).rjust(_NUMBER), toned(theirs, "note" if done else "dim")),
            ((written(now) if done else GLYPHS["pending"]).rjust(_NUMBER), toned(now, "" if done else "faint")),
            (text.rjust(_DIFFERS - 1), "now" if is_now else f"{mark}{under}".strip()),
            (self._standing(index), "now" if is_now else f"bad{under}"),
        ]

    def _standing(self, index: int) -> str:
        """Return `!` where the run first leaves the reference, and the sign of what is above its tolerance."""
        comparison = self.state.comparison
        found = None if comparison is None else comparison.operations.get(index)
        if found is None:
            return " "
        first = self.state.first_difference
        is_first = first is not None and first.layer is found.layer and first.iteration == self.state.iteration
        return "!" if is_first else GLYPHS["diff"] if found.is_above else " "

    def _gutter(self, frame: FrameView, index: int) -> str:
        return " " if frame.is_done(index) else GLYPHS["pending"]

    def _tones(self, frame: FrameView, index: int) -> tuple[str, str]:
        """Return those of the bars and of the text."""
        if index == _shown_moment(frame) and index == self.state.cursor:
            return "now", "now"
        done = frame.is_done(index)
        text = "" if done else "dim"
        if index == self.state.cursor:
            return ("bar cursor" if done else "faint cursor"), f"{text} cursor".strip()
        return ("bar" if done else "faint"), text

    def _break(self, index: int, tone: str) -> tuple[str, Token]:
        for one in self.state.breaks_at(index):
            return break_glyph(one), "now" if tone == "now" else "bad"
        return " ", tone

    def _names(self, frame: FrameView, index: int, room: int, tone: str) -> Row:
        if frame.is_edited(index):
            edited = "now" if tone == "now" else f"edit {'cursor' if 'cursor' in tone else ''}".strip()
            return [*self._plain_names(frame, index, room - 2, tone), (f"{self.look.edited} ", edited)]
        return self._plain_names(frame, index, room, tone)

    def _plain_names(self, frame: FrameView, index: int, room: int, tone: str) -> Row:
        if room < 38:
            return [(padded(marked_name(frame.program, index, room), room), tone)]
        short = max(min(self._longest_name() + 1, room - 20), 18)
        name = marked_name(frame.program, index, short - 1)
        layer = frame.layers[index]
        own = clip_head(printable(layer.type if layer.name == name else layer.name), room - short - 1)
        return [(padded(name, short), tone), (padded(own, room - short), _quiet(tone))]

    def _longest_name(self) -> int:
        """Return how many cells the longest of the listed names takes."""
        listing = self.listing()
        if listing is None:
            return 0
        if self._named is None or self._named[0] is not listing:
            program, names = listing.program, operation_names(listing.program)
            listed = (entry.indices[0] for entry in listing.entries if not entry.is_folded)
            lengths = (cell_len(names[index]) + cell_len(listed_mark(program, index)) for index in listed)
            self._named = listing, max(lengths, default=0)
        return self._named[1]

    def _numbers(self, frame: FrameView, index: int, bars: int, mark_width: int, tone: str, fade: str) -> Row:
        history = self.state.history
        if history is None:
            return []
        iteration = frame.iteration or 0
        last = iteration if frame.is_done(index) else iteration - 1
        values = history.of(index, last, bars) if last >= 0 else []
        latest = values[-1] if values else None
        mark = self._mark(frame, index, latest) if frame.is_done(index) else ""
        bad = tone != "now" and mark[:1] in ("N", "I") and bool(mark)
        under = " cursor" if "cursor" in tone else ""
        picture = self._picture(history, index, last, bars, fade)
        if picture is None:
            shown = spark(values) if len(values) > 1 else " " * len(values)
            picture = [(shown.rjust(bars), f"bad{under}" if bad else fade)]
        return [
            (" ", tone),
            *picture,
            (" ", tone),
            (statistic_text(latest, frame.program, index).rjust(6), f"bad{under}" if bad else tone),
            (f" {mark:<{mark_width - 1}}"[:mark_width], "now" if tone == "now" else "bad" if bad else "edit"),
        ]

    def _picture(self, history: HistoryView, index: int, last: int, room: int, fade: str) -> Row | None:
        """Return the elements of the value, of a single number the last iterations; None where bars are to be shown."""
        values = history.values.get(index)
        if values is None or history.statistic != FITTING or last < 0:
            return None
        cells: list[LineCell] = [*self._pictures.elements(values, last, 1, room, None, self.palette)[0]]
        if not cells:
            first = max(last - room + 1, 0)
            cells = self._pictures.cells(values, first, last - first + 1, 1, None, self.palette)
            cells = [*[None] * (room - len(cells)), *cells]
        row: Row = []
        faded = self.palette.faded if fade.startswith("faint") else None
        for cell in cells:
            text, token = (" ", fade) if cell is None else cell
            if isinstance(token, Style):
                token = token if faded is None else faded(token)
            else:
                token = f"{token} cursor" if token.startswith("bad") and "cursor" in fade else token
                token = fade if token in ("bar", "strong", "") else token
            row.append((text, token))
        return [*row, (" " * (room - width_of(row)), fade)]

    def _mark(self, frame: FrameView, index: int, latest: float | None) -> str:
        if latest is None or math.isfinite(latest):
            history = self.state.history
            is_other = history is not None and history.has_other_shape(index, frame.iteration or 0)
            return GLYPHS["shape"] if is_other else ""
        word = "NaN" if math.isnan(latest) else "Inf"
        return word if frame.is_edited(index) or frame.came_in(index, word) else f"{word}!"

    def on_click(self, event: events.Click) -> None:
        """A click selects, a second one opens."""
        row, listing = self.row_at(event.y), self.listing()
        if row is None or listing is None:
            return
        if row == len(listing.entries):
            self.post_line("select now")
            return
        entry = listing.entries[row]
        self.post_line(f"select {entry.indices[0]}")
        if event.chain == 2:
            self.post_line("fold" if entry.is_folded else "open")


def _moment(state: State) -> tuple[int, int | None] | None:
    """Return the moment that the list follows."""
    frame = state.frame
    return None if frame is None else (id(frame.program), _shown_moment(frame))


def _has_end(state: State) -> bool:
    """True if the frame that is looked at is in an iteration, which ends."""
    return state.frame is not None and state.frame.iteration is not None


def _shown_moment(frame: FrameView) -> int | None:
    """Return the operation at which the moment is marked; None where the iteration is over."""
    return None if frame.closed and frame.iteration is not None else frame.moment


def difference_cell(found: Difference | None, arrow: str) -> tuple[str, str]:
    """Return a difference in six cells, and its tone: `=` same bits, `~` another shape, the rms of the difference.

    Of booleans it is what one was and is, with the arrow between them, or how many of them differ.
    """
    if found is None:
        return "", ""
    match found.change:
        case Change.SAME:
            return GLYPHS["stuck"], "dim"
        case Change.SHAPE:
            return GLYPHS["shape"], "strong"
        case Change.NUMBER:
            return fitted(found.rms), "dim" if found.is_within else "strong"
        case Change.TRUTH:
            return truth_text(found, arrow, _DIFFERS - 1), "strong"
    return str(found.change), "bad" if found.change is Change.BROKEN else "strong"


def _quiet(tone: str) -> str:
    """Return the tone of what stands beside the name, on the same ground."""
    return "now" if tone == "now" else "dim cursor" if "cursor" in tone else "dim"
