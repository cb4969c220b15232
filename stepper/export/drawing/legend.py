"""Legends as drawings: samples of lines and boxes with words beside them, in rows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from stepper.export.drawing.shapes import Group, Path, Rectangle, Shape, TextLine
from stepper.export.figures.figure import LegendEntry, LegendSign
from stepper.export.fonts import SMALL_SIZE, advance

ROW: Final = 18
_WIDE: Final = 26.0
_GAP: Final = 6.0
_BETWEEN: Final = 20.0
_BOXES: Final = {
    LegendSign.PARAMETER: ("parameter", 5),
    LegendSign.MERGED: ("parameter merged", 5),
    LegendSign.RESULT: ("result", 5),
    LegendSign.CONDITION: ("result condition", 5),
    LegendSign.GROUP: ("group", 2),
    LegendSign.ACCUMULATOR: ("accumulator", 2),
    LegendSign.IDLE: ("idle", 2),
}
"""Classes and corners of boxes."""
_SIGNS: Final = {LegendSign.OPERAND: "·", LegendSign.STEP: "S[k]"}
"""Signs that are text."""
_WIDTHS: Final = {LegendSign.PORTS: 9.0, **{sign: advance(text, SMALL_SIZE) for sign, text in _SIGNS.items()}}


class Sample(NamedTuple):
    """An entry as it is drawn: its width, what draws it from a point of the base line on, and its words."""

    width: float
    drawn: Callable[[float, float], Sequence[Shape]]
    words: str


class LegendForm(NamedTuple):
    """Measures of a legend: style and size of its words, the height of a row, and the gaps."""

    style: str = "small"
    size: float = SMALL_SIZE
    row: float = ROW
    gap: float = _GAP
    between: float = _BETWEEN


def legend_drawn(
    samples: Sequence[Sample], x: float, y: float, width: float, form: LegendForm | None = None
) -> tuple[list[Shape], float]:
    """Return a legend as a group, in rows of at most that width, and where the next thing below may begin."""
    form = LegendForm() if form is None else form
    items: list[Shape] = []
    at, base = x, y + form.row * 0.75
    for sample in samples:
        words = advance(sample.words, form.size)
        wide = sample.width + (form.gap if sample.width else 0) + words
        if at > x and at + wide > x + width:
            at, base = x, base + form.row
        items += sample.drawn(at, base)
        items.append(TextLine(form.style, at + wide - words, base, sample.words))
        at += wide + form.between
    return ([Group(tuple(items), "legend")], base + form.row * 0.25) if samples else ([], y)


def legend_width(samples: Sequence[Sample]) -> float:
    """Return the width of a legend in one row."""
    texts = sum(sample.width + _GAP + advance(sample.words, SMALL_SIZE) for sample in samples)
    return texts + _BETWEEN * max(len(samples) - 1, 0)


def samples_of(entries: Sequence[LegendEntry]) -> list[Sample]:
    """Return the entries of a figure's legend as samples of what is drawn."""
    return [Sample(_WIDTHS.get(entry.sign, _WIDE), _drawer(entry.sign), entry.words) for entry in entries]


def torn_edge(x: float, width: float, y: float) -> Path:
    """Return a torn edge: a zigzag line of as many teeth as there is room for."""
    teeth = max(2, round(width / 12))
    step = width / (2 * teeth)
    return Path("tear", (tuple((x + step * at, y + (2.5 if at % 2 else -2.5)) for at in range(2 * teeth + 1)),))


def torn_edge_down(x: float, y: float, height: float) -> Path:
    """Return an upright torn edge."""
    teeth = max(2, round(height / 12))
    step = height / (2 * teeth)
    return Path("tear", (tuple((x + (2.5 if at % 2 else -2.5), y + step * at) for at in range(2 * teeth + 1)),))


def _drawer(sign: LegendSign) -> Callable[[float, float], Sequence[Shape]]:
    def draw(x: float, base: float) -> Sequence[Shape]:
        middle = base - 4
        if sign in _SIGNS:
            return [TextLine("small", x, base, _SIGNS[sign])]
        if sign is LegendSign.CUT:
            return [torn_edge(x, _WIDE, middle)]
        if sign is LegendSign.PORTS:
            return [Group((Rectangle("square", x, base - 8, 8, 8),), sign)]
        if sign is LegendSign.BLOCK:
            pile = (Rectangle("frame", x + 1 + at, base - 9 + at, _WIDE - 5, 8, 2) for at in (4, 2, 0))
            return [Group(tuple(pile), sign)]
        if sign in _BOXES:
            classes, corner = _BOXES[sign]
            style = "frame" if sign is LegendSign.IDLE else "box"
            return [Group((Rectangle(style, x + 1, base - 9, _WIDE - 2, 10, corner),), classes)]
        if sign is LegendSign.ENDS:
            line = Path("wire", (((x, middle), (x + _WIDE - 9, middle)),))
            edges = [("thin", _WIDE - 6), ("bar", _WIDE - 2)]
            marks = [Path(style, (((x + at, base - 10), (x + at, base + 2)),)) for style, at in edges]
            return [Group((line,), sign), *marks]
        tip = x + _WIDE
        half = x + _WIDE / 2 - 4
        crosses = (((half - 4, middle - 4), (half + 4, middle + 4)), ((half - 4, middle + 4), (half + 4, middle - 4)))
        return [
            Group(
                (
                    Path("wire", (((x, middle), (tip - 7, middle)),)),
                    Path("tip", (((tip, middle), (tip - 8, middle - 4), (tip - 8, middle + 4)),), closed=True),
                    *((Path("cross", crosses),) if sign is LegendSign.NO_EFFECT else ()),
                ),
                sign,
            )
        ]

    return draw
