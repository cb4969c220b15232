"""One value in A and now, in three pictures: A, now, the difference; with one scale for A and now."""

from __future__ import annotations

import math
from typing import ClassVar, Final, NamedTuple

import numpy as np
from msgspec.structs import replace

from stepper import element_types
from stepper.debug.inspection.views import BackEdgeView
from stepper.debug.labels import label_of
from stepper.element_types import Array
from stepper.ops.operands import shape_text
from stepper.plain_values import storable
from stepper.tensors.difference import Change, Difference, signed_differences
from stepper.tensors.number_text import fitted
from stepper.tensors.pictures import Scale, scale_of, shades
from stepper.tensors.planes import row_shape
from stepper.tensors.surveys import largest_of
from tui.paint.names import carried_name, operation_names, partner_mark
from tui.paint.pane import Pane
from tui.paint.rows import Row, clip_end, padded, printable, shape_of, spread, width_of
from tui.pictures.drawing import fitting_number
from tui.state import State
from tui.theme import GLYPHS

PAIR_LABEL: Final = 10
"""Cells of the names of the rows."""
_MOST: Final = 100_000
"""Elements of a row that are drawn."""
_SIZES: Final = (9, 8, 7, 6, 5, 4)
"""Cells of an element with its number below."""


class PairedRow(NamedTuple):
    """A row of elements along the last axis of more than one, in A and now: that with the largest difference.

    `lead` and `tail` are where it lies on the axes before and after it; `best` the element that differs most.
    """

    lead: tuple[int, ...]
    tail: tuple[int, ...]
    a: Array
    now: Array
    gap: Array
    best: int

    @property
    def is_truth(self) -> bool:
        """True if the values are true or false: they have no difference, but are the same or not."""
        return self.now.dtype == np.bool_

    def text(self, value: float) -> str:
        """Return an element in words."""
        return GLYPHS["true" if value else "false"] if self.is_truth else fitted(value)


def paired_row(a: Array, now: Array, found: Difference | None) -> PairedRow | None:
    """Return the row of two values that tells most; None where they cannot be laid beside each other."""
    if a.shape != now.shape or not now.size:
        return None
    left, right = storable(a), storable(now)
    if left.dtype.kind not in "fiub" or right.dtype.kind not in "fiub":
        return None
    shape = row_shape(now.shape)
    whole = (found.at if found is not None else ()) or (0,) * now.ndim
    at, tail = whole[: len(shape)], whole[len(shape) :]
    row, best = at[:-1], at[-1] if at else 0
    left, right = (side.reshape(shape)[row].reshape(-1) for side in (left, right))
    left, right = left[:_MOST], right[:_MOST]
    return PairedRow(row, tail, left, right, signed_differences(right, left), min(best, len(left) - 1))


def pair_rows(pane: Pane, pair: PairedRow, width: int, labels: tuple[str, ...] = (), *, is_tall: bool) -> list[Row]:
    """Return A, now and the difference below each other; tall ones have shades above their numbers."""
    room = width - PAIR_LABEL - 1
    count = len(pair.a)
    size = next((size for size in _SIZES if size * count <= room), 0)
    rows: list[Row] = []
    if size and is_tall:
        heads = [label_of(labels, value) if labels else str(place) for place, value in enumerate(range(count))]
        if not labels:
            rows.append(
                [
                    (" " * PAIR_LABEL, ""),
                    *[
                        (f"{head:>{size - 1}} ", "now" if place == pair.best else "dim")
                        for place, head in enumerate(heads)
                    ],
                ]
            )
    scale = scale_of(np.concatenate((pair.a.astype(np.float64), pair.now.astype(np.float64))))
    parts = (
        ("A", "a", pair.a.astype(np.float64), scale),
        ("now", "accent", pair.now.astype(np.float64), scale),
        ("now − A", "note", pair.gap, replace(scale_of(pair.gap), signed=True)),
    )
    for name, tone, values, own in parts:
        is_gap = name == "now − A"
        if is_tall or not size:
            rows.append(
                [(padded(f" {name}", PAIR_LABEL), tone), *_tiles(pane, pair, values, own, room, size, is_gap=is_gap)]
            )
        if size:
            label = "" if is_tall else f" {name}"
            rows.append([(padded(label, PAIR_LABEL), tone), *_numbers(pair, values, size, is_gap=is_gap)])
    return rows


def _tiles(pane: Pane, pair: PairedRow, values: Array, scale: Scale, room: int, size: int, *, is_gap: bool) -> Row:
    wide = size or next((wide for wide in (3, 2, 1) if wide * len(values) <= room), 0)
    shown = values if wide else np.array([largest_of(part) for part in np.array_split(values, room)])
    row: Row = []
    for place, level in enumerate(shades(shown, scale).tolist()):
        if is_gap and wide and not math.isfinite(level):
            text, tone = _gap_text(float(pair.a[place]), float(pair.now[place]), level, 1)
            row.append((f"{text:^{wide}}"[:wide], tone))
        else:
            row.append(pane.tile(level, wide or 1, signed=scale.signed))
    return row


