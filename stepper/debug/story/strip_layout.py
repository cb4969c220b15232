"""Lay out an explanation in cells: operations as rows, iterations as columns, chips, wires.

A single layout serves figures of all formats; none of them knows another's units.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from enum import StrEnum
from typing import NamedTuple

from stepper.debug.causes.cause import Scalar
from stepper.debug.causes.cause_texts import element_text, port_text
from stepper.debug.story.story_facts import LinkRole, Story, StoryEdge, StoryLink, is_bad, time_of
from stepper.debug.story.story_texts import (
    column_text,
    end_word,
    entry_text,
    iteration_text,
    number,
    percent,
    reason,
    value_text,
)
from stepper.element_types import Indices
from stepper.query.short_names import last_part
from stepper.records import Record

CHIP = 11
"""Cells of a chip."""
_GREY = 8
_LANE = 2
_GAP = 5
_LEAST_WITH_HISTORIES = 140
_MOST_REASON = 30
_MOST_NAME = 20
_LEAST_REASON = 6
_LEAST_WORD = 3
_BETWEEN = re.compile(r" |(?<=\w)\(")
_SIGNS = " :,+-×/<>=≠≤≥^"
_IN_NUMBER = re.compile(r"(?:\W|^)[0-9][^\s]*$")
BORN = " first here "
STOP = "stop"
_HEADING = "on the path"
LABEL_AT = 2
"""Cells from the left edge of a chip to the wires that leave it downwards."""
TORN = 10
"""Cells of the gap in which columns are left out."""


class Tone(StrEnum):
    """Meaning of a piece of text, from which each painter makes its style."""

    PLAIN = "plain"
    STRONG = "strong"
    DIM = "dim"
    NOTE = "note"
    FAINT = "faint"
    TITLE = "title"
    BAD = "bad"
    BAD_THIN = "bad thin"
    BORN = "born"
    CHIP = "chip"
    BAD_CHIP = "bad chip"


class PlacedText(NamedTuple):
    """A text that begins at a cell. `is_number`: its end stands below those of others; `is_label`: it is on a wire."""

    x: int
    y: int
    text: str
    tone: Tone
    is_number: bool = False
    is_label: bool = False


class PlacedChip(NamedTuple):
    """The number of a link on its tint; `text` fills the chip's width."""

    link: int
    x: int
    y: int
    text: str
    tone: Tone


class PlacedWire(NamedTuple):
    """A line of straight pieces from cell to cell; dashed between iterations. `head`: it ends in an arrow."""

    edge: int
    points: tuple[tuple[int, int], ...]
    dashed: bool
    bad: bool
    head: bool


class PlacedHistory(NamedTuple):
    """An element over all iterations, as a line of bars in one row."""

    row: int
    x: int
    y: int
    width: int


class PlacedColumn(NamedTuple):
    """Cells of an iteration: `column` of the explanation, or None for one beside the path."""

    path: Indices
    column: int | None
    x: int
    width: int


class Placement(Record):
    """Hold an explanation that is laid out.

    The `names` cells at the left stay, the rest may be scrolled sideways, below `head` lines.
    """

    width: int
    height: int
    names: int
    head: int
    pitch: int
    columns: tuple[PlacedColumn, ...]
    texts: tuple[PlacedText, ...]
    chips: tuple[PlacedChip, ...]
    wires: tuple[PlacedWire, ...]
    histories: tuple[PlacedHistory, ...]


def _letters(text: str, _tone: Tone) -> int:
    return len(text)


class Options(NamedTuple):
    """Room for a layout: `width` in cells (None: as much as it takes).

    `is_dense`: no free lines between rows. `histories`: the values of each row's element are drawn beside its name.
    Names have `names` cells at most. Behind the column `torn` (-1: before the first) there is a gap; before the first
    column are `lead` free cells. `measure` returns how many cells a text of a tone takes.
    """

    width: int | None = None
    is_dense: bool = False
    histories: bool = True
    context: bool = True
    names: int = _MOST_NAME
    torn: int | None = None
    lead: int = 0
    measure: Callable[[str, Tone], int] = _letters


