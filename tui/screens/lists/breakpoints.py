"""The breakpoints: number, what each waits for, its condition, hits, and what it ignores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, Final

from stepper.debug.breakpoints.breakpoint import BreakKind
from stepper.debug.inspection.run_views import BreakView
from tui.paint.columns import Column, written
from tui.paint.list_pane import ListPane
from tui.paint.rows import Row, Token, cell_len, clip, printable, width_of
from tui.theme import GLYPHS, break_glyph

_KINDS: Final = {BreakKind.AT: "stop", BreakKind.WHEN: "when", BreakKind.LOG: "log"}


class BreakpointList(ListPane[BreakView]):
    """One row a breakpoint or logpoint; below them where NaN and Inf are expected."""

    kind: ClassVar[str] = "breakpoints"
    title = "breakpoints"
    when_empty: ClassVar[str] = "none; a sets one, b does at the selected operation, such as: break nan"
    help_text: ClassVar[str] = (
        "Where the run stops. A hollow dot is switched off; a lozenge has a condition. Hits are counted from the\n"
        "moment at which it was set, each once, however often time goes back. Enter changes what it waits for."
    )

    def entries(self) -> Sequence[BreakView]:
        """All, in the order in which they were set."""
        return self.state.breaks

    def heading(self, width: int) -> list[Row]:
        """How many there are."""
        breaks = self.state.breaks
        off = sum(not one.enabled for one in breaks)
        self.note = f"{len(breaks)} set{f', {off} off' if off else ''} " if breaks else ""
        return super().heading(width)

    def columns(self) -> Sequence[Column[BreakView]]:
        """Glyph, number, kind, target and condition, hits."""
        return (
            Column("", 2, lambda one, _width: [(f"{break_glyph(one)} ", "bad" if one.enabled else "dim")]),
            Column("no", 4, lambda one, width: written(str(one.number), width, "strong" if one.enabled else "dim")),
            Column("", 6, lambda one, width: written(_KINDS[one.kind], width, "dim")),
            Column("what", None, _words),
            Column("hits", 7, _hits, right=True),
            Column("", 1, lambda _one, _width: []),
        )

    def footnotes(self, width: int) -> list[Row]:
        """Where NaN and Inf are expected."""
        expected = self.state.lists.expected
        if not expected:
            return []
        text = f"NaN and Inf stop nothing in {', '.join(map(printable, expected))}"
        return [[], [("   ", ""), (clip(text, width - 3), "dim")]]

    def name_of(self, item: BreakView) -> str:
        """Its number."""
        return str(item.number)

    def line_to_open(self, item: BreakView) -> str:
        """It is written anew at the prompt."""
        return f"prompt change {item.number} {item.description.specification}"

    def clicked(self, index: int, x: int, *, again: bool) -> None:
        """On the dot: switch it on or off."""
        if x - self.gutter.left < 3:
            self.post_line(f"toggle-enabled {self.state.breaks[index].number}")


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
    """The parts with blanks between them in exactly so many cells; the first ones have the right of way."""
    row: Row = []
    for text, tone in parts:
        left = room - width_of(row) - (1 if row else 0)
        if left < min(cell_len(text), 4):
            break
        row += [(" ", ""), (clip(text, left), tone)] if row else [(clip(text, left), tone)]
    return [*row, (" " * max(room - width_of(row), 0), "")]