def _numbers(pair: PairedRow, values: Array, size: int, *, is_gap: bool) -> Row:
    row: Row = []
    for place, value in enumerate(values.tolist()):
        a, now = float(pair.a[place]), float(pair.now[place])
        if pair.is_truth:
            text, tone = (
                (GLYPHS["diff"] if value else "=", "" if value else "dim") if is_gap else (pair.text(value), "")
            )
        elif is_gap:
            text, tone = _gap_text(a, now, value, size - 1)
        else:
            bad = not math.isfinite(value)
            text, tone = (fitted(value), "bad") if bad else (_fitting(value, size - 1) or "·", "")
        tone = f"{tone} strong".strip() if place == pair.best and tone != "bad" else tone
        row.append((f"{text:>{size - 1}} ", tone))
    return row


def _fitting(value: float, room: int) -> str:
    """Return a number in so many cells, of a share with as many decimals as there is room for."""
    if 1e-3 <= abs(value) < 1 and room < 6:
        return f"{value:.{max(room - 1 - (value < 0), 1)}f}".replace("0.", ".", 1)[:room]
    return fitting_number(value, room)


def _gap_text(a: float, now: float, gap: float, room: int) -> tuple[str, str]:
    if (a == now and math.copysign(1, a) == math.copysign(1, now)) or (math.isnan(a) and math.isnan(now)):
        return "=", "dim"
    if math.isfinite(a) and math.isfinite(now):
        text = _fitting(abs(gap), room - 1)
        return f"{'+' if gap >= 0 else '-'}{text}", ""
    word = "mended" if math.isfinite(now) else "broken" if math.isfinite(a) else "other"
    return word if len(word) <= room else {"mended": "✓", "broken": "✗"}.get(word, "~"), "strong"


def sentence(pair: PairedRow, found: Difference | None, room: int) -> Row:
    """Return the element that differs most, and how many others do; of that what has room, in whole parts."""
    if found is None:
        return []
    if found.change is Change.SAME:
        words = ("the same bits in A and now", "the same bits", "same")
        return [(next((text for text in words if len(text) <= room), words[-1]), "dim")]
    place = (*pair.lead, pair.best, *pair.tail) if len(pair.a) > 1 or pair.lead else ()
    a, now, gap = float(pair.a[pair.best]), float(pair.now[pair.best]), float(pair.gap[pair.best])
    at = f"[{','.join(map(str, place))}]  " if place else ""
    row: Row = [(at, "dim"), (pair.text(a), "a"), (" → ", "dim"), (pair.text(now), "strong")]
    if width_of(row) > room:
        del row[0]
    more: Row = []
    if math.isfinite(a) and math.isfinite(now) and not pair.is_truth:
        more.append((f"   {gap:+.4g}", "strong" if found.beyond else "dim"))
    rest = found.size - found.different
    if found.size > 1:
        same = (
            f"the other {rest:,} have the same bits"
            if found.different == 1
            else f"{found.different:,} of {found.size:,} differ"
        )
        beyond = "" if found.beyond or found.change is not Change.NUMBER else ", all within the tolerance"
        more.append((f"   {same}{beyond}", "dim"))
    for cell in more:
        row += [cell] if width_of([*row, cell]) <= room else []
    return row


def carried_rows(pane: Pane, state: State, edge: BackEdgeView, width: int) -> list[Row]:
    """Return what a back edge brought into the iteration of A and of now, and the difference; empty without any."""
    a, layer = state.a, edge.parameter.layer
    theirs = None if a is None or a.loop is None or layer is None else a.loop.value(layer.id)
    now = edge.came_in if edge.came_in is not None else edge.parameter.array
    if a is None or layer is None or theirs is None or now is None:
        return []
    found = a.carried.get(layer.id)
    name: Row = [
        (f" {GLYPHS['back']} ", "accent"),
        (carried_name(layer), "strong"),
        (f" {shape_of(now.shape)}  ", "dim"),
    ]
    pair = paired_row(theirs, now, found)
    if pair is None:
        kinds = [f"{element_types.name_of(one.dtype)}{shape_text(one.shape)}" for one in (theirs, now)]
        shapes: Row = [*name, (kinds[0], "a"), (" → ", "dim"), (kinds[1], "strong")]
        words: Row = [("   another shape", "dim")]
        return [[*shapes, *words] if width_of([*shapes, *words]) < width else shapes]
    rows: list[Row] = [[*name, *sentence(pair, found, width - width_of(name) - 1)]]
    if len(pair.a) > 1 and (found is None or found.change is not Change.SAME):
        rows += pair_rows(pane, pair, width, is_tall=False)
    return rows


