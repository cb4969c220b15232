"""The outputs of the model in figures, in the room that the list of operations leaves at the end of a run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from stepper.element_types import Array
from stepper.ops.operands import form_text
from stepper.plain_values import storable
from stepper.tensors.number_text import fitted
from stepper.tensors.statistics import finish
from stepper.tensors.surveys import Survey, survey
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip, printable, spread
from tui.screens.main.value import MOST_AT_ONCE
from tui.screens.value.facts import histogram_rows

_BINS: Final = 36
_FACTS: Final = 3
"""Lines of an output beside its histogram, with the blank one behind it."""
_LEAST_BARS, _MOST_BARS = 2, 8
_AXIS: Final = 2


class OutputFigures(Pane, can_focus=False):
    """Statistics of each output, and how often which numbers are in it."""

    DEFAULT_CSS = """
    OutputFigures { height: 1fr; border-top: solid $foreground 14%; }
    DebugScreen.-ascii OutputFigures { border-top: ascii $foreground 14%; }
    """
    follows_selection: ClassVar[bool] = False
    title = "outputs in figures"

    def __init__(self, host: Host, *, id: str | None = None) -> None:
        super().__init__(host, id=id)
        self._known: tuple[Sequence[Array], list[Survey | None]] | None = None

    def rows(self, width: int) -> list[Row]:
        """Return for each output its statistics, and where there is room a histogram."""
        view = self.state.view
        outputs = None if view is None else view.outputs
        if outputs is None:
            return []
        found, room = self._surveys(outputs), self.size.height - 1
        drawn = [one is not None and len(one.counts) > 1 for one in found]
        free = room - _FACTS * len(found) - _AXIS * sum(drawn)
        bars = min(free // max(sum(drawn), 1), _MOST_BARS)
        rows: list[Row] = []
        for name, output, one, is_drawn in zip(self.state.output_names, outputs, found, drawn, strict=True):
            kind = form_text(output)
            shown = clip(printable(name), max(width - len(kind) - 4, 6))
            rows.append(spread([(f" {shown}", "strong")], [(f"{kind} ", "dim")], width))
            rows.append(_facts(one, width))
            if one is not None and is_drawn and bars >= _LEAST_BARS:
                rows += histogram_rows(one, width, bars)
            rows.append([])
        return rows if len(rows) <= room + 1 else [*rows[: room - 1], [(" … more outputs", "dim")]]

    def _surveys(self, outputs: Sequence[Array]) -> list[Survey | None]:
        if self._known is None or self._known[0] is not outputs:
            self._known = outputs, [_survey(output) for output in outputs]
        return self._known[1]


def _survey(output: Array) -> Survey | None:
    """Return an output in figures; None of one that has no numbers, or too many to look at while one waits."""
    plain = storable(output)
    if plain.dtype.kind not in "fiub" or not plain.size or plain.size > MOST_AT_ONCE:
        return None
    return finish(survey(output, _BINS))


def _facts(one: Survey | None, width: int) -> Row:
    """Return the statistics of an output in a line, those first that say most."""
    if one is None:
        return [(" no figures: Enter on it at the right opens it", "dim")]
    found = one.statistics
    facts: list[tuple[str, str, str]] = [(word, f"{count:,}", "bad") for word, count in _odd(one) if count]
    if found.min is not None and found.max is not None:
        facts += [("min", fitted(found.min), ""), ("max", fitted(found.max), "")]
    for word, value in (("mean", found.mean), ("std", found.std)):
        facts += [(word, fitted(value), "")] if value is not None and found.size > 1 else []
    if found.zeros and found.size > 1:
        facts.append(("zeros", f"{found.zeros:,}", ""))
    row: Row = []
    used = 0
    for word, text, tone in facts:
        used += len(word) + len(text) + 3
        if used <= width:
            row += [(f" {word} ", "dim"), (f"{text} ", tone)]
    return row


def _odd(one: Survey) -> tuple[tuple[str, int], ...]:
    return ("NaN", one.statistics.nan), ("Inf", one.statistics.infinite)
