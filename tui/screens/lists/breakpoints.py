"""The breakpoints: what each waits for, its condition and hits; below the list, all about the chosen one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from stepper.debug.breakpoints.breakpoint import BreakKind, place_text
from stepper.debug.breakpoints.data_breakpoints import data_breakpoint, kinds, specification
from stepper.debug.inspection.views import BreakView
from tui.paint.columns import TableColumn, written
from tui.paint.list_pane import ListPane
from tui.paint.pane import Pane
from tui.paint.rows import Row, Token, cell_len, clip, clip_end, printable, width_of, wrapped
from tui.screens.list_screen import ListScreen
from tui.screens.lists.detail import ChosenDetail
from tui.screens.lists.topic import topic_rows
from tui.theme import GLYPHS, break_glyph

_KINDS: Final = {BreakKind.AT: "stop", BreakKind.WHEN: "when", BreakKind.LOG: "log"}


class BreakpointList(ListPane[BreakView]):
    """One row a breakpoint or logpoint; below them where NaN and Inf are expected."""

    kind: ClassVar[str] = "breakpoints"
    title = "breakpoints"
    asked_when_empty: ClassVar[str] = "prompt break "
    when_empty: ClassVar[str] = "none; a sets one, b does at the selected operation, such as: break nan"
    help_text: ClassVar[str] = (
        "Where the run stops. A hollow dot is switched off; a lozenge has a condition. Hits are counted from the\n"
        "moment at which it was set, each once, however often time goes back. Enter changes what it waits for."
    )

    def entries(self) -> Sequence[BreakView]:
        """All, in the order in which they were set."""
        return self.state.breaks

    def heading(self, width: int) -> list[Row]:
        """Return how many there are."""
        breaks = self.state.breaks
        off = sum(not one.enabled for one in breaks)
        self.note = f"{len(breaks)} set{f', {off} off' if off else ''} " if breaks else ""
        return super().heading(width)

    def columns(self) -> Sequence[TableColumn[BreakView]]:
        """Glyph, number, kind, target and condition, hits."""
        return (
            TableColumn("", 2, lambda one, _width: [(f"{break_glyph(one)} ", "bad" if one.enabled else "dim")]),
            TableColumn("no", 4, _number),
            TableColumn("", 6, lambda one, width: written(_KINDS[one.kind], width, "dim")),
            TableColumn("what", None, _words),
            TableColumn("hits", 7, _hits, right=True),
            TableColumn("", 1, lambda _one, _width: []),
        )

    def footnotes(self, width: int) -> list[Row]:
        """Return where NaN and Inf are expected."""
        expected = self.state.lists.expected
        if not expected:
            return []
        text = f"NaN and Inf stop nothing in {', '.join(map(printable, expected))}"
        return [[], [("   ", ""), (clip(text, width - 3), "dim")]]

    def name_of(self, item: BreakView) -> str:
        """Return its number."""
        return str(item.number)

    def line_to_open(self, item: BreakView) -> str:
        """It is written anew at the prompt."""
        return f"prompt change {item.number} {specification(item.description)}"

    def clicked(self, index: int, x: int, *, again: bool) -> None:
        """On the dot: switch it on or off."""
        if x - self.gutter.left < 3:
            self.post_line(f"toggle-enabled {self.state.breaks[index].number}")


def _number(item: BreakView, width: int) -> Row:
    return written(str(item.number), width, "strong" if item.enabled else "dim")


def _hits(item: BreakView, width: int) -> Row:
    return written(str(item.hits) if item.hits else GLYPHS["free"], width, "" if item.enabled else "dim", right=True)


def _words(item: BreakView, room: int) -> Row:
    """Return what it waits for, and in quieter words when."""
    tone = "" if item.enabled else "dim"
    description = item.description
    parts: list[tuple[str, Token]] = [(printable(description.text), tone)]
    if description.line:
        parts.append((printable(f'"{description.line}"'), tone))
    if description.condition:
        parts += [("if", "dim"), (printable(description.condition), tone)]
    if description.hit:
        exactly = "only at" if description.exactly else "from"
        parts.append((f"{exactly} hit {description.hit}", "dim"))
    if description.ignore:
        parts.append((f"ignores {description.ignore} ({min(item.ignored, description.ignore)} gone by)", "dim"))
    parts += [("once", "dim")] if description.once else []
    parts += [(f"{len(item.places)} places", "dim")] if len(item.places) > 1 else []
    parts += [("(off)", "dim")] if not item.enabled else []
    return fitted(parts, room)


def fitted(parts: list[tuple[str, Token]], room: int) -> Row:
    """Return the parts with blanks between them in exactly so many cells; the first ones have the right of way."""
    row: Row = []
    for text, tone in parts:
        left = room - width_of(row) - (1 if row else 0)
        if left < min(cell_len(text), 4):
            break
        row += [(" ", ""), (clip(text, left), tone)] if row else [(clip(text, left), tone)]
    return [*row, (" " * max(room - width_of(row), 0), "")]


_FACT: Final = 13
_MOST_PLACES: Final = 8


class BreakDetail(ChosenDetail):
    """Of the chosen breakpoint."""

    help_text: ClassVar[str] = "What the chosen breakpoint waits for, where it sits, and the stops that it has made."

    def titled(self, chosen: BreakView) -> tuple[str, str]:
        """Return its number."""
        return f"breakpoint {chosen.number}", ""

    def rows(self, width: int) -> list[Row]:
        """Return the facts, and where there is room how breakpoints are written."""
        chosen = self._list.chosen
        rows = [] if chosen is None else self._facts(chosen, width)
        written = topic_rows("breaks", width)
        return [*rows, *([[]] if rows else []), *written] if len(rows) + len(written) + 1 < self.size.height else rows

    def _facts(self, chosen: BreakView, width: int) -> list[Row]:
        """Return a word at the left, what it is at the right."""
        word = "log" if chosen.kind is BreakKind.LOG else "break"
        parts = (
            ("written", [f"{word} {specification(chosen.description)}"]),
            (_VERBS[chosen.kind], _waits_for(chosen)),
            ("only if", [chosen.description.condition] if chosen.description.condition else []),
            ("how often", list(_counts(chosen))),
            ("has stopped", self._stops(chosen)),
        )
        rows: list[Row] = []
        for word, lines in parts:
            begin = len(rows)
            for line in lines:
                for part in wrapped(printable(line), max(width - _FACT - 4, 20)):
                    rows.append([(f"  {'' if len(rows) > begin else word:<{_FACT}}", "dim"), (part, "")])
        return rows

    def _stops(self, chosen: BreakView) -> list[str]:
        """Return the stops that it has made, the last first."""
        found = {
            (entry.branch, entry.tick): f"tick {entry.tick}   {clip_end(entry.text, 200)}"
            for entry in self.state.lists.log
            if entry.breakpoint == chosen.number
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


class BreakpointsScreen(ListScreen):
    """The breakpoints, with what they wait for."""

    view_name = "breakpoints"
    pane_class = BreakpointList

    def more_about(self, listed: Any) -> Pane:
        """Return where the chosen one sits, and where it has stopped."""
        return BreakDetail(self.host, listed)
