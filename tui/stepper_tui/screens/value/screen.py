"""A value full screen: colours or numbers; below them the other, how often, statistics, one element."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from msgspec.structs import replace
from textual.app import ComposeResult

from stepper.element_types import Array
from stepper.tensors.difference import signed_differences
from stepper.tensors.element_forms import bits_of, smaller_forms
from stepper.tensors.number_text import fitted, number_text
from stepper.tensors.planes import is_numeric, readable
from stepper.tensors.statistics import Statistics
from stepper.tensors.surveys import Survey
from stepper_tui.paint.painter import Horizontal, Vertical
from stepper_tui.paint.pane import Pane
from stepper_tui.paint.rows import Row, clip, clip_end, columns, spread, width_of
from stepper_tui.screens.base import DebugScreen
from stepper_tui.screens.value.inspected import Inquiries, Inspected, Subject, frame_of
from stepper_tui.screens.value.tensor import Companion, TensorPane, exact
from stepper_tui.state import State

if TYPE_CHECKING:
    from stepper_tui.app import StepperApp


class FactsPane(Pane, can_focus=False):
    """A pane about the value that is looked at."""

    def __init__(self, host: StepperApp, inspected: Inspected, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self.inspected = inspected


class HowOften(FactsPane):
    """The histogram of the finite elements."""

    DEFAULT_CSS = "HowOften { height: 1fr; min-height: 4; }"
    title = "how often"

    def rows(self, width: int) -> list[Row]:
        """Columns as high as there is room, the axis below."""
        found = self.inspected.survey()
        self.note = ""
        if self.inspected.array is None:
            return []
        if found is None:
            return [[(" looking through the elements ...", "dim")]]
        if self.inspected.array.size == 1:
            return [[(" it has one element", "dim")]]
        if not len(found.counts):
            return [[(" nothing finite to count", "dim")]]
        self.note = f"{len(found.counts)} bins "
        return histogram_rows(found, width, max(self.size.height - 3, 1))


def histogram_rows(found: Survey, width: int, tall: int) -> list[Row]:
    """Return how often the numbers are in each bin as so many lines of columns, and the axis in two more."""
    together = -(-len(found.counts) // max(width - 9, 1))
    shown = np.add.reduceat(found.counts, np.arange(0, len(found.counts), together))
    wide = max(1, min((width - 9) // len(shown), 4))
    most = int(shown.max())
    labels = [fitted(most), *[""] * tall]
    lines = columns((shown / most).tolist(), tall, wide)
    rows: list[Row] = [[(f"{labels[y]:>7} ", "dim"), (line, "bar")] for y, line in enumerate(lines)]
    low, high = float(found.edges[0]), float(found.edges[-1])
    room = len(shown) * wide
    # Halved, so that the distance of the largest numbers does not overflow; the last bin may be a narrower one.
    share = (0 - low / 2) / (high / 2 - low / 2) * len(found.counts) / (len(shown) * together)
    zero = int(share * room) if low < 0 < high else -1
    axis = "".join("┴" if place == zero else "─" for place in range(room))
    ends = fitted(float(found.statistics.min or 0)), fitted(float(found.statistics.max or 0))
    text = ends[0].ljust(room)
    if zero > len(ends[0]) and zero < room - len(ends[1]) - 1:
        text = text[:zero] + "0" + text[zero + 1 :]
    has_room = room > len(ends[0]) + len(ends[1])
    text = text[: room - len(ends[1])] + ends[1] if has_room else clip_end(" to ".join(ends), width - 9)
    return [*rows, [(" " * 8, ""), (axis, "faint")], [(" " * 8, ""), (text, "dim")]]


class InNumbers(FactsPane):
    """The statistics, with where extremes and the first NaN are."""

    title = "statistics"

    def rows(self, width: int) -> list[Row]:
        """Return a line a number."""
        array = self.inspected.shown.array
        self.note = "" if array is None else f"over {array.size:,} element{'s' * (array.size != 1)} "
        found = self.inspected.survey()
        if array is None:
            return []
        if found is None:
            return [[(" looking through the elements ...", "dim")], *[[] for _ in range(8)]]
        if array.size == 1 and not found.statistics.nan and not found.statistics.infinite:
            return [[(" it has one element", "dim")]]
        return _statistics(found, width)


def _statistics(found: Survey, width: int) -> list[Row]:
    numbers = found.statistics
    size = numbers.finite
    rms = None if numbers.norm is None or not size else numbers.norm / math.sqrt(size)
    rows = [
        _line("min", fitted(numbers.min, 8), _place(numbers, numbers.argmin)),
        _line("max", fitted(numbers.max, 8), _place(numbers, numbers.argmax)),
    ]
    rows += [_line(word, fitted(value, 8)) for word, value in (("mean", numbers.mean), ("std", numbers.std))]
    rows += [_line("rms", fitted(rms, 8)), _line("zeros", f"{numbers.zeros:,}")]
    for word, count, first in (("NaN", numbers.nan, found.first_nan), ("Inf", numbers.infinite, found.first_infinity)):
        place = f"first {_place(numbers, first)}" if count else ""
        place = place if len(place) <= width - 22 else place.removeprefix("first ")
        rows.append(_line(word, f"{count:,}", place, bad=count > 0))
    return [*rows, _line("subnormal", f"{numbers.subnormals:,}")]


def _line(word: str, text: str, place: str = "", *, bad: bool = False) -> Row:
    return [(f" {word:<10}", "dim"), (f"{text:>9}", "bad" if bad else ""), (f"  {place}", "bad" if bad else "dim")]


def _place(numbers: Statistics, flat: int | None) -> str:
    if flat is None or numbers.size < 2:
        return ""
    return "[" + ",".join(str(int(at)) for at in np.unravel_index(flat, numbers.shape)) + "]"


class ElementCard(FactsPane):
    """The element under the cursor: exactly, before, in smaller types, bit by bit."""

    title = "element"

    def rows(self, width: int) -> list[Row]:
        """Return a line a fact."""
        seen = self.inspected
        self.title, self.note = f"element {_element(seen)}", ""
        element = seen.element()
        if element is None:
            return []
        rows: list[Row] = [[], _fact("value", exact(element), "strong"), _before(seen, element)]
        rows += [
            _fact(f"as {form.type}", f"{number_text(form.value, 8):<14}", off=form.off)
            for form in smaller_forms(element)
        ]
        bits = bits_of(element)
        if bits is not None:
            pattern = " ".join(bits.parts)
            room = width - 14 - len(bits.hexadecimal)
            rows.append([*_fact("bits", f"{bits.hexadecimal}  "), (clip(pattern, room), "dim")])
        return rows[1:]


def _fact(word: str, text: str, tone: str = "", *, off: float | None = None) -> Row:
    row: Row = [(f" {word:<11}", "dim"), (text, tone)]
    if off is not None:
        row.append(("exact" if off == 0 else f"off {off:.1e}", "dim"))
    return row


def _before(seen: Inspected, element: Array) -> Row:
    found = seen.before()
    if found.problem or found.answer is None:
        return _fact("in A" if seen.is_beside_a else "before", found.problem or "...", "dim")
    before = found.answer[tuple(slice(at, at + 1) for at in seen.cursor)].reshape(1)
    row = _fact("in A" if seen.is_beside_a else "before", exact(before), "a" if seen.is_beside_a else "")
    now, then = (readable(one)[0] for one in (element, before))
    if not is_numeric(element.dtype):
        return row
    if element.dtype == np.bool_:
        return [*row, ("   unchanged" if now == then else "   changed", "dim")]
    change = float(signed_differences(np.array([now]), np.array([then]))[0])
    same = now == then or (now != now and then != then)
    return [*row, ("   unchanged" if same else f"   change {'+' if change > 0 else ''}{fitted(change)}", "dim")]


class SummaryLines(FactsPane):
    """All of that in two lines, where there is no room for more."""

    def rows(self, width: int) -> list[Row]:
        """Statistics; the element."""
        seen = self.inspected
        element = seen.element()
        if element is None:
            return []
        found = seen.survey()
        return [
            [(" looking through the elements ...", "dim")] if found is None else _short_statistics(found, width),
            _short_element(seen, element, width),
        ]


def _short_statistics(found: Survey, width: int) -> Row:
    numbers = found.statistics
    if numbers.size == 1 and not numbers.nan and not numbers.infinite:
        return [(" one element", "dim")]
    row: Row = []
    for word, value in (("min", numbers.min), ("max", numbers.max), ("mean", numbers.mean), ("std", numbers.std)):
        row += [(f" {word} ", "dim"), (f"{fitted(value)} ", "")]
    for word, count, first in (("NaN", numbers.nan, found.first_nan), ("Inf", numbers.infinite, found.first_infinity)):
        text = f"{count} at {_place(numbers, first)}" if count and width_of(row) < width - 24 else str(count)
        row += [(f" {word} ", "dim"), (f"{text} ", "bad" if count else "dim")]
    return row


def _short_element(seen: Inspected, element: Array, width: int) -> Row:
    row: Row = [(f" {_element(seen)} ", "accent"), (exact(element), "strong")]
    row += [("  in A " if seen.is_beside_a else "  before ", "dim"), *_before(seen, element)[1:]]
    bits = bits_of(element)
    if bits is None:
        return row
    return spread(row, [(f"{bits.hexadecimal} ", "dim")], width) if width_of(row) < width - 20 else row


def _element(seen: Inspected) -> str:
    return "[" + ",".join(map(str, seen.cursor)) + "]"


class ValueScreen(DebugScreen):
    """A value at the moment, however the run moves."""

    DEFAULT_CSS = """
    ValueScreen #parts { height: 23; border-top: solid $foreground 14%; }
    ValueScreen #companion { width: 1fr; height: 1fr; }
    ValueScreen #often { width: 46; height: 1fr; }
    ValueScreen #facts { width: 48; }
    ValueScreen #element { margin-top: 1; }
    ValueScreen #summary { border-top: solid $foreground 14%; height: 3; display: none; }
    ValueScreen.-ascii #parts, ValueScreen.-ascii #summary { border-top: ascii $foreground 14%; }
    ValueScreen.-medium #parts { height: 12; }
    ValueScreen.-few #parts { height: 1fr; }
    ValueScreen.-few #companion, ValueScreen.-medium #companion { display: none; }
    ValueScreen.-few #often, ValueScreen.-medium #often { width: 1fr; border-left: none; }
    ValueScreen.-medium #facts { width: 88; layout: horizontal; }
    ValueScreen.-medium #facts > * { width: 1fr; }
    ValueScreen.-medium #numbers { width: 41; }
    ValueScreen.-medium #element { margin-top: 0; }
    ValueScreen.-slim #often { display: none; }
    ValueScreen.-slim #facts { width: 1fr; border-left: none; }
    ValueScreen.-short #parts, ValueScreen.-tiny #parts { display: none; }
    ValueScreen.-short #summary, ValueScreen.-tiny #summary { display: block; }
    ValueScreen.-nothing #parts, ValueScreen.-nothing #summary { display: none; }
    """
    view_name = "value"

    def __init__(self, host: StepperApp, subject: Subject | None = None) -> None:
        """Show this value at first; None: the selected one."""
        super().__init__(host)
        self._subject = subject
        self._inspected: Inspected | None = None
        self._height: int | None = None

    @property
    def inspected(self) -> Inspected:
        """The value that is shown."""
        if self._inspected is None:
            driver = self.host.driver
            self._inspected = Inspected(driver, Inquiries(driver, self.repaint_panes))
            self._inspected.take(self.host.state)
            if self._subject is not None:
                self._inspected.open(self._subject)
        return self._inspected

    def path(self) -> list[str]:
        """Return the name of the value."""
        return [] if self._inspected is None else [self._inspected.shown.name]

    def body(self) -> ComposeResult:
        """The value above, the rest below."""
        inspected = self.inspected
        yield TensorPane(self.host, inspected, id="tensor")
        with Horizontal(id="parts"):
            yield Companion(self.host, inspected, id="companion")
            yield HowOften(self.host, inspected, id="often").add_class("rule")
            with Vertical(id="facts", classes="rule"):
                yield InNumbers(self.host, inspected, id="numbers")
                yield ElementCard(self.host, inspected, id="element")
        yield SummaryLines(self.host, inspected, id="summary")

    def fit(self, width: int, height: int) -> None:
        """Without the companion where it has no room."""
        self._arrange()

    def size_classes(self, width: int, height: int) -> dict[str, bool]:
        """Return those of every screen, and whether all parts have room."""
        own = {"-medium": width < 150 or height < 44, "-slim": width < 120}
        return {**super().size_classes(width, height), **own}

    def show(self, state: State) -> None:
        """Another moment; the value stays the same, and the other keys act on it."""
        if not self.is_ready:
            return
        inspected = self.inspected
        inspected.take(state)
        subject = inspected.subject
        is_here = subject is not None and state.frame is frame_of(state, subject.program)
        if subject is not None and subject.program is not None and subject.layer is None and is_here:
            state = replace(state, selected=subject.operation)
            self.host.state = state
        super().show(state)
        self._arrange()

    def _arrange(self) -> None:
        """Give a value of few elements the lines that it needs, and the rest to its facts."""
        seen, tensor = self.inspected, self.query_one("#tensor", TensorPane)
        wanted = tensor.wanted() if seen.array is not None else None
        is_short = self.has_class("-short") or self.has_class("-tiny")
        is_few = wanted is not None and not is_short and wanted <= self.query_one("#content").size.height // 2
        height = wanted if is_few else None
        if height != self._height:  # a layout costs more than all painting
            self._height = height
            tensor.styles.height = height
        self.update_classes({"-few": is_few, "-nothing": seen.shown.array is None})

    def on_unmount(self) -> None:
        """Ask no more."""
        if self._inspected is not None:
            self._inspected.inquiries.close()

    def repaint_panes(self) -> None:
        """Something was found out, or chosen."""
        if self.is_ready and self.is_attached:
            self._arrange()
            for pane in self.query(Pane):
                pane.changed()
