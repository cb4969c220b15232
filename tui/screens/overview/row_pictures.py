"""The picture of one row of a card: its numbers over the iterations, or words instead."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

from stepper.tensors.number_text import fitted
from stepper.tensors.pictures import Form, ScaleKind
from tui.pictures.axis import ENTERED, Axis, Slot
from tui.pictures.drawing import RowPicture, Strip, brief_way, column, columns_on, has_ways, truth, unit_text, way_in
from tui.screens.overview.cards import Card, Line, LinePart, is_true_over
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.element_types import Array
    from stepper.tensors.histories import ValueHistory
    from tui.pictures.palette import Palette
    from tui.screens.overview.arrangement import Shown, Wishes
    from tui.screens.overview.cursor import Place


class Drawn(NamedTuple):
    """The strips of a row by line, and the words for its scale and for how many numbers a line stands."""

    lines: list[list[Strip]]
    scale: str = ""
    unit: str = ""


class RowPictures:
    """The pictures of rows, drawn once for each height, axis and choice."""

    def __init__(self) -> None:
        self._drawn: dict[object, Drawn] = {}

    def clear(self) -> None:
        """Draw all anew."""
        self._drawn.clear()

    def of(self, shown: Shown, line: Line, height: int, wishes: Wishes, palette: Palette, letters: int) -> Drawn:
        """Return the picture of a row."""
        if line.form is Form.WORDS:
            return _said(line, shown.axes[0], height)
        key = shown.card.key(line)
        kept = (key, height, way_of(wishes, shown.card, line), wishes.scales.get(key), shown.axes, shown.runs, letters)
        if kept not in self._drawn:
            self._drawn[kept] = _draw(shown, line, height, wishes, palette, letters)
        return self._drawn[kept]


def way_of(wishes: Wishes, card: Card, line: Line) -> str | None:
    """Return how several numbers of a row become one, as it was chosen; None: as suits them."""
    return wishes.ways.get(card.key(line))


def value_at(card: Card, line: Line, at: Place, wishes: Wishes) -> tuple[ValueHistory | None, Array | None]:
    """Return the history of a row in the cursor's run, and its numbers in the cursor's iteration."""
    history = card.history(line, at.run)
    if history is None:
        return None, None
    return history, column(history, at.iteration, at.iteration + 1, way_of(wishes, card, line))


def picture_of_a(
    shown: Shown, line: Line, theirs: ValueHistory, run: int, height: int, wishes: Wishes, palette: Palette
) -> list[list[Strip]]:
    """Return the values of a row in another run, on the axis and the scale of this one."""
    card, scale = shown.card, wishes.scales.get(shown.card.key(line))
    axis = shown.axes[shown.runs.index(run)]
    drawn = RowPicture(card.histories(line), axis, line.form, line.labels, way_of(wishes, card, line), scale)
    return drawn.lines(theirs, axis, height, palette)


def _said(line: Line, axis: Axis, height: int) -> Drawn:
    came = f"{line.came[: ENTERED + 2]:>{ENTERED}}" if line.came else ""
    entered = axis.entered or 0
    begin = entered + max(ENTERED, len(came)) + 1
    strips: list[Strip] = [(entered, came, "dim"), (begin, line.words, "dim")]
    return Drawn([strips, *([[]] * (height - 1))])


def _draw(shown: Shown, line: Line, height: int, wishes: Wishes, palette: Palette, letters: int) -> Drawn:
    card, way = shown.card, way_of(wishes, shown.card, line)
    histories = card.histories(line)
    scale = wishes.scales.get(card.key(line))
    if line.part is LinePart.CHANGE and scale is None:
        scale = ScaleKind.LOG
    is_growth = line.part is LinePart.GROWTH
    drawn = RowPicture(histories, shown.axes[0], Form.TRUTH if is_growth else line.form, line.labels, way, scale)
    if not drawn.is_readable(height, letters):
        drawn = RowPicture(histories, shown.axes[0], Form.BARS, (), way, scale)
    found: list[list[Strip]] = [[] for _ in range(height)]
    for run, axis in zip(shown.runs, shown.axes, strict=True):
        history = card.history(line, run)
        parts: list[list[Strip]] = []
        if history is not None and is_growth:
            shapes = {one.iteration for one in card.shapes(line, run)}
            parts = [_growth(history, slot, shapes) for slot in axis.slots]
            parts = [[strip for part in parts for strip in part]]
        elif history is not None:
            parts = drawn.lines(history, axis, height, palette)
            if line.part is LinePart.CHANGE:
                _mark_stills(parts, history, axis)
            if line.places and height > 1:
                _write_places(parts, line.places, axis, history.elements, height, plain=palette.look.plain)
        elif drawn.form is Form.TRUTH and card.runs:
            verdicts = [(slot, is_true_over(card.runs[run], slot.first, slot.last)) for slot in axis.slots]
            free = [slot for slot in axis.slots if slot.first >= card.runs[run].iterations]
            dots: list[Strip] = [(slot.start + (slot.width - 1) // 2, GLYPHS["free"], "faint") for slot in free]
            parts = [[*truth(verdicts, rare=False), *dots]]
        for y, part in enumerate(parts[:height]):
            found[y] += part
    has_notes = height > 1 and not is_growth
    notes = _notes(drawn, histories, height, letters, is_plain=palette.look.plain) if has_notes else ("", "")
    return Drawn(found, *notes)


def _notes(
    drawn: RowPicture, histories: Sequence[ValueHistory], height: int, letters: int, *, is_plain: bool
) -> tuple[str, str]:
    """Return the words for the scale, with by which number all elements are one, and for several in a line."""
    history = histories[0] if histories else None
    if history is None or history.elements > 1 or history.is_whole:
        unit = (
            unit_text(history, height, drawn.way, letters, is_plain=is_plain)
            if history is not None and has_ways(history)
            else ""
        )
        return drawn.note(letters), unit
    by = brief_way(way_in(history, drawn.way))
    return f"{by} {drawn.note(letters - len(by) - 1)}", ""


def _growth(history: ValueHistory, slot: Slot, shapes: Collection[int]) -> list[Strip]:
    """Return what a value has more than before, in a slot; `shapes` are iterations with another shape than before."""
    numbers = column(history, slot.first, slot.last, None)
    if numbers is None:
        return []
    has_other = not numbers[0] and any(slot.first <= one < slot.last for one in shapes)
    text = GLYPHS["shape"] if has_other else growth_text(numbers, has_other=False)
    if len(text) >= slot.width and not has_other:
        text = "=" if not numbers[0] else "+" if numbers[0] > 0 else "-"
    token = "strong" if numbers[0] or has_other else "dim"
    return [(slot.start + (slot.width - len(text)) // 2, text, token)]


def growth_at(card: Card, line: Line, at: Place, numbers: Array) -> str:
    """Return what a value has more in an iteration than before."""
    return growth_text(numbers, has_other=any(one.iteration == at.iteration for one in card.shapes(line, at.run)))


def growth_text(numbers: Array, *, has_other: bool) -> str:
    """Return what a value has more than before: one number, so many elements, nothing (or they have another shape)."""
    more, is_one, joined = (float(one) for one in numbers)
    if is_one:
        return f"+{fitted(joined)}"
    if not more:
        return "another shape" if has_other else "same"
    return f"{int(more)} more" if more > 0 else f"{int(-more)} less"


def _mark_stills(lines: list[list[Strip]], history: ValueHistory, axis: Axis) -> None:
    """Write where nothing changed, not one bit's worth."""
    columns = zip(axis.slots, columns_on(history, axis, "largest"), strict=True)
    still = [slot for slot, numbers in columns if numbers is not None and numbers[0] == 0]
    starts = {slot.start for slot in still}
    for line in lines if still else ():
        line[:] = [strip for strip in line if strip[0] not in starts]
    lines[-1] += [(slot.start, "=" * (slot.width - (slot.width >= 3)), "dim") for slot in still]


def _write_places(
    lines: list[list[Strip]], places: tuple[str, ...], axis: Axis, size: int, height: int, *, plain: bool
) -> None:
    """Write the words for the elements at the left of a picture, one or two a line."""
    whole = plain or size <= height
    if len(places) != size or (size > height if whole else size > 2 * height):
        return
    for y in range(height):
        words = places[y : y + 1] if whole else places[2 * y : 2 * y + 2]
        text = "".join((word[:1] or " ").replace(" ", "␣") for word in words)
        lines[y].append((axis.entered or 0, f"{text:>{ENTERED}}", "dim"))
