"""What there is to say about one breakpoint: what it waits for, where it sits, and where it has stopped the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar, Final

from stepper.debug.breakpoints.breakpoint import BreakKind
from stepper.debug.breakpoints.checks import place_text
from stepper.debug.breakpoints.kinds import data_breakpoint, kinds
from stepper.debug.inspection.run_views import BreakView
from tui.paint.pane import Host, Pane
from tui.paint.rows import Row, clip_end, printable, wrapped
from tui.screens.lists.breakpoints import BreakpointList
from tui.screens.main.topic import topic_rows
from tui.worker.event_log import Kind

_WORD: Final = 13
_MOST_PLACES: Final = 8


class BreakDetail(Pane):
    """Of the chosen breakpoint."""

    DEFAULT_CSS = "BreakDetail { height: 1fr; margin-top: 1; border-top: solid $foreground 14%; }"
    kind: ClassVar[str] = "card"
    help_text: ClassVar[str] = "What the chosen breakpoint waits for, where it sits, and the stops that it has made."

    def __init__(self, host: Host, breakpoints: BreakpointList) -> None:
        super().__init__(host, id="detail")
        self._list = breakpoints

    def heading(self, width: int) -> list[Row]:
        """Its number."""
        chosen = self._list.chosen
        self.title = "" if chosen is None else f"breakpoint {chosen.number}"
        return super().heading(width)

    def rows(self, width: int) -> list[Row]:
        """What there is to say, and where there is room for it how breakpoints are written."""
        chosen = self._list.chosen
        rows = [] if chosen is None else self._facts(chosen, width)
        written = topic_rows("breaks", width)
        return [*rows, *([[]] if rows else []), *written] if len(rows) + len(written) + 1 < self.size.height else rows

    def _facts(self, chosen: BreakView, width: int) -> list[Row]:
        """A word at the left, what it is at the right."""
        word = "log" if chosen.kind is BreakKind.LOG else "break"
        parts = (
            ("written", [f"{word} {chosen.description.specification}"]),
            (_VERBS[chosen.kind], _waits_for(chosen)),
            ("only if", [chosen.description.condition] if chosen.description.condition else []),
            ("how often", list(_counts(chosen))),
            ("has stopped", self._stops(chosen)),
        )
        rows: list[Row] = []
        for word, lines in parts:
            begin = len(rows)
            for line in lines:
                for part in wrapped(printable(line), max(width - _WORD - 4, 20)):
                    rows.append([(f"  {'' if len(rows) > begin else word:<{_WORD}}", "dim"), (part, "")])
        return rows

    def _stops(self, chosen: BreakView) -> list[str]:
        """The stops that it has made, the last first."""
        begins = f"breakpoint {chosen.number}: "
        found = {
            (entry.branch, entry.tick): f"tick {entry.tick}   {clip_end(entry.text.removeprefix(begins), 200)}"
            for entry in self.state.lists.log
            if entry.kind is Kind.STOPPED and entry.text.startswith(begins)
        }
        return list(reversed(found.values())) or ["nowhere yet"]


_VERBS: Final = {BreakKind.AT: "stops", BreakKind.WHEN: "stops when", BreakKind.LOG: "writes"}


def _waits_for(chosen: BreakView) -> list[str]:
    """Where, or when, in sentences."""
    if chosen.kind is BreakKind.WHEN:
        found = data_breakpoint(chosen.text)
        about = "" if found is None or found.address is None else f"   ({chosen.text})"
        return [f"{chosen.text} becomes true" if found is None else kinds()[found.word].meaning + about]
    places = list(dict.fromkeys(place_text(program, index) for program, index in chosen.first_places))
    more = len(chosen.places) - min(len(places), _MOST_PLACES)
    return [*places[:_MOST_PLACES], *([f"and at {more} more places"] if more > 0 else [])]


def _counts(chosen: BreakView) -> Iterator[str]:
    """Hits, and what is made of them."""
    description = chosen.description
    if description.hit:
        yield f"{'only at' if description.exactly else 'from'} the hit number {description.hit}"
    if description.ignore:
        yield f"ignores {description.ignore} of them, {min(chosen.ignored, description.ignore)} have gone by"
    if description.once:
        yield "once, then it goes"
    if chosen.hits:
        yield f"{chosen.hits:,} hit{'s' * (chosen.hits != 1)} so far"