class ValuePair(Pane):
    """The value of the selected operation in A and now, and the difference."""

    DEFAULT_CSS = "ValuePair { border-top: solid $foreground 14%; }"
    kind: ClassVar[str] = "value"
    title = "value"
    help_text: ClassVar[str] = (
        "The value of the selected operation: in A, now, and the difference, with one scale for A and now.\n"
        "= the same bits; Enter opens it full screen."
    )

    def heading(self, width: int) -> list[Row]:
        """Return the value's name, and its type."""
        frame, cursor = self.state.frame, self.state.cursor
        if frame is None or cursor is None or not frame.layers[cursor].outputs:
            return super().heading(width)
        name, mark = operation_names(frame.program)[cursor], partner_mark(frame.program, cursor)
        iteration = "" if frame.iteration is None else f"@{frame.iteration}"
        title = f"{name}:0{iteration}{mark}"
        array = frame.output(cursor).array
        kind = "" if array is None else f"{element_types.name_of(array.dtype)}{shape_text(array.shape)}   Enter opens"
        kind = f"{self.look.edited} edited   {kind}" if frame.is_edited(cursor) else kind
        focus, (_, tone), *_ = super().heading(width)[0]
        words = "   A | now | difference"
        if len(title) + len(words) + len(kind) + 6 > width:
            words = ""
        if len(title) + len(kind) + 6 > width:
            kind = kind.removesuffix("   Enter opens")
        return [spread([focus, (title, tone), (words, "note")], [(kind, "note")], width)]

    def rows(self, width: int) -> list[Row]:
        """Return A, now, the difference, and a sentence; as many lines whatever the value is."""
        room = 4 if self.styles.height is None or self.styles.height.is_auto else max(self.size.height - 1, 4)
        found = self.value_rows(width, is_tall=room >= 10)
        return [*found, [], [], [], []][: max(room, 4)]

    def value_rows(self, width: int, *, is_tall: bool) -> list[Row]:
        """Return A, now, the difference and a sentence."""
        state = self.state
        frame, cursor, a = state.frame, state.cursor, state.a
        if a is None or frame is None or cursor is None or not frame.layers[cursor].outputs:
            return []
        if a.problem:
            return [[(f" {printable(a.problem)}", "dim")]]
        theirs = None if a.values is None else a.values.output(cursor)
        now = frame.output(cursor)
        if theirs is None:
            return [[(" A has no value of it", "dim")]]
        if now.array is None:
            alone = paired_row(theirs, theirs, None)
            rows = [] if alone is None else pair_rows(self, alone, width, is_tall=is_tall)[: 3 if is_tall else 1]
            return [*rows, [(f" now: {now.absent}", "dim")]]
        found = a.difference(cursor)
        pair = paired_row(theirs, now.array, found)
        if pair is None:
            return self._of_other_shape(theirs, now.array, width)
        return [*pair_rows(self, pair, width, is_tall=is_tall), [(" ", ""), *sentence(pair, found, width - 2)]]

    def _of_other_shape(self, a: Array, now: Array, width: int) -> list[Row]:
        rows: list[Row] = []
        for name, tone, value in (("A", "a", a), ("now", "accent", now)):
            kind = f"{element_types.name_of(value.dtype)}{shape_text(value.shape)}"
            rows.append([(padded(f" {name}", PAIR_LABEL), tone), (clip_end(kind, width - PAIR_LABEL), "")])
        same = (
            "the same bits" if np.array_equal(a, now) else "another shape" if a.shape != now.shape else "other values"
        )
        return [*rows, [(padded(" now − A", PAIR_LABEL), "note"), (same, "strong")]]


class MomentPictures(ValuePair):
    """The value in A and now, large; then what the loop carries, in A and now."""

    DEFAULT_CSS = "MomentPictures { height: 1fr; border-top: none; }"
    kind: ClassVar[str] = "moments"
    title = "two moments"
    help_text: ClassVar[str] = (
        "The selected value in A and now, and the difference: one scale for A and now, its own for the difference.\n"
        "Below it what entered the two iterations over the back edges. = makes A another moment, ' A goes there,\n"
        "and A becomes where one was; v shows the graph in this place."
    )

    def rows(self, width: int) -> list[Row]:
        """Return the value, then each carried value while there is room."""
        rows = [[], *self.value_rows(width, is_tall=True)]
        loop, a = self.state.loop, self.state.a
        if loop is None or a is None or a.loop is None:
            return rows
        words = "   what entered the iteration"
        heading: Row = [(" back edges", "title"), (words if width > len(words) + 12 else "   entered", "note")]
        rows += [[], heading]
        for edge in loop.back_edges:
            rows += carried_rows(self, self.state, edge, width)
        return rows

    def update(self, state: State) -> None:
        """Begin at the top with another value."""
        if (state.cursor, state.iteration) != (self.state.cursor, self.state.iteration):
            self.top = 0
        super().update(state)