class _Head(NamedTuple):
    """Words above a column: its number, and what became of it there."""

    number: str
    note: str
    note_tone: Tone


def place(story: Story, options: Options | None = None) -> Placement:
    """Return where everything of an explanation lies.

    Without options it takes as much room as it needs.
    """
    return _Layout(story, options or Options()).placement()


class _Layout:
    def __init__(self, story: Story, options: Options) -> None:
        self.story, self.options = story, options
        self.nested = max((len(column.path) for column in story.columns), default=0) > 1
        self.up = 2 if self.nested else 1
        self.measure = options.measure
        self.cells = {(link.row, link.column): number_of for number_of, link in enumerate(story.links)}
        self.texts: list[PlacedText] = []
        self.wires: list[PlacedWire] = []
        self.names = self._names_width()
        self.lanes = [self._lanes_of(column) for column in range(len(story.columns))]
        across = [columns[1] for columns in map(self._columns_of, story.edges) if columns[0] != columns[1]]
        self.gaps = Counter(across)  # wires that come into each column from another one
        self.columns = self._columns()
        head = self.up + max((len(self._note_lines(one)) for one in self.columns), default=0)
        self.pitch = 1 if options.is_dense else 2
        self.head = head + self.pitch - 1
        self.lines = tuple(self.head + row * self.pitch for row in range(len(story.rows)))
        self.at = {one.column: one for one in self.columns if one.column is not None}

    def placement(self) -> Placement:
        histories = self._names()
        self._heads()
        self._beside()
        chips = self._chips()
        self._wires()
        end = max((one.x + one.width for one in self.columns), default=self.names)
        height = (self.lines[-1] + self.pitch) if self.lines else self.head
        return Placement(
            width=end,
            height=height,
            names=self.names,
            head=self.head,
            pitch=self.pitch,
            columns=tuple(self.columns),
            texts=tuple(self.texts),
            chips=tuple(chips),
            wires=tuple(self.wires),
            histories=tuple(histories),
        )

    # --- widths --------------------------------------------------------------------------------------------------

    def _names_width(self) -> int:
        rows = self.story.rows
        names = [self.measure(self._row_name(row), Tone.STRONG) for row in range(len(rows))]
        self.name = min(self.options.names, max(names or [8]))
        self.element = max([self.measure(element_text(row.element), Tone.DIM) for row in rows] or [0])
        self.bars = 0
        is_narrow = self.options.width is not None and self.options.width < _LEAST_WITH_HISTORIES
        if self.options.histories and not is_narrow and any(row.history for row in rows):
            self.bars = min(24, len(self.story.iterations))
        width = 2 + self.name + 1 + self.element + (1 + self.bars if self.bars else 0) + 2
        over = self.measure(self._history_heading(), Tone.NOTE)
        return max(width, 2 + self.measure(_HEADING, Tone.TITLE) + (1 + over if over else 0) + 2)

    def _history_heading(self) -> str:
        """Return which iterations the courses beside the names have; nothing where there are none."""
        if not self.bars or not self.story.iterations:
            return ""
        first, last = self.story.iterations[0], self.story.iterations[-1]
        return f"{iteration_text(first)}–{iteration_text(last)}"

    def _row_name(self, row: int) -> str:
        found = self.story.rows[row]
        return f"{found.name}{port_text(found.output)}"

    def _lanes_of(self, column: int) -> dict[int, int]:
        """Return for the edges within a column that pass other chips the lane at the right in which they run."""
        edges = [
            (self.story.links[edge.source].row, self.story.links[edge.target].row, number_of)
            for number_of, edge in enumerate(self.story.edges)
            if self._columns_of(edge) == (column, column)
        ]
        lanes: dict[int, int] = {}
        taken: list[list[tuple[int, int]]] = []
        for top, bottom, edge in sorted(edges, key=lambda one: (one[1] - one[0], one)):
            between = range(min(top, bottom) + 1, max(top, bottom))
            if not any((row, column) in self.cells for row in between):
                continue
            free = (lane for lane, runs in enumerate(taken) if all(bottom < a or top > b for a, b in runs))
            lane = next(free, len(taken))
            if lane == len(taken):
                taken.append([])
            taken[lane].append((top, bottom))
            lanes[edge] = lane
        return lanes

    def _columns_of(self, edge: StoryEdge) -> tuple[int, int]:
        return self.story.links[edge.source].column, self.story.links[edge.target].column

    def _reasons(self, column: int) -> int:
        links = self.story.links
        own = [link for link in links if link.column == column]
        widths = [min(_MOST_REASON, self.measure(*self._reason(one))) + self.measure(*self._word(one)) for one in own]
        leaving = [
            edge for edge in self.story.edges if self._columns_of(edge)[0] == column != self._columns_of(edge)[1]
        ]
        return max(
            0,
            *widths,
            *(self.measure(wire_text(edge, links[edge.source].value), Tone.PLAIN) + 4 - CHIP for edge in leaving),
        )

    def _reason(self, link: StoryLink) -> tuple[str, Tone]:
        tone = Tone.DIM if link.role is LinkRole.PATH else Tone.STRONG
        return "  ".join(filter(None, (self._share(link), reason(link)))), tone

    @staticmethod
    def _share(link: StoryLink) -> str:
        return "" if link.share is None or link.share in (0.0, 1.0) else percent(link.share)

    @staticmethod
    def _word(link: StoryLink) -> tuple[str, Tone]:
        if link.role is LinkRole.BORN:
            return f" {BORN}", Tone.BORN
        return f" {STOP}" if link.role is LinkRole.ASKED and link.is_bad else "", Tone.BAD

    def _open_width(self, column: int, reasons: int) -> int:
        lanes = len(set(self.lanes[column].values()))
        gap = 2 * self.gaps[column + 1] + _GAP if self.gaps[column + 1] else 2
        return CHIP + (1 + _LANE * lanes if lanes else 0) + (1 + reasons if reasons else 0) + gap

    def _columns(self) -> list[PlacedColumn]:
        """Choose the columns: those of the path, with reasons where there is room; then others, the nearest first."""
        story, wide = self.story, self.options.width
        count = len(story.columns)
        reasons = [self._reasons(column) for column in range(count)]
        widths = [self._open_width(column, reasons[column]) for column in range(count)]
        room = (
            None if wide is None else wide - self.names - self.options.lead - (0 if self.options.torn is None else TORN)
        )
        noted = [max(widths[column], self._head_width(self._head(column))) for column in range(count)]
        if room is None or sum(noted) <= room:
            widths = noted
        while room is not None and sum(widths) > room and max(reasons, default=0) > 0:
            column = max(range(count), key=lambda one: reasons[one])
            reasons[column] -= 1
            widths[column] = self._open_width(column, reasons[column])
        self.reason_widths = reasons
        beside = self._beside_path(None if room is None else room - sum(widths))
        placed = self._placed(beside, widths)
        while self.options.context and wide is not None and beside and placed[-1].x + placed[-1].width > wide:
            beside.pop()
            placed = self._placed(beside, widths)
        return placed

    def _placed(self, beside: Iterable[Indices], widths: Sequence[int]) -> list[PlacedColumn]:
        """Return the columns of the path, and those of iterations beside it, in the order of time."""
        shown = [(column.path, column.phase, number_of) for number_of, column in enumerate(self.story.columns)]
        keys = sorted([*shown, *((path, 0, None) for path in beside)], key=lambda one: time_of(one[0], one[1]))
        placed: list[PlacedColumn] = []
        x = self.names + self.options.lead + (TORN if self.options.torn == -1 else 0)
        for path, _phase, number_of in keys:
            width = _GREY if number_of is None else widths[number_of]
            if number_of is not None and placed and placed[-1].column is None and self.gaps[number_of]:
                x += 2 * self.gaps[number_of] + _GAP - 1  # room for the wires behind a column beside the path
            placed.append(PlacedColumn(path, number_of, x, width))
            x += width + (TORN if number_of is not None and number_of == self.options.torn else 0)
        return placed

    def _beside_path(self, room: int | None) -> list[Indices]:
        """Return iterations beside those of the path, the nearest first, as many as there is room for."""
        story = self.story
        if not self.options.context:
            return list(story.passed)
        taken = {column.path for column in story.columns}
        folds = [(column.first, column.path) for column in story.columns if column.times > 1]
        free = [
            path
            for path in story.iterations
            if path not in taken and not any(first <= path <= last for first, last in folds)
        ]
        places = {path: place for place, path in enumerate(story.iterations)}
        own = [places[path] for path in taken if path in places]

        def distance(path: Indices) -> tuple[bool, int, int]:
            near = min((abs(places[path] - place) for place in own), default=0)
            return path not in story.passed, near, places[path]

        most = 4 if room is None else max(0, room // _GREY)
        return sorted(free, key=distance)[:most]

    # --- texts ---------------------------------------------------------------------------------------------------

    def _put(self, x: int, y: int, text: str, tone: Tone, *, is_number: bool = False) -> int:
        if text:
            self.texts.append(PlacedText(x, y, text, tone, is_number))
        return x + self.measure(text, tone)

    def _clipped(self, text: str, room: int, tone: Tone) -> str:
        """Return a text that fits into so many cells, with an ellipsis where it is cut."""
        shown = text
        for letters in range(min(len(text) - 1, 4 * room), -1, -1):  # hardly a letter is narrower than a quarter cell
            if self.measure(shown, tone) <= room:
                break
            shown = clipped(text, letters)
        return shown

    def _names(self) -> list[PlacedHistory]:
        story, histories = self.story, []
        self._put(2, self.up - 1, _HEADING, Tone.TITLE)
        if self.nested:
            loops = " › ".join(last_part(loop.name) for loop in story.loops)
            self._put(2, 0, self._clipped(loops, self.names - 3, Tone.DIM), Tone.DIM)
        if over := self._history_heading():
            self._put(self.names - 2 - len(over), self.up - 1, over, Tone.NOTE)
        for row, found in enumerate(story.rows):
            y = self.lines[row]
            self._put(2, y, self._clipped(self._row_name(row), self.name, Tone.STRONG), Tone.STRONG)
            self._put(3 + self.name, y, element_text(found.element), Tone.DIM)
            if self.bars and found.history:
                histories.append(PlacedHistory(row, self.names - 2 - self.bars, y, self.bars))
            if found.hidden and self.pitch > 1 and row:
                self._put(2, y - 1, f"⋮ {found.hidden}", Tone.FAINT)
        return histories

    def _heads(self) -> None:
        outer: Indices | None = None
        for one in self.columns:
            if self.nested and one.path[:-1] != outer and len(one.path) > 1:
                outer = one.path[:-1]
                self._put(one.x, 0, f" {iteration_text(outer)} ", Tone.STRONG)
            if one.column is None:
                text = str(one.path[-1])
                self._put(one.x + one.width - 1 - len(text), self.up - 1, text, Tone.NOTE, is_number=True)
                continue
            head = self._head(one.column)
            x = self._put(one.x, self.up - 1, head.number, Tone.STRONG)
            lines = self._note_lines(one)
            if not lines:
                self._put(x + 1, self.up - 1, head.note, head.note_tone)
            for y, line in enumerate(lines, self.up):
                self._put(one.x + 1, y, line, head.note_tone)

    def _head(self, column: int) -> _Head:
        found = self.story.columns[column]
        text = column_text(found)
        text = f"{text} {'before' if found.phase < 0 else 'after'}" if found.phase else text
        note, tone = self._head_note(column)
        return _Head(f" {text} ", note, tone)

    def _head_width(self, head: _Head) -> int:
        """Return the cells of a head in one line, with the space behind it."""
        beside = 1 + self.measure(head.note, head.note_tone) if head.note else 0
        return self.measure(head.number, Tone.STRONG) + beside + 1

    def _note_lines(self, placed: PlacedColumn) -> list[str]:
        """Return the lines of a note that has no room beside the number of its column; none where it has."""
        if placed.column is None:
            return []
        head = self._head(placed.column)
        if self._head_width(head) <= placed.width:
            return []
        lines = [""]
        for word in head.note.split():
            longer = f"{lines[-1]} {word}".strip()
            if lines[-1] and self.measure(longer, head.note_tone) > placed.width - 2:
                lines.append(word)
            else:
                lines[-1] = longer
        return [line for line in lines if line]

    def _head_note(self, column: int) -> tuple[str, Tone]:
        links = [link for link in self.story.links if link.column == column]
        born = next((link for link in links if link.role is LinkRole.BORN), None)
        if born is not None:
            return f"first {number(born.value).lstrip('+-')}", Tone.BAD
        made = next((link for link in links if link.value == "NaN" and link.formula), None)
        if made is not None:
            return "first NaN", Tone.BAD
        end = self.story.end
        if end is not None and any(link.role is LinkRole.ASKED for link in links):
            return end_word(end), Tone.NOTE
        if self.story.columns[column].times > 1:
            return "carried on, same links", Tone.NOTE
        return "", Tone.NOTE

    def _beside(self) -> None:
        """Write the same elements in other iterations, and the word of those that only passed the element on."""
        story = self.story
        places = {path: place for place, path in enumerate(story.iterations)}
        for one in self.columns:
            place = places.get(one.path)
            is_passing = one.column is None and one.path in story.passed
            if is_passing:
                self._put(one.x + one.width - 5, self.lines[len(self.lines) // 2], "kept", Tone.DIM)
            if place is None or (one.column is not None and story.columns[one.column].times > 1):
                continue
            end = one.x + (CHIP - 1 if one.column is not None else one.width - 1)
            for row, found in enumerate(story.rows):
                if (row, one.column) in self.cells or place >= len(found.history) or is_passing:
                    continue
                value = found.history[place]
                text = clipped_number(value, one.width - 1 if one.column is None else CHIP - 1)
                if text:
                    tone = Tone.BAD_THIN if is_bad(value) else Tone.DIM
                    self._put(end - len(text), self.lines[row], text, tone, is_number=True)

    def _chips(self) -> list[PlacedChip]:
        chips = []
        moving = {row for row, found in enumerate(self.story.rows) if found.element is None}
        for number_of, link in enumerate(self.story.links):
            column = self.at[link.column]
            y = self.lines[link.row]
            tone = Tone.BORN if link.role is LinkRole.BORN else Tone.BAD_CHIP if link.is_bad else Tone.CHIP
            value = value_text(link)
            if link.row in moving and link.element is not None:
                room = CHIP - 2 - len(element_text(link.element))
                value = f"{element_text(link.element)}{clipped_number(link.value, room):>{max(1, room)}}"
            chips.append(PlacedChip(number_of, column.x, y, f"{clipped(value, CHIP - 1):>{CHIP - 1}} ", tone))
            lanes = len(set(self.lanes[link.column].values()))
            x = column.x + CHIP + (1 + _LANE * lanes if lanes else 0) + 1
            self._say(link, x, y, self.reason_widths[link.column])
            if link.entry is not None and self.pitch > 1:
                self._put(column.x + LABEL_AT, y - 1, "▼", Tone.DIM)
                room = column.width - 5
                text = self._clipped(entry_text(link.entry), room, Tone.PLAIN)
                self.texts.append(PlacedText(column.x + 4, y - 1, text, Tone.PLAIN, is_label=True))
        return chips

    def _say(self, link: StoryLink, x: int, y: int, room: int) -> None:
        (word, word_tone), (shown, tone) = self._word(link), self._reason(link)
        if self.measure(shown, tone) + self.measure(word, word_tone) > room:
            word = ""
        if self.measure(shown, tone) > room:
            cut = cut_in_words(shown, lambda text: self.measure(text, tone) <= room)
            shown = cut if room >= _LEAST_REASON else self._share(link) or reason(link)
            shown = shown if self.measure(shown, tone) <= room else ""
        if shown:
            self.texts.append(PlacedText(x, y, shown, tone, is_label=self.pitch == 1))  # wires run in its line
        x += self.measure(shown, tone)
        if word:
            self._put(x + 1, y, word[1:], word_tone)

    # --- wires ---------------------------------------------------------------------------------------------------

    def _wires(self) -> None:
        gaps = Counter[int]()
        for number_of, edge in enumerate(self.story.edges):
            source, target = self.story.links[edge.source], self.story.links[edge.target]
            a, b = self.at[source.column], self.at[target.column]
            top, bottom = self.lines[source.row], self.lines[target.row]
            if source.column == target.column:
                lane = self.lanes[source.column].get(number_of)
                at = a.x + LABEL_AT
                points: Sequence[tuple[int, int]] = ((at, top), (at, bottom))
                if lane is not None:
                    at = a.x + CHIP + 1 + _LANE * lane
                    points = ((a.x + CHIP, top), (at, top), (at, bottom), (a.x + CHIP, bottom))
                self.wires.append(PlacedWire(number_of, tuple(points), False, source.is_bad, False))
                continue
            at = b.x - 4 - 2 * gaps[target.column]
            gaps[target.column] += 1
            if self.pitch > 1:
                begin = a.x + LABEL_AT
                points = ((begin, top), (begin, top + 1), (at, top + 1), (at, bottom), (b.x - 1, bottom))
                label, start = wire_text(edge, source.value), begin + 2
                tone = Tone.BAD if source.is_bad else Tone.PLAIN
                wide = self.measure(label, tone)
                beside = sorted(
                    (one.x, one.x + self.measure(one.text, one.tone)) for one in self.texts if one.y == top + 1
                )
                for left, right in beside:  # labels of other wires that leave here, and words of entries
                    if left < start + wide and start < right:
                        start = right
                if at - start > wide - 1:
                    self.texts.append(PlacedText(start, top + 1, label, tone, is_label=True))
            else:
                points = ((a.x + CHIP, top), (at, top), (at, bottom), (b.x - 1, bottom))
            self.wires.append(PlacedWire(number_of, tuple(points), True, source.is_bad, True))


def wire_text(edge: StoryEdge, value: Scalar | None) -> str:
    """Return what stands on a wire between iterations that carries a value."""
    back = edge.back
    if back is None:
        name = edge.ways[-1].name if edge.ways else ""
        return f" → {name} "
    shown = number(value) if edge.share is None else percent(edge.share)
    return f" ↺ {back.name} {shown} "


def cut_in_words(text: str, fits: Callable[[str], bool]) -> str:
    """Return the words of a text that fit, with an ellipsis; empty where a number would be cut.

    A function keeps its name: `exp(…)`. A name that has no room loses its end.
    """
    for end in reversed([found.start() for found in _BETWEEN.finditer(text)]):
        head = text[:end].rstrip(_SIGNS)
        made = f"{head}(…)" if text[end] == "(" else f"{head} …"
        if len(head) >= _LEAST_WORD and fits(made):
            return made
    for end in range(len(text) - 1, _LEAST_WORD, -1):
        head = text[:end].rstrip(f"{_SIGNS}(")
        if fits(f"{head}…"):
            return "" if _IN_NUMBER.search(head) else f"{head}…"
    return ""


def clipped(text: str, room: int) -> str:
    """Return a text that fits, with an ellipsis where it is cut."""
    if len(text) <= room:
        return text
    return f"{text[: room - 1]}…" if room > 0 else ""


def clipped_number(value: Scalar | None, room: int) -> str:
    """Return a number that fits, with fewer digits where it must; empty where there is none."""
    if value is None:
        return ""
    text = number(value)
    if len(text) > room and isinstance(value, float):
        text = next((one for digits in (3, 2, 1) if len(one := f"{value:.{digits}g}") <= room), text)
    return text if len(text) <= room else "#" * max(room, 0)
