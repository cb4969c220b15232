"""Rows of a pane in which values are drawn over iterations: name, picture, numbers; and how each is looked at."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final, NamedTuple

from stepper.debug.labels import label_of
from stepper.tensors.histories import ValueHistory
from stepper.tensors.number_text import fitted
from stepper.tensors.pictures import Form, ScaleKind
from tui.paint.rows import Cell, Row, clip, padded, printable, width_of
from tui.pictures.axis import Axis, Slot
from tui.pictures.drawing import (
    RowPicture,
    Strip,
    form_in,
    form_on,
    gaps,
    laid,
    next_scale,
    next_way,
    put_rails,
    row_of,
    unit_text,
)
from tui.pictures.palette import Palette
from tui.theme import GLYPHS

_BARS: Final = 6
"""Lines that bars could use."""
_KEPT: Final = 64
"""Rows of a pane that are drawn once."""


class ValueRow(NamedTuple):
    """A value to be drawn: its name and shape, what is known of it, the words for its numbers.

    `key` tells it from others in the pane; `beside` stands at the right, a row a line; `made` iterations have run.
    `shared` are other values with which it has one scale.
    """

    key: object
    glyph: Cell
    name: Cell
    shape: str
    values: ValueHistory | None
    labels: tuple[str, ...] = ()
    beside: tuple[Row, ...] = ()
    made: int = 0
    shared: tuple[ValueHistory, ...] = ()

    def is_same(self, other: ValueRow) -> bool:
        """True if another one is drawn in the same way, its values the same bit for bit."""
        if self[:3] != other[:3] or self[5:8] != other[5:8] or self.shape != other.shape:
            return False
        pairs = zip((self.values, *self.shared), (other.values, *other.shared), strict=False)
        return len(self.shared) == len(other.shared) and all(
            one is two or (one is not None and one.is_same(two)) for one, two in pairs
        )

    def last(self, now: int | None) -> str:
        """Return what the iteration of the moment has made, or else the one before."""
        return "" if now is None else self.at(now) or self.at(now - 1)

    def at(self, iteration: int | None) -> str:
        """Return the value of an iteration in a few cells: a number (of tensors that which fits), a label, T or F."""
        values = self.values
        found = None if values is None or iteration is None else values.number(iteration)
        if values is None or found is None:
            return ""
        if self.labels and values.elements == 1:
            return f"'{printable(label_of(self.labels, found))}'"
        if values.type == "boolean" and values.elements == 1:
            return GLYPHS["true" if found else "false"]
        return fitted(found)


class RowColumns(NamedTuple):
    """Cells for the names, for the picture, and for what stands at the right."""

    name: int
    picture: int
    beside: int


class DrawnRows(NamedTuple):
    """The rows of a value, and the axis on which it stands in them: numbers take other cells than slots."""

    rows: list[Row]
    axis: Axis


class Looks:
    """How the rows of a pane are looked at, as far as somebody chose it, and what was drawn of them."""

    def __init__(self) -> None:
        self._drawn: OrderedDict[object, tuple[ValueRow, DrawnRows]] = OrderedDict()
        self._ways: dict[object, str | None] = {}
        self._kinds: dict[object, ScaleKind | None] = {}

    def kept(self, one: ValueRow, how: object) -> DrawnRows | None:
        """Return the rows of a value where they were drawn before; `how` is all else that they depend on."""
        found = self._drawn.get((one.key, one.made, how))
        return found[1] if found is not None and found[0].is_same(one) else None

    def keep(self, one: ValueRow, how: object, rows: DrawnRows) -> None:
        """Remember what was drawn; most values are as before after a key, and as they were two iterations ago."""
        self._drawn[one.key, one.made, how] = one, rows
        while len(self._drawn) > _KEPT:
            self._drawn.popitem(last=False)

    def way(self, key: object) -> str | None:
        """Return how several numbers of a row become one; None: as suits them."""
        return self._ways.get(key)

    def choose(self, key: object, way: str | None) -> None:
        """Have several numbers of a row become one in this way; None: as if nobody had chosen."""
        self._ways[key] = way

    def follow(self, key: object, other: object) -> None:
        """Look at a row as at another one."""
        self._ways[key], self._kinds[key] = self.way(other), self.kind(other)

    def kind(self, key: object) -> ScaleKind | None:
        """Return the scale of a row; None: what suits its numbers."""
        return self._kinds.get(key)

    def look_on(self, key: object, direction: int, values: ValueHistory | None = None) -> None:
        """Show the row of a value by another number of several, or with another scale (-1)."""
        if direction > 0:
            self._ways[key] = None if values is None else next_way(values, self.way(key))
        else:
            self._kinds[key] = next_scale(self.kind(key))


def size_wanted(
    values: ValueHistory | None, axis: Axis, labels: tuple[str, ...] = (), *, is_ruled: bool = False
) -> tuple[int, bool]:
    """Return how many numbers a column of the row has, and whether it is a picture of them."""
    if values is None:
        return 1, False
    form = form_on(form_in(values), labels, [values], axis)
    if form is Form.PICTURE:
        return values.elements, True
    if (
        not is_ruled
        and form is Form.BARS
        and values.type[0] in "iu"
        and _figures(values, axis, values.count, axis.reach)[1] is not None
    ):
        return 1, False
    return {Form.BARS: _BARS, Form.CATEGORIES: 2}.get(form, 1), False


def value_rows(
    one: ValueRow,
    axis: Axis,
    height: int,
    columns: RowColumns,
    looks: Looks,
    palette: Palette,
    *,
    marked: Sequence[int] = (),
    a: Sequence[int] = (),
    is_ruled: bool = False,
) -> DrawnRows:
    """Return a value over the iterations of an axis, in so many lines; the slots of `marked` iterations are tinted.

    So are those of the iterations of A, in its colour. `is_ruled`: the iterations are numbered above, so that each
    value has to stand in its slot.
    """
    how = axis, height, columns, palette, looks.way(one.key), looks.kind(one.key), tuple(marked), tuple(a), is_ruled
    kept = looks.kept(one, how)
    if kept is not None:
        return kept
    lines, notes, axis = _drawn(one, axis, height, columns, looks, palette, is_ruled=is_ruled)
    slots = [
        (slot, iterations is a)
        for iterations in (a, marked)
        for iteration in iterations
        for slot in axis.slots
        if slot.first <= iteration < slot.last
    ]
    names = _names(one, notes, columns.name - width_of([one.glyph]), height)
    found = []
    for y in range(height):
        row: Row = [one.glyph if not y else (" " * len(one.glyph[0]), ""), *(names[y] if y < len(names) else [])]
        row.append((" " * (columns.name - width_of(row)), ""))
        cells = laid(lines[y], columns.picture)
        for slot, is_a in slots:
            put_rails(cells, slot, palette, is_selected=True, is_a=is_a)
        row += row_of(cells)
        if y < len(one.beside):
            row += [(" " * max(columns.beside - width_of(one.beside[y]), 1), ""), *one.beside[y]]
        found.append(row)
    drawn = DrawnRows(found, axis)
    looks.keep(one, how, drawn)
    return drawn


def _drawn(
    one: ValueRow, axis: Axis, height: int, columns: RowColumns, looks: Looks, palette: Palette, *, is_ruled: bool
) -> tuple[list[list[Strip]], list[str], Axis]:
    """Return the strips of each line, what is said of the scale and of how many numbers share a line, and the axis."""
    way, values = looks.way(one.key), one.values
    room, letters = columns.picture, columns.name - width_of([one.glyph]) - 1
    lines: list[list[Strip]] = [[] for _ in range(height)]
    notes: list[str] = []
    if values is not None:
        histories = [values, *(other for other in one.shared if other.elements == values.elements)]
        drawn = RowPicture(histories, axis, None, one.labels, way, looks.kind(one.key))
        if not drawn.is_readable(height, letters):
            drawn = RowPicture(histories, axis, Form.BARS, (), way, looks.kind(one.key))
        in_words = not is_ruled and drawn.form in (Form.BARS, Form.CATEGORIES)
        words, placed = _figures(values, axis, one.made, room) if in_words else ([], None)
        if placed is not None:
            return [words, *lines[1:]], [], placed
        lines = drawn.lines(values, axis, height, palette)
        notes = [drawn.note(letters)]
        if drawn.form is Form.PICTURE or not (values.is_whole or one.shape.startswith(GLYPHS["shape"])):
            notes.append(unit_text(values, height, way, letters, is_plain=palette.look.plain))
    lines[-1] = [*lines[-1], *gaps(values, axis, one.made)]
    return lines, [note for note in notes if note], axis


def _figures(values: ValueHistory, axis: Axis, made: int, room: int) -> tuple[list[Strip], Axis | None]:
    """Return whole numbers one after another, where they have no room in their slots and fit so, with their axis."""
    if (
        values.type[0] not in "iu"
        or values.elements != 1
        or not values.is_whole
        or len(values.spans) != made
        or not axis.slots
    ):
        return [], None
    figures = [str(int(number)) for number in values.numbers[0, :, 0]]
    is_backward = axis.slots[0].first > axis.slots[-1].first
    begin, used = axis.slots[0].start, len(" ".join(figures))
    if not figures or used > room - begin:
        return [], None
    free = max(min(len(axis.slots) - made, room - begin - used), 0)
    at = room if is_backward else begin
    strips: list[Strip] = []
    slots: list[Slot] = []
    for iteration, figure in enumerate(figures):
        at -= len(figure) if is_backward else 0
        strips.append((at, figure, "strong"))
        slots.append(Slot(at, len(figure) + 1, iteration, iteration + 1))  # with the gap behind it
        at += -1 if is_backward else len(figure) + 1
    at = at + 1 - free if is_backward else at - 1
    strips.append((at, GLYPHS["free"] * free, "faint"))
    coming = range(made, made + free)
    slots += [Slot(at + k, 1, one, one + 1) for k, one in enumerate(reversed(coming) if is_backward else coming)]
    return strips, Axis(tuple(slots), axis.entered)


def _names(one: ValueRow, notes: Sequence[str], room: int, height: int) -> list[Row]:
    """Return the lines of a label: name and shape, the scale, how many numbers stand in how many lines."""
    name, tone = one.name
    if len(name) + len(one.shape) + 1 <= room - 1 or height == 1:
        rest = room - 1 - min(len(name), room - 1)
        shape = one.shape if len(one.shape) < rest else ""
        rows: list[Row] = [[(clip(name, room - 1), tone), (f" {shape}" if shape else "", "dim")]]
    else:
        rows = [[(clip(name, room - 1), tone)], [(clip(one.shape, room - 1), "dim")]]
    rows += [[(padded(note, room - 1), "dim")] for note in notes]
    return rows
