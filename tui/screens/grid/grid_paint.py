"""How the cells of a grid look: a glyph over a shade for each code, in wide ones the number; what happened there."""

from __future__ import annotations

import math

from rich.style import Style

from stepper.debug.inspection.frame_views import FrameView
from stepper.debug.iterations.tiles import Cell
from tui.paint.pane import Pane
from tui.paint.rows import Row, Token, number
from tui.screens.grid.grid_part import CHANGED, DIFFERS, FOLDED, LEVELS, ODD, UNKNOWN
from tui.screens.grid.grid_widths import NUMBERED
from tui.state import Happening, State
from tui.theme import GLYPHS

LETTERS = "IN"
_THIN = Style(bold=False)


def happenings(state: State, frame: FrameView | None, edited: str) -> dict[Cell, str]:
    """The glyphs of stops and edits in this run of a frame, by cell."""
    glyphs = {Happening.STOP: GLYPHS["break"], Happening.EDIT: edited}
    return {
        Cell(event.iteration, event.place[1]): glyphs[event.kind]
        for event in state.events
        if frame is not None and event.kind in glyphs and event.run == state.loop_run
        if event.place is not None and event.place[0] == id(frame.program)
    }


class CellPaint:
    """Paints the codes of a GridPart, each once."""

    def __init__(self, pane: Pane) -> None:
        self._pane = pane
        self._cells: dict[tuple[int, int], Row] = {}

    def forget(self) -> None:
        """Another theme."""
        self._cells = {}

    def cell(self, code: int, wide: int, value: float) -> Row:
        """A cell of this code, and where it is wide the air behind it; a very wide one has the number, too."""
        found = self._cells.get((code, wide))
        if found is None:
            width = wide - 1 if wide > 3 else wide
            glyph, tone = self._look_of(code)
            found = [(f"{glyph:^{width}}"[:width], tone)]
            self._cells[code, wide] = found = found if width == wide else [*found, (" ", "")]
        if wide >= NUMBERED and math.isfinite(value):
            (text, tone), *air = found
            mark = text.strip()[:1]
            tone = tone + _THIN if isinstance(tone, Style) and code < ODD else tone
            return [(f"{' ' if mark.isdigit() else mark:1}{number(value):>{wide - 2}}", tone), *air]
        return found

    def _look_of(self, code: int) -> tuple[str, Token]:
        """A glyph and how it is painted."""
        if code >= DIFFERS:
            level, begins = divmod(code - DIFFERS, 2)
            figure = str(level * 9 // (LEVELS - 1)) if self._pane.look.plain else ""
            return f"{GLYPHS['diff']}{figure}", self._front(level / (LEVELS - 1), loud=bool(begins))
        if code >= ODD:
            kind, begins = divmod(code - ODD, 2)
            return LETTERS[kind - 1], self._front(loud=bool(begins))
        if code in (UNKNOWN, FOLDED):
            return GLYPHS["free"] if code == UNKNOWN else "", "faint"
        is_changed = code >= CHANGED - 1
        level = code - CHANGED if is_changed else code
        glyph = GLYPHS["shape"] if is_changed else ""
        if not glyph and self._pane.look.plain and level >= 0:
            glyph = str(level * 9 // (LEVELS - 1))
        return glyph, self._shade(level)

    def _front(self, share: float = 0.0, *, loud: bool) -> Style:
        """What is wrong: bold where it begins, thin where it lasts; the tint is that, and more for a larger share."""
        ground, error = self._pane.colour("background"), self._pane.colour("error")
        tint = ground.blend(error, (0.30 if loud else 0.06) + 0.20 * share)
        ink = error if loud else ground.blend(error, 0.55 + 0.35 * share)
        return Style(color=ink.rich_color, bgcolor=tint.rich_color, bold=loud)

    def _shade(self, level: int) -> Style:
        """A level from 0; -1: there is a value, but no number."""
        share = 0.04 if level < 0 else 0.10 + 0.62 * level / (LEVELS - 1)
        ground = self._pane.colour("background").blend(self._pane.colour("secondary"), share)
        ink = ground.blend(ground.get_contrast_text(1), 0.9).rich_color
        return Style(color=ink, bgcolor=ground.rich_color, bold=not self._pane.look.plain)

    def shades(self) -> list[Style]:
        """From low to high, for the legend."""
        return [self._shade(level) for level in (0, 4, 7, LEVELS - 1)]
