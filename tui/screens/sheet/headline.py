"""The lines above the sheet: what the loop does, what was found in the run, and why the loop ended."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from stepper.debug.overview.facts import Overview, RowKind
from stepper.wording import enumerated
from tui.paint.rows import Row, printable, shortened
from tui.screens.overview import around, words
from tui.screens.overview.lines import cards_of

if TYPE_CHECKING:
    from stepper.debug.table.row_sets import RowsFound, SheetFrame
    from stepper.engine.program import CompiledModel
    from tui.screens.overview.cards import Card
    from tui.state import State

_PARTS: Final = (
    ((RowKind.SLICE,), "takes a slice of"),
    ((RowKind.BACK_EDGE,), "carries"),
    ((RowKind.CONCATENATED,), "collects"),
)
_MOST_NAMES: Final = 4


class Headline:
    """Lines about the run of one loop; made anew when more is known of the run."""

    def __init__(self) -> None:
        self._key: tuple[object, ...] = ()
        self._cards: list[Card] = []

    def rows(self, state: State, compiled: CompiledModel, frame: SheetFrame, width: int, *, is_low: bool) -> list[Row]:
        """Return what was found, and why the loop of a frame ended; on a low terminal in one line."""
        overview = state.overview
        if overview is None:
            return []
        if self._key != (overview, id(compiled)):
            self._key, self._cards = (overview, id(compiled)), cards_of(overview, compiled, state.labels)
        found = around.found(overview, self._cards, short=is_low, findings=state.lists.findings)
        rows = [[(" ", ""), *row[1:]] if row and row[0][0].strip() == "found" else row for row in found[:1]]
        ended = self._ended(overview, compiled, frame, width)
        if ended and not is_low:
            rows.append([(" ", ""), *ended])
        return [shortened(row, width) for row in rows]

    def _ended(self, overview: Overview, compiled: CompiledModel, frame: SheetFrame, width: int) -> Row:
        body = frame.body(compiled)
        card = next((one for one in self._cards if one.program is body), None)
        if card is None:
            return []
        outer = tuple(frame.outer)
        run = next((k for k, one in enumerate(card.runs) if _fits(one.outer, outer)), len(card.runs) - 1)
        labels = {card.facts.rows[line.row].inner.id: line.labels for line in card.lines if line.labels}
        return words.ended(card, overview, max(run, 0), labels, room=width - 2)


def _fits(known: Sequence[int], asked: Sequence[int | None]) -> bool:
    return all(one is None or one == at for at, one in zip(known, asked, strict=False))


def sentence(found: RowsFound) -> str:
    """Return in plain words what an iteration of a loop takes, carries and collects."""
    parts = []
    for kinds, verb in _PARTS:
        rows = [mark for mark in found.marks if mark is not None and mark.kind in kinds]
        names = [
            printable(value.name.removesuffix("'"))
            for value, mark in zip(found.topic.values, found.marks, strict=True)
            if mark in rows
        ]
        if names:
            more = [f"{len(names) - _MOST_NAMES} more"] if len(names) > _MOST_NAMES else []
            parts.append(f"{verb} {enumerated([*names[:_MOST_NAMES], *more])}")
    return f"each iteration {enumerated(parts)}" if parts else ""
