"""Values over iterations as strips (column, text, token), and the painter that lays overlapping strips into cells.

Pure functions: value, then shade, then cells. The screens say which values, on which axis, in how many lines.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from msgspec.structs import replace
from rich.style import Style

from stepper.debug.labels import label_of
from stepper.tensors.histories import KeptStatistic, ValueHistory
from stepper.tensors.number_text import fitted, short_exponent
from stepper.tensors.pictures import (
    BarScale,
    Form,
    Scale,
    ScaleKind,
    bar_scale,
    different,
    digits,
    far_beyond,
    form_of,
    heights,
    scale_of,
    shades,
    share_text,
    share_within,
)
from stepper.tensors.surveys import CellStatistic
from tui.paint.rows import Row, Token, cell_len, clip, few_digits, figure, printable
from tui.pictures.axis import ENTERED, Axis, Slot, ruler
from tui.theme import GLYPHS

if TYPE_CHECKING:
    from stepper.element_types import Array
    from tui.pictures.palette import Palette

Strip = tuple[int, str, Token]
Cells = list[tuple[str, Token]]

EIGHTHS: Final = " ▁▂▃▄▅▆▇█"
_COVERED: Final = f"▀{EIGHTHS}╌{GLYPHS['free']}"
"""Characters that a rail may cover."""
_NUMBERED: Final = 6
"""Cells of a slot from which on whole lines have the number itself."""
_DIGITS: Final = 6
_FEW: Final = 6
"""Different whole numbers that are drawn as letters."""
_RAILED: Final = 5
"""Cells of a slot from which on rails fit beside the picture."""


# --- pictures of a row ----------------------------------------------------------------------------------------------


def first_bad(history: ValueHistory) -> int | None:
    """Return the first iteration with a NaN or Inf."""
    return min((one for one in (history.first_nan, history.first_infinite) if one is not None), default=None)


def way_in(history: ValueHistory, chosen: str | None) -> str:
    """Return how several numbers of a value become one: as was chosen, else as suits it.

    Of one number an iteration there are not several; of many iterations together the largest stands for them. Of
    booleans the mean is how many are true.
    """
    if not has_ways(history):
        return CellStatistic.LARGEST.value
    if chosen is not None or history.elements > 1:
        return chosen or WAYS[0]
    if history.type == "boolean":
        return CellStatistic.MEAN.value
    return (CellStatistic.LARGEST if history.type[:1] in ("i", "u") else CellStatistic.RMS).value


def has_ways(history: ValueHistory) -> bool:
    """True if there are several numbers an iteration, of which one can be made in several ways."""
    return history.elements > 1 or not history.is_whole


def next_way(history: ValueHistory, chosen: str | None) -> str:
    """Return the way behind the one in which several numbers of a value become one now."""
    return WAYS[(WAYS.index(way_in(history, chosen)) + 1) % len(WAYS)]


def next_scale(kind: ScaleKind | None) -> ScaleKind | None:
    """Return the scale behind another one."""
    return SCALES[(SCALES.index(kind) + 1) % len(SCALES)]


def _statistic(history: ValueHistory, way: str | None) -> KeptStatistic:
    """Return which of the numbers of a history are asked for."""
    return KeptStatistic.LARGEST if history.is_whole else _STATISTICS[way_in(history, way)]


def column(history: ValueHistory, first: int, last: int, way: str | None) -> Array | None:
    """Return the numbers of iterations [first, last), of buckets those of a statistic; None where none ran."""
    return history.over(first, last, _statistic(history, way))


def columns_on(history: ValueHistory, axis: Axis, way: str | None) -> list[Array | None]:
    """Return the numbers in each slot; None where none is known."""
    if any(slot.is_bin for slot in axis.slots):
        return history.over_each([(slot.first, slot.last) for slot in axis.slots], _statistic(history, way))
    firsts = np.array([slot.first for slot in axis.slots], np.int64)
    if not len(firsts) or not len(history.spans):  # a loop that did not begin has an axis, and no iteration
        return [None] * len(firsts)
    places = np.searchsorted(history.spans[:, 1], firsts, side="right")
    begins = history.spans[np.minimum(places, len(history.spans) - 1), 0]
    is_known = (places < len(history.spans)) & (begins <= firsts)
    numbers = history.numbers[_statistic(history, way)]
    return [numbers[at] if known else None for at, known in zip(places.tolist(), is_known.tolist(), strict=True)]


def numbers_in(history: ValueHistory, first: int, count: int, way: str | None) -> tuple[Array, list[int]]:
    """Return the numbers [iteration, element] of those of `count` iterations that are known, and which these are."""
    wanted = np.arange(first, first + count, dtype=np.int64)
    if not len(history.spans):
        return np.empty((0, history.elements)), []
    places = np.minimum(np.searchsorted(history.spans[:, 0], wanted), len(history.spans) - 1)
    known = np.flatnonzero((history.spans[places, 0] == wanted) & (history.spans[places, 1] == wanted + 1))
    numbers = history.numbers[_statistic(history, way)]
    return numbers[places[known]], known.tolist()


def entered(history: ValueHistory, way: str | None) -> Array | None:
    """Return the numbers of what came in, in the form of a column; None where it has another one."""
    known = history.entered
    if known is None or known.shape[-1] != history.elements:
        return None
    return np.asarray(known[0 if len(known) < 3 else _statistic(history, way)])


WAYS: Final = tuple(one.value for one in CellStatistic)
"""How several numbers become one where there is not a line each."""
_BRIEF_WAYS: Final = {"largest": "max"}
"""The same in few letters."""
_STATISTICS: Final = {"mean": KeptStatistic.MEAN, "largest": KeptStatistic.LARGEST, "rms": KeptStatistic.RMS}
SCALES: Final[tuple[ScaleKind | None, ...]] = (None, ScaleKind.LINEAR, ScaleKind.LOG, ScaleKind.ROBUST)
"""The scales of a row that can be chosen; None: what suits its numbers."""


def row_scale(histories: Sequence[ValueHistory], way: str | None, kind: ScaleKind | None) -> Scale:
    """Return the scale of a row over all of its runs; what entered has only its sign in it, as it may be far off."""
    numbers = [one.numbers[_statistic(one, way)] for one in histories]
    found = scale_of(np.concatenate([np.zeros(0), *(np.ravel(one).astype(np.float64) for one in numbers)]), kind)
    came = (entered(one, way) for one in histories)
    return replace(found, signed=found.signed or any(one is not None and bool((one < 0).any()) for one in came))


def reduced(numbers: Array, count: int, way: str) -> Array:
    """Return a column in at most so many numbers: of neighbours the mean, the largest or the rms; NaN before Inf.

    Of several columns, [column, element], each.
    """
    wide = np.asarray(numbers, np.float64)
    size = wide.shape[-1]
    if size <= count:
        return wide
    each, more = divmod(size, count)
    places = np.arange(count)
    begins = places * each + np.minimum(places, more)
    with np.errstate(all="ignore"):
        high, low = (ufunc.reduceat(wide, begins, axis=-1) for ufunc in (np.maximum, np.minimum))
        largest = np.where(high >= -low, high, low)  # a NaN is both
        if way == "largest":
            return largest
        sizes = np.diff(np.append(begins, size))
        sums = np.add.reduceat(wide if way == "mean" else np.square(wide), begins, axis=-1)
        found = sums / sizes if way == "mean" else np.sqrt(sums / sizes)
        return np.where(np.isfinite(largest), found, largest)


def picture(
    history: ValueHistory,
    axis: Axis,
    height: int,
    scale: Scale,
    way: str | None,
    palette: Palette,
) -> list[list[Strip]]:
    """Return a value over the iterations as shades: a line an element where they fit, else a half line each."""
    plain = palette.look.plain
    size = history.elements
    whole = plain or size <= height
    count = min(size, height if whole else 2 * height)
    bad = first_bad(history)
    lines: list[list[Strip]] = [[] for _ in range(height)]
    places = [(slot.start, slot.width, bad is not None and slot.first <= bad < slot.last) for slot in axis.slots]
    known = [(*place, found) for place, found in zip(places, columns_on(history, axis, way), strict=True)]
    came = None if axis.entered is None else entered(history, way)
    if axis.entered is not None:
        known.insert(0, (axis.entered, ENTERED, False, came))
    known = [one for one in known if one[3] is not None]
    if not known:
        return lines
    few = reduced(np.array([one[3] for one in known]), count, way_in(history, way))
    for (start, width, is_first, numbers), listed, levels in zip(
        known, few.tolist(), shades(few, scale).tolist(), strict=True
    ):
        for y in range(height):
            part = slice(y, y + 1) if whole else slice(2 * y, 2 * y + 2)
            if len(listed[part]):
                cell = _Cell(start, width, listed[part], levels[part], scale.signed, is_first)
                has_number = whole and width >= _NUMBERED and numbers is not came and size <= 16
                lines[y] += _picture_cell(cell, palette, is_whole=whole, has_number=has_number)
    return lines


class _Cell(NamedTuple):
    """The numbers and shades in one line of a slot: one, or two in half blocks."""

    start: int
    width: int
    numbers: Sequence[float]
    levels: Sequence[float]
    is_signed: bool
    is_first: bool


def _picture_cell(cell: _Cell, palette: Palette, *, is_whole: bool, has_number: bool) -> list[Strip]:
    start, width = cell.start, cell.width
    bad = [one for one in cell.numbers if not math.isfinite(one)]
    letter = "" if not bad else "N" if any(math.isnan(one) for one in bad) else "I"
    colours = [palette.shade(one, is_signed=cell.is_signed, is_first=cell.is_first) for one in cell.levels]
    top = colours[0]
    if palette.look.plain:
        text = letter or _figure(cell.levels[0], width)
        token: Token = ("bad" if bad else "") if palette.look.ascii else palette.on(top, bold=bool(bad))
        return [(start, f"{text:>{(width + 2) // 2}}".ljust(width)[:width], token)]
    if has_number and not bad:
        text = fitting_number(cell.numbers[0], min(width - 1, _DIGITS))
        return [(start, f"{text:>{(width + 5) // 2}}".ljust(width)[:width], palette.on(top))]
    low = colours[-1] if len(colours) > 1 or is_whole else palette.background
    found: list[Strip] = [(start, (" " if top == low else "▀") * width, palette.pair(top, low))]
    if letter:
        found.append((start + (width - 1) // 2, letter, palette.letter(is_first=cell.is_first)))
    return found


def fitting_number(value: float, room: int) -> str:
    """Return a number in at most so many cells, with at least one digit of it; empty where there is no such text."""
    texts = [f"{value:.{decimals}f}" for decimals in (3, 2, 1, 0)] if abs(value) < 10.0**room else []
    texts = [text for text in texts if value == 0 or float(text) != 0]
    for decimals in (2, 1, 0):
        mantissa, _, exponent = f"{value:.{decimals}e}".partition("e")
        texts.append(f"{mantissa}e{int(exponent)}")
    whole = [str(int(value))] if value == int(value) and abs(value) < 10.0**room else []
    return next((text for text in [*whole, *texts] if len(text) <= room), "")


def _figure(level: float, width: int) -> str:
    shade = int(digits(np.array([level]))[0])
    return figure(shade, width) if shade else "·"


def bar_row_scale(histories: Sequence[ValueHistory], kind: ScaleKind | None, way: str | None = None) -> BarScale:
    """Return the scale of a row of single numbers over all of its runs."""
    known = (np.ravel(one.numbers[_statistic(one, way)]).astype(np.float64) for one in histories)
    numbers = np.concatenate([np.zeros(0), *known])
    found = bar_scale(different(numbers), kind)  # a run that has settled is more than its way there
    return replace(found, share=share_within(numbers, found))


def bars(history: ValueHistory, axis: Axis, height: int, scale: BarScale, way: str | None = None) -> list[list[Strip]]:
    """Return single numbers over the iterations as bars of so many lines; NaN and Inf are letters."""
    lines: list[list[Strip]] = [[] for _ in range(height)]
    bad = first_bad(history)
    top, beyond = height * 8 - 2, far_beyond(scale)
    columns = zip(axis.slots, columns_on(history, axis, way), strict=True)
    known = [(slot, float(numbers[0])) for slot, numbers in columns if numbers is not None]
    tall = heights(np.array([value for _, value in known]), scale).tolist()
    for (slot, value), part in zip(known, tall, strict=True):
        width = slot.width - (slot.width >= 3)
        if not math.isfinite(value):
            is_first = bad is not None and slot.first <= bad < slot.last
            lines[-1].append((slot.start, "N" if math.isnan(value) else "I", "badbg" if is_first else "bad"))
            continue
        level = 1 + round(part * (top - 1))
        for y in range(height):
            eighths = max(0, min(level - 8 * (height - 1 - y), 8))
            if eighths:
                lines[y].append((slot.start, EIGHTHS[eighths] * width, "bar"))
        if (is_above := value > beyond[1]) or value < beyond[0]:
            lines[0 if is_above else -1].append((slot.start, "▲" if is_above else "▼", "bar"))
    return lines


def truth(verdicts: Sequence[tuple[Slot, bool | None]], *, rare: bool) -> list[Strip]:
    """Return T and F over the iterations; the `rare` one is bold."""
    return [
        (
            slot.start + (slot.width - 1) // 2,
            GLYPHS["true" if holds else "false"],
            "strong" if holds is rare else "bar",
        )
        for slot, holds in verdicts
        if holds is not None
    ]


def verdicts_of(history: ValueHistory, axis: Axis) -> list[tuple[Slot, bool | None]]:
    """Return a boolean in the slots; of many iterations it is true if any is."""
    numbers = zip(axis.slots, columns_on(history, axis, "largest"), strict=True)
    return [(slot, None if found is None else bool(found[0])) for slot, found in numbers]


def form_in(history: ValueHistory) -> Form:
    """Return what suits a value over the iterations, where there is room."""
    return form_of(history.type, history.elements, is_whole=history.is_whole)


def form_on(form: Form, labels: tuple[str, ...], histories: Sequence[ValueHistory], axis: Axis) -> Form:
    """Return how a row is drawn on an axis.

    Whole numbers that have no room in the slots are categories where they are few, else bars, as in bins of iterations.
    """
    if form is not Form.NUMBERS or not axis.slots:
        return form
    if any(slot.is_bin for slot in axis.slots):
        return Form.BARS
    if labels and (axis.slots[0].width >= _LEAST_WORD or short_words(labels, histories, axis.slots[0].width)):
        return form
    numbers = [history.numbers for history in histories if history.numbers.size]
    ends = (int(one) for some in numbers for one in (some.min(), some.max()))
    longest = max((len(str(one)) for one in ends), default=1)
    if longest < axis.slots[0].width or (longest == 1 and axis.slots[0].width == 1):
        return Form.NUMBERS
    return Form.CATEGORIES if categories(histories) else Form.BARS


def categories(histories: Sequence[ValueHistory]) -> dict[int, str]:
    """Return a letter for each whole number, in their order; empty where they are more than a few, or only rise."""
    numbers = [np.zeros(0), *(np.ravel(one.numbers[0]).astype(np.float64) for one in histories)]
    found = different(np.concatenate(numbers))
    is_course = all(bool((np.diff(one) > 0).all()) for one in numbers if len(one) > 1)
    if len(found) > _FEW or is_course or not np.isfinite(found).all():
        return {}
    return {int(one): chr(ord("a") + place) for place, one in enumerate(found)}


_LEAST_WORD: Final = 3
"""Cells from which on the beginning of a word says more than a number."""


def short_words(labels: tuple[str, ...], histories: Sequence[ValueHistory], width: int) -> dict[int, str]:
    """Return what stands for each whole number in slots so narrow: its word, else its first letter, else the number.

    It is the same for all numbers, another for each, and apart from its neighbour; empty where nothing is.
    """
    room = max(width - 1, 1)
    numbers = np.concatenate([np.zeros(0), *(np.ravel(one.numbers[0]).astype(np.float64) for one in histories)])
    found = different(numbers[np.isfinite(numbers)])
    words = {int(one): printable(label_of(labels, one)) for one in found}
    letters = {one: word[:room] for one, word in words.items()}
    for texts in (words, letters, {one: str(one) for one in words}):
        if all(cell_len(text) <= room for text in texts.values()) and len(set(texts.values())) == len(texts):
            return texts
    return {}


def gaps(history: ValueHistory | None, axis: Axis, made: int) -> list[Strip]:
    """Return what stands in slots of which nothing is known: `made` iterations have run, the others are free."""
    found: list[Strip] = []
    known = [None] * len(axis.slots) if history is None else columns_on(history, axis, "largest")
    for slot, numbers in zip(axis.slots, known, strict=True):
        if numbers is not None:
            continue
        text, token = ("╌", "faint") if slot.first < made else (GLYPHS["free"], "faint")
        found.append((slot.start, (text * max(slot.width - (slot.width > 2), 1)).ljust(slot.width), token))
    return found


def texts(labels: tuple[str, ...] | Mapping[int, str], history: ValueHistory, axis: Axis) -> list[Strip]:
    """Return whole numbers, or the words for them, over the iterations."""
    found: list[Strip] = []
    came = entered(history, "largest")
    if came is not None and axis.entered is not None:
        found.append((axis.entered, f"{_word(labels, came[0], ENTERED)[:ENTERED]:>{ENTERED}}", "dim"))
    for slot, numbers in zip(axis.slots, columns_on(history, axis, "largest"), strict=True):
        if numbers is not None:
            text = clip(_word(labels, numbers[0], slot.width), slot.width)
            found.append((slot.start + (slot.width - cell_len(text)) // 2, text, "strong"))
    return found


def _word(labels: tuple[str, ...] | Mapping[int, str], value: float, room: int) -> str:
    """Return the word for a whole number; the number where only that has room, since a letter says less."""
    plain = str(int(value))
    if isinstance(labels, Mapping):
        return labels.get(int(value), plain)
    word = printable(label_of(labels, float(value))) if labels else plain
    return plain if room < _LEAST_WORD and len(plain) <= room < cell_len(word) else word


def ruler_strips(axis: Axis, cursor: int | None) -> list[Strip]:
    """Return the numbers of the iterations, and the word over what entered."""
    marks: list[Strip] = [(one.column, one.text, "now" if one.is_cursor else "dim") for one in ruler(axis, cursor)]
    return marks if axis.entered is None else [(axis.entered, "in", "dim"), *marks]


class RowPicture:
    """Values in one row of a screen: how they are drawn, and the scales that all of them share.

    `form` is what suits them, `labels` are words for whole numbers, `way` is how several numbers become one and `kind`
    the scale, as they were chosen (None: what suits the numbers). `axis` tells what there is room for.
    """

    def __init__(
        self,
        histories: Sequence[ValueHistory],
        axis: Axis,
        form: Form | None = None,
        labels: tuple[str, ...] = (),
        way: str | None = None,
        kind: ScaleKind | None = None,
    ) -> None:
        first = histories[0] if histories else None
        suits = Form.WORDS if first is None else form_in(first)
        self.form = form_on(suits if form is None else form, labels, histories, axis)
        self.labels: tuple[str, ...] | dict[int, str] = labels
        self._words = labels
        if self.form is Form.CATEGORIES:
            self.labels = categories(histories)
        elif self.form is Form.NUMBERS and labels and axis.slots and axis.slots[0].width < _LEAST_WORD:
            self.labels = short_words(labels, histories, axis.slots[0].width)
        self.way = way
        self.scale = row_scale(histories, way, kind) if self.form is Form.PICTURE else None
        self.bar_scale = bar_row_scale(histories, kind, way) if self.form is Form.BARS else None

    def lines(self, history: ValueHistory, axis: Axis, height: int, palette: Palette) -> list[list[Strip]]:
        """Return one of the values over the iterations in so many lines; an element of a picture may have several."""
        if self.scale is not None:
            each = max(height // max(history.elements, 1), 1)
            drawn = picture(history, axis, height // each, self.scale, self.way, palette)
            return drawn if each == 1 else _repeated(drawn, each)
        if self.bar_scale is not None:
            return bars(history, axis, height, self.bar_scale, self.way)
        blank: list[list[Strip]] = [[] for _ in range(height - 1)]
        if self.form is Form.WORDS:
            return [[(slot.start, "no elements", "dim") for slot in axis.slots[:1]], *blank]
        if self.form is Form.TRUTH:
            return [truth(verdicts_of(history, axis), rare=True), *blank]
        return [texts(self.labels, history, axis), *blank]

    def is_readable(self, height: int, room: int) -> bool:
        """True unless letters stand for numbers and there is no line, or not room enough in it, to say for which."""
        return self.form is not Form.CATEGORIES or (height > 1 and len(self.note(room)) <= room)

    @property
    def is_log(self) -> bool:
        """True if the scale is one of logarithms."""
        if self.scale is not None:
            return self.scale.kind is ScaleKind.LOG
        return self.bar_scale is not None and self.bar_scale.log

    def note(self, room: int, *, names_log: bool = True) -> str:
        """Return the scale in words, its numbers with as many digits as have room; empty where there is none."""
        if self.scale is not None:
            return scale_text(self.scale, room, names_log=names_log)
        if isinstance(self.labels, dict):
            meant = {letter: printable(label_of(self._words, value)) for value, letter in self.labels.items()}
            return " ".join(f"{letter}={word}" for letter, word in meant.items() if letter != word)
        return "" if self.bar_scale is None else bar_scale_text(self.bar_scale, room, names_log=names_log)


def _repeated(lines: Sequence[list[Strip]], each: int) -> list[list[Strip]]:
    """Return each line of a picture so many times, with its text in the middle one."""
    found: list[list[Strip]] = []
    for strips in lines:
        ground = [(start, " " * len(text), token) for start, text, token in strips]
        found += [strips if part == (each - 1) // 2 else ground for part in range(each)]
    return found


def unit_text(history: ValueHistory, height: int, way: str | None, room: int, *, is_plain: bool) -> str:
    """Return how many elements stand in how many rows of a picture; empty where each has its own.

    Of a value that changes their number, by which number all of them are one.
    """
    chosen = way_in(history, way)
    if history.elements == 1:
        return "" if history.is_whole else f"{brief_way(chosen)} of all"
    size = history.elements if history.changes_shape else int(np.prod(history.shape, dtype=np.int64))
    rows = height if is_plain or history.elements <= height else 2 * height
    if size <= rows:
        return ""
    lines = min(rows, history.elements)
    short = f"{size} in {lines}"
    brief = brief_way(chosen)
    forms = (
        (f"{short} row{'' if lines == 1 else 's'}", short)
        if chosen == WAYS[0]
        else (f"{short}, {chosen}", f"{short}, {brief}", f"{short} {brief}")
    )
    return next((text for text in forms if len(text) <= room), forms[-1])


def brief_way(way: str) -> str:
    """Return how several numbers become one in few letters."""
    return _BRIEF_WAYS.get(way, way)


def scale_text(scale: Scale, room: int, *, names_log: bool = True) -> str:
    """Return the scale of a row for its label, in so many letters if it can be; empty where no number is finite."""
    if not scale.share or not scale.low:
        return "0" if scale.share else ""
    low = None if scale.signed else 0.0
    is_log = names_log and scale.kind is ScaleKind.LOG
    return _range_text(low, scale.full, room, _tails(scale.share, is_log=is_log))


def bar_scale_text(scale: BarScale, room: int, *, names_log: bool = True) -> str:
    """Return the scale of bars for their label, in so many letters if it can be; empty where no number is finite."""
    if not scale.share:
        return ""
    return _range_text(
        scale.low, scale.high, room, _tails(scale.share, is_log=names_log and scale.log and scale.low < scale.high)
    )


def scale_words(scale: BarScale, room: int = 8) -> str:
    """Return what the two ends of bars do not tell: that they are logarithmic, or not those of all numbers."""
    return next(one.strip() for one in _tails(scale.share, is_log=scale.log) if len(one.strip()) <= room)


def _tails(share: float, *, is_log: bool) -> Sequence[str]:
    """Return what is said behind the ends of a scale, the most first."""
    log, part = (" log" if is_log else ""), (f" {told}" if (told := share_text(share)) else "")
    return list(dict.fromkeys((log + part, part, log, "")))


def _range_text(low: float | None, high: float, room: int, tails: Sequence[str]) -> str:
    """Return the ends of a scale (without a low one on both sides of zero): whole words and digits where they fit.

    Where the ends do not differ in the digits that have room, the low one and how far the high one is from it.
    """
    if low == high:
        forms = [few_digits(high, count) + tail for tail in tails for count in (3, 2, 1)]
        return next((text for text in forms if len(text) <= room), forms[-1])
    text = ""
    for tail in tails:
        for count in (3, 2, 1):
            for joint in ("±",) if low is None else (" to ", "–"):
                ends = "" if low is None else few_digits(low, count), few_digits(high, count)
                if low is not None and low < high and float(ends[0]) == float(ends[1]):
                    return _low_and_span(low, high, room)
                text = f"{ends[0]}{joint}{ends[1]}{tail}"
                if len(text) <= room:
                    return text
    return text


def _low_and_span(low: float, high: float, room: int) -> str:
    """Return the low end with as many digits as there is room for, and how far the high one is from it."""
    forms = [
        f"{short_exponent(f'{low:.{digits}g}')}{joint}{few_digits(high - low, count)}"
        for digits in range(9, 0, -1)
        for joint, count in ((" +", 2), (" +", 1), ("+", 1))
    ]
    return next((text for text in forms if len(text) <= room), forms[-1])


def bar_scale_ends(scale: BarScale, written: Callable[[float], str] = fitted) -> tuple[str, str]:
    """Return the two ends of bars as they are written; where they then do not differ, how far the high one is away."""
    low, high = written(scale.low), written(scale.high)
    if low == high and scale.low < scale.high:
        high = f"+{few_digits(scale.high - scale.low, 2)}"
    return low, high


def height_wanted(form: Form, histories: Sequence[ValueHistory], columns: int) -> int:
    """Return how many lines, or halves, a row could use."""
    if form is Form.PICTURE:
        return max((one.elements for one in histories), default=1)
    if form is Form.BARS:
        return 6 if columns > 20 else 2
    return 1


# --- the painter ----------------------------------------------------------------------------------------------------


def laid(strips: Sequence[Strip], width: int) -> Cells:
    """Return strips as cells; of overlapping ones the later wins."""
    cells: Cells = [(" ", "")] * width
    for start, text, token in strips:
        for place, letter in enumerate(text, start):
            if 0 <= place < width:
                cells[place] = letter, token
    return cells


def row_of(cells: Cells) -> Row:
    """Return cells as a row."""
    row: Row = []
    run, last = "", cells[0][1] if cells else ""
    for letter, token in cells:
        if token is not last and token != last:
            row.append((run, last))
            run, last = "", token
        run += letter
    return [*row, (run, last)] if run else row


def _mark_word(cells: Cells, slot: Slot, mark: str) -> None:
    """Write the word in a slot in this tone; what is bad stays so."""
    letters = slice(slot.start, min(slot.start + slot.width, len(cells)))
    for k, (letter, token) in enumerate(cells[letters], slot.start):
        if letter not in " ▌▐" and not isinstance(token, Style) and token not in ("bad", "badbg"):
            cells[k] = letter, mark


def _style(token: Token) -> Style | None:
    return token if isinstance(token, Style) else None


def put_rails(cells: Cells, slot: Slot, palette: Palette, *, is_selected: bool, is_a: bool = False) -> None:
    """Mark the slot of the cursor, or of A, in the cells of a line: rails at both sides, or a tint if it is narrow.

    A word that reaches to the side of the slot is marked itself.
    """
    if slot.width < _RAILED:
        for place in range(slot.start, min(slot.start + slot.width, len(cells))):
            letter, token = cells[place]
            if isinstance(token, Style):
                cells[place] = letter, palette.tinted(token, 0.45 if is_selected else 0.28, is_a=is_a)
            elif letter != " " and token not in ("bad", "badbg"):
                cells[place] = letter, "a" if is_a else "accent"
        return
    for place, glyph in ((slot.start, "▌"), (slot.start + slot.width - 1, "▐")):
        if place >= len(cells):
            continue
        letter, token = cells[place]
        if letter not in _COVERED:
            _mark_word(cells, slot, "a-on" if is_a else "now" if is_selected else "on")
            if isinstance(token, Style) and place == slot.start > 0 and cells[place - 1][0] in _COVERED:
                # a number as wide as the slot: the rail touches it from outside
                before, under = cells[place - 1][0], _style(cells[place - 1][1])
                mark = palette.rail(under, is_half=before == "▀", is_selected=is_selected, is_a=is_a)
                cells[place - 1] = "▐", mark
            continue
        under = _style(token)
        cells[place] = glyph, palette.rail(under, is_half=letter == "▀", is_selected=is_selected, is_a=is_a)
